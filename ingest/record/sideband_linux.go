package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

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
