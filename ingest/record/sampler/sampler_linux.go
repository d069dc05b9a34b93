package sampler

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"symbolize/ingest/record/sys"
)

// Sampler is a loaded BPF program and its counts. Its methods are called in this order: New, Start,
// Wait and Drain in turns, Stop, Write, Close. Not safe for concurrent use, except Wake.
type Sampler struct {
	opts    Options
	maps    *kernelMaps
	program *ebpf.Program
	waking  *ebpf.Program // of sched_waking; nil without Options.Wakers
	reader  *ringbuf.Reader
	waiter  *waiter
	attached
	*Part            // being sampled
	previous *Part   // between Turn and Cut: the part before the current one
	before   soFar   // totals of the parts returned by Cut
	carried  carried // stacks in these parts of threads that are still off CPU
	steady   Range
	record   ringbuf.Record
	batch    batch
	emptied  uint64 // statKeys when the map of counts was last emptied
	memory   uint64
	nested   uint64
	still    uint64 // threads off CPU when the recording stopped
	stopped  bool
	readErr  error            // last error of reading the counts
	final    [numStats]uint64 // the program's counters after Stop
}

// New loads the program, without attaching it. An error names the refused feature.
func New(o Options) (s *Sampler, err error) {
	s = &Sampler{opts: o}
	if s.opts.Frequency == 0 {
		s.opts.Frequency = DefaultFrequency
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	s.steady = steadyRange()
	if s.opts.Wakers {
		s.opts.interrupts = interruptRanges()
	}
	if s.Part, err = newPart(&s.opts, 0, s.steady); err != nil {
		return s, err
	}
	process := readProcessLayout()
	err = s.prepare(process)
	// Before Linux 5.11 maps count against RLIMIT_MEMLOCK, which is too small by default. If the
	// limit cannot be raised, the error of making the maps is reported. (The library's package
	// rlimit tests this with a map of its own at each start of a program.)
	if errors.Is(err, unix.EPERM) && liftMemlock() {
		s.maps.close()
		err = s.prepare(process)
	}
	if err != nil && process != nil { // the program may be forbidden to read kernel memory
		s.maps.close()
		err = s.prepare(nil)
	}
	if err != nil {
		return s, err
	}
	if s.reader, err = ringbuf.NewReader(s.maps.ring); err != nil {
		return s, fmt.Errorf("open ring of stacks: %w", err)
	}
	s.memory = s.maps.memory()
	s.waiter, err = newWaiter(s.maps.ring.FD())
	return s, err
}

// prepare makes the maps and loads the program. After an error some maps may exist.
func (s *Sampler) prepare(process *processLayout) (err error) {
	if s.maps, err = newMaps(&s.opts, process.countsChanges()); err != nil {
		return err
	}
	if err = s.fillFilters(); err != nil {
		return err
	}
	return s.load(process)
}

// liftMemlock removes the limit of locked memory, and reports whether it changed anything.
func liftMemlock() bool {
	none := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	var old unix.Rlimit
	return unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &none, &old) == nil && old.Cur != none.Cur
}

// fillFilters fills the maps of the selected processes and control group.
func (s *Sampler) fillFilters() error {
	for _, pid := range s.opts.PIDs {
		if err := s.maps.pids.Put(uint32(pid), uint32(1)); err != nil {
			return fmt.Errorf("process %d: %w", pid, err)
		}
	}
	if s.opts.Cgroup == "" {
		return nil
	}
	fd, err := unix.Open(s.opts.Cgroup, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: control group %s: %w", ErrTarget, s.opts.Cgroup, err)
	}
	defer unix.Close(fd)
	err = s.maps.cgroup.Put(uint32(0), uint32(fd))
	if errors.Is(err, unix.EBADF) {
		return fmt.Errorf("%w: control group %s: not a cgroup v2 directory", ErrTarget,
			s.opts.Cgroup)
	}
	if err != nil {
		return fmt.Errorf("control group %s: %w", s.opts.Cgroup, err)
	}
	return nil
}

