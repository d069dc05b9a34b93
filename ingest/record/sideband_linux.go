package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sys"
)

// clocked sets CLOCK_MONOTONIC for the records of an event where stacks are sampled:
// that is the one clock that a BPF program can read, so that the order of samples and records is
// exact. All events of a ring have one clock; else it is perf's.
func (s *session) clocked(attr *unix.PerfEventAttr) *unix.PerfEventAttr {
	if s.opts.Stacks != nil {
		attr.Bits |= sys.AttrBits(perfdata.FlagUseClockID)
		attr.Clockid = unix.CLOCK_MONOTONIC
	}
	return attr
}

// kernelFlags ask for the loads and unloads of BPF programs.
const kernelFlags = perfdata.FlagKSymbol | perfdata.FlagBPFEvent

// sideband reads the rings: it writes their records to perf.data and reads each program that they
// report as loaded.
type sideband struct {
	s        *session
	rings    []*sys.Ring
	programs *programs
	out      *perfOut
	kernel   *kernel         // asked where the kernel lies
	copies   *copies         // for programs that could not be read; nil if there are none
	modules  *moduleRecorder // receives samples of the module tracepoints
	procs    *processes      // receives the command's processes
	wake     int             // eventfd that ends the loop
	stopping atomic.Bool
	done     chan struct{} // closed when the loop has ended
	ready    chan struct{} // closed when the programs present were read
	// presentErr is an error of that, set before ready is closed.
	presentErr error
	ksymbols   int
	symbols    map[symbolKey]bool // names at addresses in records: trampolines
	room       []byte             // a record that was cut
	current    *sys.Ring          // that is being read
	named      []byte             // names of functions since the last load, each with a 0 behind
	changes    *history.CodeLog   // of kernel addresses; nil: not wanted
	series     *mapSeries         // asked for the BTF of maps; nil if none are dumped
	ids        []uint64           // of the events
	first      bool               // nothing of the bundle was cut off yet
	requests   chan func()        // run by the loop
	again      again
}

// symbolKey is a KSYMBOL record of no program.
type symbolKey struct {
	addr uint64
	name string
}

func newSideband(s *session, k *kernel, m *moduleRecorder, p *processes) (*sideband, error) {
	x := &sideband{s: s, current: new(sys.Ring), kernel: k, modules: m, procs: p, done: make(chan struct{}),
		ready: make(chan struct{}), wake: -1, first: true, requests: make(chan func(), 1),
		symbols: make(map[symbolKey]bool)}
	var err error
	if x.programs, err = newPrograms(s); err == nil {
		x.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *sideband) close() {
	for _, r := range x.rings {
		r.Close()
	}
	x.rings = nil
	if x.programs != nil {
		x.programs.close()
	}
	if x.out != nil {
		x.out.close()
	}
	if x.wake >= 0 {
		unix.Close(x.wake)
		x.wake = -1
	}
}

// start opens a ring for each CPU and begins to read them. It returns when the programs that were
// there before are read.
func (x *sideband) start() error {
	if err := fdRights(); err != nil {
		return fmt.Errorf("%w: read a BPF program by its id: %w", ErrRights, err)
	}
	cpus, err := sys.OnlineCPUs()
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		r, err := sys.OpenRing(x.s.clocked(sys.DummyAttr(kernelFlags)), -1, cpu, sys.RingPages)
		if errors.Is(err, unix.ENODEV) {
			continue // went offline
		}
		if errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("%w: %w", ErrRights, err)
		}
		if err != nil {
			return err
		}
		x.rings = append(x.rings, r)
	}
	if len(x.rings) == 0 {
		return errors.New("no CPU has a ring")
	}
	ids := make([]uint64, 0, 2*len(x.rings))
	for _, r := range x.rings {
		ids = append(ids, r.ID)
	}
	ids = append(ids, x.procs.open(x.rings)...)
	x.modules.Open(x.rings)
	x.ids = ids
	if x.out, err = newPerfOut(ids, x.s.opts.Stacks != nil); err != nil {
		return err
	}
	go x.loop()
	<-x.ready
	return x.presentErr
}

func (x *sideband) drain() time.Duration { return 0 }

// ask has the loop drain the rings. Any goroutine may call it.
func (x *sideband) ask() {
	_, _ = unix.Write(x.wake, binary.NativeEndian.AppendUint64(nil, 1))
}

