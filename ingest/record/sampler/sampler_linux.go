package sampler

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// Sampler is a program in the kernel and its counts. Its methods are for one goroutine, but Wake:
// New, Start, Wait and Drain in turn, Stop, Write, Close.
type Sampler struct {
	opts    Options
	maps    *kernelMaps
	program *ebpf.Program
	reader  *ringbuf.Reader
	waiter  *waiter
	attached
	*Part            // that is being sampled
	previous *Part   // between Turn and Cut: the one before
	before   soFar   // of all that were cut off
	carried  carried // stacks of threads that are off CPU since
	steady   Range
	record   ringbuf.Record
	batch    batch
	emptied  uint64 // statKeys when the counts were emptied last
	memory   uint64
	nested   uint64
	still    uint64 // threads off CPU when the recording stopped
	stopped  bool
	readErr  error            // with which the counts could not be read last
	final    [numStats]uint64 // the program's counters when it stopped
}

// New loads the program, which samples nothing yet. Errors name the refused feature.
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
	if o.Event.Kind == OffCPU {
		s.opts.skip = switchRanges()
	}
	if s.Part, err = newPart(&s.opts, 0, s.steady); err != nil {
		return s, err
	}
	process := readProcessLayout()
	err = s.prepare(process)
	// Before Linux 5.11 maps count against a limit that is too small for these. Where it
	// cannot be lifted the maps cannot be made, which is the error to report. (Package rlimit
	// of the library finds this out by a map that it makes whenever a program starts.)
	if errors.Is(err, unix.EPERM) && liftMemlock() {
		s.maps.close()
		err = s.prepare(process)
	}
	if err != nil && process != nil { // it may not be allowed to read the kernel's memory
		s.maps.close()
		err = s.prepare(nil)
	}
	if err != nil {
		return s, err
	}
	if s.reader, err = ringbuf.NewReader(s.maps.ring); err != nil {
		return s, fmt.Errorf("ring of stacks: %w", err)
	}
	s.memory = s.maps.memory()
	s.waiter, err = newWaiter(s.maps.ring.FD())
	return s, err
}

// prepare makes the maps and loads the program. After an error there may be maps.
func (s *Sampler) prepare(process *processLayout) (err error) {
	if s.maps, err = newMaps(&s.opts, process.knows()); err != nil {
		return err
	}
	if err = s.fillFilters(); err != nil {
		return err
	}
	return s.load(process)
}

// liftMemlock removes the limit of locked memory, and reports whether there was one and it could.
func liftMemlock() bool {
	none := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	var old unix.Rlimit
	return unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &none, &old) == nil && old.Cur != none.Cur
}

// fillFilters writes down whom to sample.
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
		return fmt.Errorf("%w: control group %s: it is no directory of cgroup v2", ErrTarget,
			s.opts.Cgroup)
	}
	if err != nil {
		return fmt.Errorf("control group %s: %w", s.opts.Cgroup, err)
	}
	return nil
}

// programTypes are by kind of event.
var programTypes = [...]ebpf.ProgramType{
	Clock: ebpf.PerfEvent, Tracepoint: ebpf.TracePoint, Uprobe: ebpf.Kprobe,
	OffCPU: ebpf.TracePoint,
}

func (s *Sampler) load(process *processLayout) error {
	a := &assembler{maps: s.maps, fd: (*ebpf.Map).FD, process: process, steady: s.steady}
	if !s.opts.HostPIDs {
		a.ns = ownNamespace()
	}
	if s.opts.Event.Kind == OffCPU {
		layout, err := readSwitchLayout()
		if err != nil {
			return err
		}
		a.offCPU(&s.opts, layout)
	} else {
		a.sample(&s.opts)
	}
	var err error
	s.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "symbolize_stack", Type: programTypes[s.opts.Event.Kind],
		Instructions: asm.Instructions(a.ins), License: "GPL",
	})
	if err != nil {
		return fmt.Errorf("BPF program for %s: %w", s.opts.Event, err)
	}
	return nil
}

// Start attaches the program.
func (s *Sampler) Start() error { return s.attach(s.program, &s.opts) }

// Stop detaches the program and takes the rest. A thread that is off CPU then is
// counted by the time till then.
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
	for i := range s.final { // after the counts, which were sampled before
		s.final[i] = s.stat(uint32(i))
	}
	for _, t := range s.tables {
		t.flush()
	}
	s.stopped = true
}

// Close releases everything. It may be called on New's result with an error.
func (s *Sampler) Close() {
	s.detach()
	if s.reader != nil {
		s.reader.Close()
	}
	if s.waiter != nil {
		s.waiter.close()
	}
	if s.program != nil {
		s.program.Close()
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