// programTypes holds the program type of each kind of event.
var programTypes = [...]ebpf.ProgramType{
	Clock: ebpf.PerfEvent, Tracepoint: ebpf.TracePoint, Uprobe: ebpf.Kprobe,
	OffCPU: ebpf.TracePoint,
}

func (s *Sampler) load(process *processLayout) (err error) {
	var layout switchLayout
	if s.opts.Event.Kind == OffCPU {
		if layout, err = readSwitchLayout(s.opts.Wakers); err != nil {
			return err
		}
	}
	if s.program, err = s.loadProgram(process, func(a *assembler) {
		if s.opts.Event.Kind == OffCPU {
			a.offCPU(&s.opts, layout)
		} else {
			a.sample(&s.opts)
		}
	}); err == nil && s.opts.Wakers {
		s.waking, err = s.loadProgram(process, func(a *assembler) { a.waking(layout) })
	}
	return err
}

// loadProgram loads the program that a function assembles.
func (s *Sampler) loadProgram(process *processLayout, assemble func(*assembler)) (*ebpf.Program, error) {
	a := &assembler{maps: s.maps, fd: (*ebpf.Map).FD, process: process, steady: s.steady}
	if !s.opts.HostPIDs {
		a.ns = ownNamespace()
	}
	assemble(a)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "symbolize_stack", Type: programTypes[s.opts.Event.Kind],
		Instructions: asm.Instructions(a.ins), License: "GPL",
	})
	if err != nil {
		return nil, fmt.Errorf("BPF program for %s: %w", s.opts.Event, err)
	}
	return p, nil
}

// Start attaches the programs. Without the stack of a waking the wait has no waker, so that one is
// attached first.
func (s *Sampler) Start() error {
	if s.waking != nil {
		err := s.attach(s.waking, &Options{Event: Event{Tracepoint, "sched", "sched_waking", "", ""}})
		if err != nil {
			return err
		}
	}
	return s.attach(s.program, &s.opts)
}

// Stop detaches the program and reads the remaining stacks and counts. A thread that is off CPU is
// counted with the time up to the stop.
func (s *Sampler) Stop() {
	if s.program == nil || s.stopped {
		return
	}
	s.detach()
	if st, err := s.program.Stats(); err == nil {
		s.nested = st.RecursionMisses
	}
	s.readRing()
	s.readThreads()
	s.readCounts()
	for i := range s.final { // after the counts: counters include every counted sample
		s.final[i] = s.stat(uint32(i))
	}
	for _, t := range s.tables {
		t.flush()
	}
	s.stopped = true
}

// Close releases everything. It can be called on the result of a failed New.
func (s *Sampler) Close() {
	s.detach()
	if s.reader != nil {
		s.reader.Close()
	}
	if s.waiter != nil {
		s.waiter.close()
	}
	for _, p := range []*ebpf.Program{s.program, s.waking} {
		if p != nil {
			p.Close()
		}
	}
	if s.maps != nil {
		s.maps.close()
	}
	for _, p := range []*Part{s.Part, s.previous} {
		p.Close()
	}
}

// stat returns a counter of the program.
func (s *Sampler) stat(i uint32) (n uint64) {
	if s.stopped {
		return s.final[i]
	}
	if s.maps != nil && s.maps.stats != nil {
		if err := s.maps.stats.Lookup(i, &n); err != nil {
			return 0
		}
	}
	return n
}

// batchSize is the number of counts read by one system call.
const batchSize = 4096

type batch struct {
	short  []shortKey
	keys   []countKey
	values []countValue
}

// shortKey is a countKey without the waker.
type shortKey [keySize / 8]uint64

// Drain reads the new stacks, and the counts when half of their map is used. It must be called
// before RingStacks more samples can arrive.
func (s *Sampler) Drain() {
	s.readRing()
	if made := s.stat(statKeys); made-s.emptied >= uint64(s.opts.sizes.orDefault().counts/2) {
		s.readCounts()
		s.emptied = made
	}
}

