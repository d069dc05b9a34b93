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
	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sys"
)

// clocked sets CLOCK_MONOTONIC for the records of an event if stacks are sampled: it is the only
// clock that a BPF program can read, so the order of samples and records is exact. All events of a
// ring share one clock; otherwise it is perf's.
func (s *recording) clocked(attr *unix.PerfEventAttr) *unix.PerfEventAttr {
	if s.opts.Stacks != nil {
		attr.Bits |= sys.AttrBits(perfdata.FlagUseClockID)
		attr.Clockid = unix.CLOCK_MONOTONIC
	}
	return attr
}

// kernelFlags request records of loads and unloads of BPF programs.
const kernelFlags = perfdata.FlagKSymbol | perfdata.FlagBPFEvent

// sideband reads the rings: it writes their records to perf.data, and reads each program that they
// report as loaded.
type sideband struct {
	s        *recording
	rings    []*sys.Ring
	programs *programs
	out      *perfOut
	kernel   *kernel         // knows the kernel's address range
	copies   *copies         // of programs that could not be read; may be nil
	modules  *moduleRecorder // receives samples of the module tracepoints
	procs    *processes      // receives the command's processes
	wake     int             // eventfd that wakes the loop
	stopping atomic.Bool
	done     chan struct{} // closed when the loop has ended
	ready    chan struct{} // closed when the present programs have been read
	// presentErr is set before ready is closed.
	presentErr error
	ksymbols   int
	symbols    map[symbolKey]bool // trampolines in records, by name and address
	scratch    []byte             // a record after cut
	current    *sys.Ring          // being read
	named      []byte             // names of functions since the last load, each followed by a 0
	changes    *history.CodeLog   // of kernel addresses; nil: not recorded
	series     *mapSeries         // reads the BTF of maps; may be nil
	ids        []uint64           // of the events
	first      bool               // nothing of the bundle was cut yet
	requests   chan func()        // run by the loop
	relisting  relisting
}

// symbolKey identifies a KSYMBOL record without a program.
type symbolKey struct {
	addr uint64
	name string
}

func newSideband(s *recording, k *kernel, m *moduleRecorder, p *processes) (*sideband, error) {
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

// start opens a ring for each CPU and starts to read them. It returns when the programs that were
// already loaded have been read.
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
		return errors.New("no ring: all CPUs went offline")
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

// requestDrain makes the loop drain the rings. Safe for concurrent use.
func (x *sideband) requestDrain() {
	_, _ = unix.Write(x.wake, binary.NativeEndian.AppendUint64(nil, 1))
}

// stop ends the loop, after a last drain of the rings.
func (x *sideband) stop() {
	if x.rings == nil || x.stopping.Swap(true) {
		return
	}
	for _, r := range x.rings {
		r.Disable()
	}
	x.requestDrain()
	<-x.done
}

// realTime is the priority of the reading thread: the lowest real-time priority. The thread sleeps
// until a BPF program is loaded or unloaded.
const realTime = 1

// raise gives the calling thread real-time priority, if allowed. Threads started by it do not
// inherit the priority.
func raise() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: uint32(unsafe.Sizeof(unix.SchedAttr{})),
		Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: realTime}, 0)
}

// loop reads the rings whenever one has data. It runs on a thread of its own, which ends with it.
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
		if _, err := unix.Poll(fds, x.relist(x.s.host.Monotonic())); err != nil && !errors.Is(err, unix.EINTR) {
			x.s.warn("waiting for BPF programs failed: %v", err)
			break
		}
		x.drainRequested()
		for i := range x.rings { // the ring of an offline CPU reports POLLHUP forever
			if fds[i].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
				fds[i].Fd = -1
			}
		}
	}
	x.drainRings()
	x.relisting.last = 0 // immediately
	x.relist(x.s.host.Monotonic())
}