// stop ends the loop, which drains the rings once more.
func (x *sideband) stop() {
	if x.rings == nil || x.stopping.Swap(true) {
		return
	}
	for _, r := range x.rings {
		r.Disable()
	}
	x.ask()
	<-x.done
}

// realTime is the priority of the reading thread: the lowest of those that go before
// all ordinary threads. It sleeps until a BPF program comes or goes.
const realTime = 1

// raise gives the calling thread real-time priority where that is allowed. Threads that it may
// start do not inherit it.
func raise() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})),
		Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: realTime}, 0)
}

// loop reads the rings whenever one of them has something, on a thread of its own,
// which ends with it.
func (x *sideband) loop() {
	runtime.LockOSThread()
	defer close(x.done)
	if err := raise(); err != nil {
		x.s.log("no real-time priority for the reader: %v", err)
	}
	x.readPresent()
	x.presentErr = x.programs.err
	close(x.ready)
	defer x.changes.End()
	fds := make([]unix.PollFd, 0, len(x.rings)+1)
	for _, r := range x.rings {
		fds = append(fds, unix.PollFd{Fd: int32(r.FD), Events: unix.POLLIN})
	}
	fds = append(fds, unix.PollFd{Fd: int32(x.wake), Events: unix.POLLIN})
	for !x.stopping.Load() {
		if _, err := unix.Poll(fds, x.lookAgain(x.s.host.Monotonic())); err != nil && !errors.Is(err, unix.EINTR) {
			x.s.warn("waiting for BPF programs failed: %v", err)
			break
		}
		x.drainAsked()
		for i := range x.rings { // a ring without its CPU hangs up, for ever
			if fds[i].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
				fds[i].Fd = -1
			}
		}
	}
	x.drainRings()
	x.again.last = 0 // at once
	x.lookAgain(x.s.host.Monotonic())
}

// drainAsked reads until all rings are empty, and signals those who wait for that.
func (x *sideband) drainAsked() {
	var count [8]byte
	_, _ = unix.Read(x.wake, count[:]) // it does not block
	asked := uint64(0)
	if x.changes != nil {
		asked = x.changes.Asked()
	}
	x.drainRings()
	if x.changes != nil {
		x.changes.Drained(asked)
	}
	select {
	case request := <-x.requests:
		request()
	default:
	}
}

// drainRings reads until all rings are empty.
func (x *sideband) drainRings() {
	for again := true; again; {
		again = false
		for _, r := range x.rings {
			x.current = r
			again = r.Drain(x.record) || again
		}
	}
}

// betweenDrains is how many programs are read before the rings are looked at: those
// that come now are in a hurry, those that are there are not.
const betweenDrains = 8

// readPresent reads all programs that are there.
func (x *sideband) readPresent() {
	n := 0
	for id := uint32(0); ; n++ {
		next, err := sys.NextProgram(id)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				x.s.warn("the BPF programs present could not be listed: %v", err)
			}
			break
		}
		id = next
		x.programs.present(id)
		if n%betweenDrains == 0 {
			x.drainRings()
		}
	}
	x.s.log("%d BPF programs were there", n)
}

// record takes in one record of a ring.
func (x *sideband) record(rec []byte) {
	order := binary.NativeEndian
	body := rec[sys.RecordHeader:]
	switch perfdata.Type(order.Uint32(rec)) {
	case perfdata.TypeBPFEvent:
		if len(body) >= 16 && order.Uint16(body) == perfdata.BPFLoad {
			x.load(order.Uint32(body[4:]), bpf.Tag(body[8:16]))
		}
	case perfdata.TypeKSymbol:
		x.ksymbol(rec)
	case perfdata.TypeLost:
		if len(body) >= 16 {
			x.s.lost("records of the rings", order.Uint64(body[8:]))
		}
		x.changes.Lost(x.current.Latest, sys.RecordTime(rec))
		x.again.lost(x.current.Latest, sys.RecordTime(rec))
	case perfdata.TypeSample:
		x.modules.Sample(rec)
		return // not part of perf.data
	case perfdata.TypeComm, perfdata.TypeFork, perfdata.TypeMmap2:
		x.procs.record(body)
	}
	rec = x.cut(rec)
	x.current.Latest = sys.RecordTime(rec)
	x.out.write(rec)
}