// ringHead is the size of a record's header in the ring in bytes (BPF_RINGBUF_HDR_SZ).
const ringHead = 8

// readRing reads the stacks that are in the ring when it starts. It ignores later ones: otherwise
// it might never end.
func (s *Sampler) readRing() {
	for left := s.reader.AvailableBytes(); left > 0; left -= ringHead + len(s.record.RawSample) {
		s.reader.SetDeadline(time.Now())
		if s.reader.ReadInto(&s.record) != nil {
			return // the reader reports an empty ring as an exceeded deadline
		}
		r, ok := parseRecord(s.record.RawSample)
		switch {
		case !ok:
		case r.kind == barePID:
			s.requestMappings(r.pid)
		case r.kind <= kernelStack:
			p := s.partOf(r.part)
			if p == nil {
				continue // a part already returned by Cut
			}
			bare := p.tables[r.kind].add(r.hash, r.frames)
			if bare || r.kind == userStack && p.files.add(r.frames) {
				s.requestMappings(r.pid)
			}
		}
	}
}

func (s *Sampler) requestMappings(pid uint32) {
	if s.opts.Mappings != nil {
		s.opts.Mappings(int32(pid))
	}
}

// readThreads counts the threads that are off CPU.
func (s *Sampler) readThreads() {
	now := sys.Monotonic()
	for t := range s.offThreads {
		s.still++
		v := countValue{Count: 1, Weight: uint64(max(int64(now-t.Time), 0))}
		s.syncChanges([]countKey{t.Key})
		s.addCount(&t.Key, v)
	}
}

// offThreads yields the threads that are off CPU.
func (s *Sampler) offThreads(yield func(t *offThread) bool) {
	if s.maps.threads == nil {
		return
	}
	var thread uint32
	var value []byte
	for list := s.maps.threads.Iterate(); list.Next(&thread, &value); {
		var t offThread
		whole := append(value, make([]byte, scratchRecord-len(value))...)
		if _, err := binary.Decode(whole, binary.NativeEndian, &t); err != nil || !yield(&t) {
			return
		}
	}
}

// addCount adds a count, and requests the mappings of its processes if they are needed.
func (s *Sampler) addCount(k *countKey, v countValue) {
	p := s.partOf(k.Part)
	if p == nil {
		p = s.Part
		s.move(p, &k.Part, &k.User, &k.Kernel)
	}
	epochs := [2]uint64{s.epoch(p, k.Kernel, k.Time)}
	if w := &k.Waker; *w != (threadKey{}) {
		if !sameNumber(w.Part, p.number) {
			s.move(p, &w.Part, &w.User, &w.Kernel)
		}
		epochs[1] = s.epoch(p, w.Kernel, w.Time)
	}
	user, waker := p.counts.add(p.tables, k, epochs, v)
	if p.tables[userStack].isBare(user) {
		s.requestMappings(k.PID)
	}
	if p.tables[userStack].isBare(waker) {
		s.requestMappings(k.Waker.PID)
	}
}