// drainRequested reads until all rings are empty, and reports that to the requesters.
func (x *sideband) drainRequested() {
	var count [8]byte
	_, _ = unix.Read(x.wake, count[:]) // does not block
	requested := uint64(0)
	if x.changes != nil {
		requested = x.changes.Requested()
	}
	x.drainRings()
	if x.changes != nil {
		x.changes.Drained(requested)
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

// betweenDrains is the number of present programs that are read between two drains of the rings:
// newly loaded programs may be short-lived, present ones are not.
const betweenDrains = 8

// readPresent reads all programs that are already loaded.
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

// record handles one record of a ring.
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
		x.relisting.lost(x.current.Latest, sys.RecordTime(rec))
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

// cut removes the bytes that the kernel adds to BPF records if there are other readers too: then
// the trailer is at the end, where readers expect it (see perfdata.OwnFields).
func (x *sideband) cut(rec []byte) []byte {
	const trailer = 32 // of sys.SampleType
	order := binary.NativeEndian
	own := perfdata.OwnFields(perfdata.Type(order.Uint32(rec)), rec[sys.RecordHeader:])
	size := sys.RecordHeader + own + trailer
	if own == 0 || size >= len(rec) {
		return rec
	}
	x.scratch = append(x.scratch[:0], rec[:size]...)
	order.PutUint16(x.scratch[6:], uint16(size))
	return x.scratch
}

// load reads a program; the records before it listed its functions.
func (x *sideband) load(id uint32, tag bpf.Tag) {
	if p := x.programs.load(id, tag); p != nil && p.missing != "" {
		p.symbol = mainSymbol(x.named, tag)
	}
	x.named = x.named[:0]
}

// mainSymbol finds the name of the program with this tag among the names of functions, each
// followed by a 0. Without a match it returns the name with the tag alone.
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

// maxNamed limits the bytes of names that are kept until their program is loaded.
const maxNamed = 256 << 10

// maxSymbols limits the remembered trampolines.
const maxSymbols = 1 << 16

// ksymbol counts a KSYMBOL record and remembers those without a program.
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
		x.relisting.ksymbol(binary.NativeEndian.Uint64(body),
			binary.NativeEndian.Uint32(body[lengthAt:]), loaded)
	}
	if loaded && bpf.IsSymbol(name) && len(x.named)+len(name) < maxNamed {
		x.named = append(append(x.named, name...), 0)
	}
	if isBPFImage(name) && len(x.symbols) < maxSymbols {
		x.symbols[symbolKey{binary.NativeEndian.Uint64(body), string(name)}] = true
	}
}

// isBPFImage reports whether a kernel symbol of BPF is a trampoline or dispatcher, which no program's
// info lists: bpf_trampoline_…, bpf_dispatcher_…, and bpf__TYPE_MEMBER of operations of the kernel
// that programs implement (struct_ops).
func isBPFImage(name []byte) bool {
	return bytes.HasPrefix(name, []byte("bpf_trampoline_")) ||
		bytes.HasPrefix(name, []byte("bpf_dispatcher_")) || bytes.HasPrefix(name, []byte("bpf__"))
}

// add writes the records that perf synthesizes for the initial state, and adds perf.data.
func (x *sideband) add(w *bundle.Writer) error {
	part := &sidePart{out: x.out, programs: x.programs, symbols: x.symbols, ksymbols: x.ksymbols,
		first: x.first}
	return x.addPart(w, part)
}

// sidePart is the side band of one part of the recording.
type sidePart struct {
	out      *perfOut
	programs *programs
	symbols  map[symbolKey]bool
	ksymbols int
	first    bool // first part of its bundle: includes the initial state
}

// cutPart returns the side band since the last cut, with all records up to now. newFile: the next
// part starts a bundle, for which the loaded programs are read again.
func (x *sideband) cutPart(newFile bool) (part *sidePart, err error) {
	done := make(chan struct{})
	x.requests <- func() {
		defer close(done)
		part, err = x.split(newFile)
	}
	x.requestDrain()
	select {
	case <-done:
	case <-x.done:
		select {
		case <-done:
		default:
			err = errors.New("the rings are no longer read")
		}
	}
	return part, err
}