// cut removes the bytes that the kernel adds to BPF records where others listen too, so that
// their trailer is at the end, where every reader looks for it (see perfdata.OwnFields).
func (x *sideband) cut(rec []byte) []byte {
	const trailer = 32 // of sys.SampleType
	order := binary.NativeEndian
	own := perfdata.OwnFields(perfdata.Type(order.Uint32(rec)), rec[sys.RecordHeader:])
	size := sys.RecordHeader + own + trailer
	if own == 0 || size >= len(rec) {
		return rec
	}
	x.room = append(x.room[:0], rec[:size]...)
	order.PutUint16(x.room[6:], uint16(size))
	return x.room
}

// load reads a program whose functions the records before listed.
func (x *sideband) load(id uint32, tag bpf.Tag) {
	if p := x.programs.load(id, tag); p != nil && p.missing != "" {
		p.symbol = mainSymbol(x.named, tag)
	}
	x.named = x.named[:0]
}

// mainSymbol finds the name of the program with this tag among those of functions, each
// with a 0 behind; without it the name has the tag alone.
func mainSymbol(names []byte, tag bpf.Tag) string {
	prefix := bpf.SymbolOf(tag, "")
	for len(names) > 0 {
		name, rest, _ := bytes.Cut(names, []byte{0})
		if bytes.HasPrefix(name, []byte(prefix)) {
			return string(name)
		}
		names = rest
	}
	return prefix
}

// maxNamed bounds the names that are kept until their program is loaded, bytes.
const maxNamed = 256 << 10

// maxSymbols bounds the trampolines that are remembered.
const maxSymbols = 1 << 16

// ksymbol counts a KSYMBOL record and remembers those of no program.
func (x *sideband) ksymbol(rec []byte) {
	const lengthAt, flagsAt, unregister, nameAt = 8, 14, 1, 16
	body := rec[sys.RecordHeader:]
	if len(body) < nameAt {
		return
	}
	x.ksymbols++
	x.changes.Add(sys.RecordTime(x.cut(rec)), binary.NativeEndian.Uint64(body),
		uint64(binary.NativeEndian.Uint32(body[lengthAt:])))
	name, _, _ := bytes.Cut(body[nameAt:], []byte{0})
	loaded := binary.NativeEndian.Uint16(body[flagsAt:])&unregister == 0
	if bpf.IsSymbol(name) {
		x.again.ksymbol(binary.NativeEndian.Uint64(body),
			binary.NativeEndian.Uint32(body[lengthAt:]), loaded)
	}
	if loaded && bpf.IsSymbol(name) && len(x.named)+len(name) < maxNamed {
		x.named = append(append(x.named, name...), 0)
	}
	if isBPFImage(name) && len(x.symbols) < maxSymbols {
		x.symbols[symbolKey{binary.NativeEndian.Uint64(body), string(name)}] = true
	}
}

// isBPFImage reports whether a kernel symbol is that of a trampoline or dispatcher,
// which no program's info lists.
func isBPFImage(name []byte) bool {
	return bytes.HasPrefix(name, []byte("bpf_trampoline_")) ||
		bytes.HasPrefix(name, []byte("bpf_dispatcher_"))
}

// add writes the records that perf synthesizes for the initial state, and adds perf.data.
func (x *sideband) add(w *bundle.Writer) error {
	part := &sidePart{out: x.out, programs: x.programs, symbols: x.symbols, ksymbols: x.ksymbols,
		first: x.first}
	return x.addPart(w, part)
}

// sidePart is the side band of a part of the recording.
type sidePart struct {
	out      *perfOut
	programs *programs
	symbols  map[symbolKey]bool
	ksymbols int
	first    bool // of its bundle: it has the initial state, too
}

// cutPart returns the side band since the last cut, with all records up to now. With again the
// next one begins a bundle, for which the programs that are there are read once more.
func (x *sideband) cutPart(again bool) (part *sidePart, err error) {
	done := make(chan struct{})
	x.requests <- func() {
		defer close(done)
		part, err = x.split(again)
	}
	x.ask()
	select {
	case <-done:
	case <-x.done:
		select {
		case <-done:
		default:
			err = errors.New("the rings are not read any more")
		}
	}
	return part, err
}