// readCounts empties the map of counts. A sample can be lost if it is added to a count between its
// lookup and its deletion, at most one per CPU: LostDrain.
func (s *Sampler) readCounts() {
	if s.batch.keys == nil {
		s.batch = batch{make([]shortKey, batchSize), make([]countKey, batchSize),
			make([]countValue, batchSize)}
	}
	var keys any = s.batch.keys
	if !s.opts.Wakers {
		keys = s.batch.short
	}
	var cursor ebpf.MapBatchCursor
	for {
		n, err := s.maps.counts.BatchLookupAndDelete(&cursor, keys, s.batch.values, nil)
		for i := range n {
			if !s.opts.Wakers {
				*(*shortKey)(unsafe.Pointer(&s.batch.keys[i])) = s.batch.short[i]
			}
		}
		s.syncChanges(s.batch.keys[:n])
		for i := range n {
			s.addCount(&s.batch.keys[i], s.batch.values[i])
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // not the end of the map
			s.readErr = err
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// epoch returns the epoch of a kernel stack at a time, 0 if it is not far. Within an epoch equal
// stacks are the same functions.
func (s *Sampler) epoch(p *Part, kernel hash, time uint64) uint64 {
	if time == 0 || s.opts.Changes == nil {
		return time
	}
	t := p.tables[kernelStack]
	return s.opts.Changes.Epoch(t.far[t.id(kernel)], time)
}

// syncChanges reads the stacks and changes that the epochs of these counts depend on.
func (s *Sampler) syncChanges(keys []countKey) {
	if s.opts.Changes == nil {
		return
	}
	for i := range keys {
		if keys[i].Time != 0 || keys[i].Waker.Time != 0 {
			s.readRing()
			s.opts.Changes.Sync()
			return
		}
	}
}

// waiter waits for the program's wakeup, which announces short-lived data.
type waiter struct {
	poll  *os.File // registered with the runtime's poller, to block no thread
	conn  syscall.RawConn
	event int
}

// newWaiter returns a waiter for the ring with this descriptor. Only records sent with a wakeup end
// a wait.
func newWaiter(ring int) (w *waiter, err error) {
	w = &waiter{event: -1}
	defer func() {
		if err != nil {
			w.close()
			w, err = nil, fmt.Errorf("wait for the ring of stacks: %w", err)
		}
	}()
	if w.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return w, err
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return w, err
	}
	if err = unix.SetNonblock(poll, true); err != nil {
		unix.Close(poll)
		return w, err
	}
	w.poll = os.NewFile(uintptr(poll), "epoll")
	if w.conn, err = w.poll.SyscallConn(); err != nil {
		return w, err
	}
	for _, e := range []unix.EpollEvent{{Fd: int32(ring), Events: unix.EPOLLIN | unix.EPOLLET},
		{Fd: int32(w.event), Events: unix.EPOLLIN}} {
		if err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, int(e.Fd), &e); err != nil {
			return w, err
		}
	}
	return w, w.poll.SetReadDeadline(time.Time{}) // fails if the runtime cannot poll the file
}

func (w *waiter) close() {
	if w.poll != nil {
		w.poll.Close()
	}
	if w.event >= 0 {
		unix.Close(w.event)
		w.event = -1
	}
}

// Wait waits for at most this long. It returns early, with true, when a process is first sampled
// with a bare address, which only its mappings can resolve, or after Wake, which ends this and all
// later calls. The caller then calls Drain.
func (s *Sampler) Wait(most time.Duration) (woken bool) {
	if s.waiter.poll.SetReadDeadline(time.Now().Add(most)) != nil {
		return false // closed
	}
	var events [3]unix.EpollEvent
	err := s.waiter.conn.Read(func(fd uintptr) bool {
		n, _ := unix.EpollWait(int(fd), events[:], 0)
		return n > 0
	})
	return err == nil
}

// WakeBy makes Wait return for the processes of another sampler, too.
func (s *Sampler) WakeBy(o *Sampler) error {
	var err error
	err1 := s.waiter.conn.Control(func(poll uintptr) {
		err = unix.EpollCtl(int(poll), unix.EPOLL_CTL_ADD, o.maps.ring.FD(),
			&unix.EpollEvent{Fd: int32(o.maps.ring.FD()), Events: unix.EPOLLIN | unix.EPOLLET})
	})
	if err = cmp.Or(err, err1); err != nil {
		return fmt.Errorf("wait for the ring of stacks: %w", err)
	}
	return nil
}

// Wake ends Wait. It is safe for concurrent use.
func (s *Sampler) Wake() {
	_, _ = unix.Write(s.waiter.event, binary.NativeEndian.AppendUint64(nil, 1))
}