// split does the work of cutPart in the loop.
func (x *sideband) split(newFile bool) (*sidePart, error) {
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
	x.out, x.ksymbols, x.first = out, 0, newFile
	if !newFile {
		x.symbols = make(map[symbolKey]bool)
		return part, nil
	}
	// Data of this part that the next bundle needs as well is carried over.
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
		x.kernel.images(part.writeImage)
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

// writeImage writes a KSYMBOL record for a trampoline or dispatcher that is in kallsyms but in no
// record, because it existed before. The kernel reports 4,096 bytes for each.
func (p *sidePart) writeImage(pc uint64, name string) {
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

// relistEvery is the shortest interval between two lists of the loaded BPF programs after losses of
// records.
const relistEvery = time.Second

// relisting is the state for listing the loaded BPF programs after records of loads and unloads
// were lost. The zero value does nothing: no addresses are looked up by time.
type relisting struct {
	live     map[uint64]uint32 // lengths of loaded functions according to the records, by address
	next     func(id uint32) (uint32, error)
	from, to uint64 // span of the losses; 0: none
	last     uint64 // last list
}

// maxLive limits the remembered functions of BPF programs.
const maxLive = 1 << 20

// relistAfterLoss makes losses of records cause a list of the loaded programs.
func (x *sideband) relistAfterLoss() {
	x.relisting = relisting{live: make(map[uint64]uint32), next: sys.NextProgram}
	x.programs.found = x.relisting.found
}

// lost adds the span of a loss.
func (a *relisting) lost(from, to uint64) {
	if a.live == nil {
		return
	}
	if a.to == 0 || from < a.from {
		a.from = from
	}
	a.to = max(a.to, to)
}

// found adds a function of a loaded program.
func (a *relisting) found(start uint64, length uint32) {
	if start != 0 && len(a.live) < maxLive {
		a.live[start] = length
	}
}

// ksymbol adds or removes a function that a record reports as loaded or unloaded.
func (a *relisting) ksymbol(start uint64, length uint32, loaded bool) {
	switch {
	case a.live == nil:
	case loaded:
		a.found(start, length)
	default:
		delete(a.live, start)
	}
}

// relist lists the loaded programs if records were lost. It writes records of these programs and of
// the unload of others: names of BPF code are uncertain from the loss until now, and certain
// afterwards. It returns the time until the next call in ms, as poll(2) uses it.
func (x *sideband) relist(now uint64) int {
	a := &x.relisting
	if a.to == 0 {
		return -1
	}
	wait := time.Duration(a.last + uint64(relistEvery) - now)
	if a.last != 0 && wait > 0 {
		return int(wait/time.Millisecond) + 1
	}
	x.drainRings()
	from, to := a.from, a.to
	a.from, a.to = 0, 0
	// Later loads and unloads have records.
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
	x.modules.RelistSince(from)
	a.last = x.s.host.Monotonic()
	x.drainRings()
	x.changes.Settled(to, a.last)
	x.s.log("after lost records %d functions of BPF programs were there", len(there))
	if a.to != 0 {
		return int(relistEvery / time.Millisecond)
	}
	return -1
}

// list returns the functions of the loaded programs by address, and requests records of the
// programs with this time.
func (x *sideband) list(at uint64) map[uint64]uint32 {
	there := make(map[uint64]uint32)
	for id, n := uint32(0), 0; ; n++ {
		next, err := x.relisting.next(id)
		if err != nil {
			return there
		}
		id = next
		x.programs.presentAt(id, at, func(start uint64, length uint32) { there[start] = length })
		if n%betweenDrains == 0 {
			x.drainRings()
		}
	}
}

// perfOut is a bundle's perf.data while it is written: a temporary file without a name.
type perfOut struct {
	file *os.File
	w    *perfdata.Writer
}

// newPerfOut starts a file with one event that represents the events of all rings: their records
// have the same format. Times are of CLOCK_MONOTONIC, or of perf's clock.
func newPerfOut(ids []uint64, monotonic bool) (*perfOut, error) {
	f, err := files.Temp(tempPattern)
	if err != nil {
		return nil, err
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

// write adds a record of a ring. finish returns its error.
func (o *perfOut) write(rec []byte) { _ = o.w.WriteRecord(rec) }

// kernelMap writes the mapping of the kernel's text in perf's format.
func (o *perfOut) kernelMap(k *kernelFacts) {
	if k.text == 0 || k.end <= k.text {
		return
	}
	_ = o.w.WriteMmap(&perfdata.Mmap{PID: -1, Addr: k.text, Len: k.end - k.text, PgOff: k.text,
		Filename: []byte(kernelName + "_text")}, perfdata.CPUModeKernel, perfdata.SampleID{})
}

// kernelName is perf's name of the kernel's mapping, followed by a symbol's name.
const kernelName = "[kernel.kallsyms]"

// finish writes the features.
func (o *perfOut) finish(s *recording, p *programs) error {
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