// split is cutPart, in the loop.
func (x *sideband) split(again bool) (*sidePart, error) {
	x.drainRings()
	out, err := newPerfOut(x.ids, x.s.opts.Stacks != nil)
	if err != nil {
		return nil, err
	}
	programs, err := x.programs.cut(x.copies != nil)
	if err != nil {
		out.close()
		return nil, err
	}
	part := &sidePart{out: x.out, programs: programs, symbols: x.symbols, ksymbols: x.ksymbols,
		first: x.first}
	x.out, x.ksymbols, x.first = out, 0, again
	if !again {
		x.symbols = make(map[symbolKey]bool)
		return part, nil
	}
	// Data of this part is in the next bundle as well, from which it is carried over.
	x.programs.written = make(map[uint32]bool)
	for id, p := range programs.seen {
		x.programs.written[id] = p.missing == ""
	}
	x.programs.btfs = make(map[uint32]bool)
	for _, e := range programs.blobs.entries {
		x.programs.btfs[e.id] = true
	}
	x.symbols = make(map[symbolKey]bool)
	for key := range part.symbols {
		x.symbols[key] = true
	}
	x.readPresent()
	x.programs.written = nil
	return part, nil
}

// addPart writes the records that perf synthesizes for the initial state, and adds perf.data.
func (x *sideband) addPart(w *bundle.Writer, part *sidePart) error {
	if err := x.copies.fill(part.programs); err != nil {
		return err
	}
	if x.series != nil {
		x.series.addBTF(part.programs)
	}
	part.programs.finish()
	if part.first {
		part.out.kernelMap(&x.kernel.facts)
		x.kernel.images(part.imageThere)
	}
	if err := part.programs.synthesize(part.out.w, &part.ksymbols); err != nil {
		return err
	}
	x.s.summary.KSymbols += part.ksymbols
	if err := part.out.finish(x.s, part.programs); err != nil {
		return err
	}
	return part.out.addTo(w)
}

// imageThere writes a KSYMBOL record for a trampoline or dispatcher that is in kallsyms, and in no
// record: it was there before. The kernel reports 4,096 bytes for each.
func (p *sidePart) imageThere(pc uint64, name string) {
	const imageLen = 4096
	if p.symbols[symbolKey{pc, name}] {
		return
	}
	p.ksymbols++
	_ = p.out.w.WriteKSymbol(&perfdata.KSymbol{Addr: pc, Len: imageLen, Kind: perfdata.KSymbolBPF,
		Name: []byte(name)}, perfdata.SampleID{})
}

func (p *sidePart) close() {
	p.out.close()
	p.programs.close()
}

// lookAgainEvery is how often the BPF programs that are there are listed at most because records
// were lost.
const lookAgainEvery = time.Second

// again is the state for listing the BPF programs again after records of loads and unloads
// were lost. Its zero value does nothing: nobody looks up addresses by time.
type again struct {
	live     map[uint64]uint32 // lengths of functions that are loaded by the records, by address
	next     func(id uint32) (uint32, error)
	from, to uint64 // when records were lost; 0: they were not
	last     uint64 // when programs were listed last because of that
}

// maxLive bounds the functions of BPF programs that are remembered.
const maxLive = 1 << 20

// lookAgainAfterLoss has lost records followed by a list of the loaded programs.
func (x *sideband) lookAgainAfterLoss() {
	x.again = again{live: make(map[uint64]uint32), next: sys.NextProgram}
	x.programs.found = x.again.found
}

// lost notes that records were lost in a time.
func (a *again) lost(from, to uint64) {
	if a.live == nil {
		return
	}
	if a.to == 0 || from < a.from {
		a.from = from
	}
	a.to = max(a.to, to)
}

// found notes a function of a program that is there.
func (a *again) found(start uint64, length uint32) {
	if start != 0 && len(a.live) < maxLive {
		a.live[start] = length
	}
}

// ksymbol notes a function that is loaded or unloaded by a record.
func (a *again) ksymbol(start uint64, length uint32, loaded bool) {
	switch {
	case a.live == nil:
	case loaded:
		a.found(start, length)
	default:
		delete(a.live, start)
	}
}

// lookAgain lists the programs that are there, if records were lost, and writes records of them
// and of the unload of others. Between the loss and now code of BPF has no certain names; from now
// on it has. It returns for how long it need not be called, in ms, as poll(2) takes it.
func (x *sideband) lookAgain(now uint64) int {
	a := &x.again
	if a.to == 0 {
		return -1
	}
	wait := time.Duration(a.last + uint64(lookAgainEvery) - now)
	if a.last != 0 && wait > 0 {
		return int(wait/time.Millisecond) + 1
	}
	x.drainRings()
	from, to := a.from, a.to
	a.from, a.to = 0, 0
	// Those that come and go from here on have records.
	begin := x.s.host.Monotonic()
	before, there := maps.Clone(a.live), x.list(begin)
	for _, start := range slices.Sorted(maps.Keys(before)) {
		if there[start] == before[start] {
			continue
		}
		if a.live[start] == before[start] {
			delete(a.live, start)
		}
		x.ksymbols++
		_ = x.out.w.WriteKSymbol(&perfdata.KSymbol{Addr: start, Len: before[start],
			Kind: perfdata.KSymbolBPF, Unregister: true, Name: []byte(bpf.SymbolOf(bpf.Tag{}, ""))},
			perfdata.SampleID{Time: begin})
	}
	for start, length := range there {
		a.found(start, length)
	}
	x.modules.LookSince(from)
	a.last = x.s.host.Monotonic()
	x.drainRings()
	x.changes.Settled(to, a.last)
	x.s.log("after lost records %d functions of BPF programs were there", len(there))
	if a.to != 0 {
		return int(lookAgainEvery / time.Millisecond)
	}
	return -1
}

// list returns the functions of the programs that are there, by address, and has records of them
// written with this time.
func (x *sideband) list(at uint64) map[uint64]uint32 {
	there := make(map[uint64]uint32)
	for id, n := uint32(0), 0; ; n++ {
		next, err := x.again.next(id)
		if err != nil {
			return there
		}
		id = next
		x.programs.presentAgain(id, at, func(start uint64, length uint32) { there[start] = length })
		if n%betweenDrains == 0 {
			x.drainRings()
		}
	}
}

// perfOut is the perf.data of a bundle while it is written: a temporary file without a name.
type perfOut struct {
	file *os.File
	w    *perfdata.Writer
}

// newPerfOut begins a file whose only event represents all that write into the rings:
// their records look alike. Their times are of CLOCK_MONOTONIC, or of perf's clock.
func newPerfOut(ids []uint64, monotonic bool) (*perfOut, error) {
	f, err := os.CreateTemp("", "symbolize-capture-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	const dummy = 9 // PERF_COUNT_SW_DUMMY
	event := perfdata.Event{
		Attr: perfdata.Attr{Type: perfdata.AttrSoftware, Config: dummy, SamplePeriod: 1,
			SampleType: sys.SampleType, Flags: kernelFlags | processFlags | perfdata.FlagSampleIDAll},
		Name: "dummy:HG", IDs: ids,
	}
	if monotonic {
		event.Attr.Flags |= perfdata.FlagUseClockID
		event.Attr.ClockID = unix.CLOCK_MONOTONIC
	}
	w, err := perfdata.NewWriter(f, bigEndian, []perfdata.Event{event})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &perfOut{file: f, w: w}, nil
}

func (o *perfOut) close() { o.file.Close() }

// write adds a record of a ring. An error stays in the writer until finish.
func (o *perfOut) write(rec []byte) { _ = o.w.WriteRecord(rec) }

// kernelMap writes where the kernel's text lies, as perf does it.
func (o *perfOut) kernelMap(k *kernelFacts) {
	if k.text == 0 || k.end <= k.text {
		return
	}
	_ = o.w.WriteMmap(&perfdata.Mmap{PID: -1, Addr: k.text, Len: k.end - k.text, PgOff: k.text,
		Filename: []byte(kernelName + "_text")}, perfdata.CPUModeKernel, perfdata.SampleID{})
}

// kernelName is perf's name of the kernel's mapping; a symbol's name follows.
const kernelName = "[kernel.kallsyms]"

// finish writes the features.
func (o *perfOut) finish(s *session, p *programs) error {
	m := &s.manifest
	o.w.SetString(perfdata.FeatureHostname, m.Host)
	o.w.SetString(perfdata.FeatureOSRelease, m.OSRelease)
	o.w.SetString(perfdata.FeatureArch, m.Machine)
	if id, err := buildid.Parse(m.KernelBuildID); err == nil {
		o.w.SetBuildIDs([]perfdata.BuildIDEntry{{ID: id, PID: -1, CPUMode: perfdata.CPUModeKernel,
			Filename: kernelName}})
	}
	for _, f := range []struct {
		feature perfdata.Feature
		spool   *spool
	}{{perfdata.FeatureBPFProgInfo, p.infos}, {perfdata.FeatureBPFBTF, p.blobs}} {
		if len(f.spool.entries) > 0 {
			o.w.SetFeatureFrom(f.feature, f.spool.section())
		}
	}
	return o.w.Close()
}

// addTo adds the finished file to a bundle.
func (o *perfOut) addTo(w *bundle.Writer) error {
	if _, err := o.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.AddReader(bundle.PerfDataName, o.file)
}
