package sampler

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// Sampler is a program in the kernel and what it has counted. Its methods are for one
// goroutine: New, Start, Drain now and then, Stop, Write, Close.
type Sampler struct {
	opts    Options
	maps    *kernelMaps
	program *ebpf.Program
	reader  *ringbuf.Reader
	attached
	tables  [2]*table // by kind of stack
	counts  counts
	record  ringbuf.Record
	batch   batch
	emptied uint64 // what statKeys was when the counts were emptied last
	memory  uint64
	nested  uint64
}

// New loads the program, which samples nothing yet. Errors say what the kernel refuses.
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
	for i := range s.tables {
		if s.tables[i], err = newTable(uint32(i)); err != nil {
			return s, err
		}
	}
	s.counts = newCounts()
	if s.maps, err = newMaps(&s.opts); err != nil {
		return s, err
	}
	if err = s.fillFilters(); err != nil {
		return s, err
	}
	if err = s.load(); err != nil {
		return s, err
	}
	if s.reader, err = ringbuf.NewReader(s.maps.ring); err != nil {
		return s, fmt.Errorf("ring of stacks: %w", err)
	}
	s.memory = s.maps.memory()
	return s, nil
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
		return fmt.Errorf("control group %s: %w", s.opts.Cgroup, err)
	}
	defer unix.Close(fd)
	if err := s.maps.cgroup.Put(uint32(0), uint32(fd)); err != nil {
		return fmt.Errorf("control group %s: %w: a directory of cgroup v2 is wanted", s.opts.Cgroup, err)
	}
	return nil
}

// programTypes are by kind of event.
var programTypes = [...]ebpf.ProgramType{
	Clock: ebpf.PerfEvent, Tracepoint: ebpf.TracePoint, Uprobe: ebpf.Kprobe, OffCPU: ebpf.TracePoint,
}

func (s *Sampler) load() error {
	a := &assembler{maps: s.maps}
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

// Stop detaches the program and takes what it has left.
func (s *Sampler) Stop() {
	if s.program == nil {
		return
	}
	s.detach()
	if st, err := s.program.Stats(); err == nil {
		s.nested = st.RecursionMisses
	}
	s.readRing()
	s.readCounts()
}

// Close releases everything. It may be called on what New returned with an error.
func (s *Sampler) Close() {
	s.detach()
	if s.reader != nil {
		s.reader.Close()
	}
	if s.program != nil {
		s.program.Close()
	}
	if s.maps != nil {
		s.maps.close()
	}
	for _, t := range s.tables {
		if t != nil {
			t.close()
		}
	}
}

// Stats says what was sampled; it is complete after Stop.
func (s *Sampler) Stats() Stats {
	st := Stats{Samples: s.stat(statSamples) + s.nested, Lost: make(map[string]uint64),
		UserStacks: s.tables[userStack].stacks(), KernelStacks: s.tables[kernelStack].stacks(),
		KernelMemory: s.memory}
	lose := func(cause string, n uint64) {
		if n > 0 {
			st.Lost[cause] += n
		}
	}
	lose(LostCounts, s.stat(statNoCount))
	lose(LostScratch, s.stat(statNoScratch))
	lose(LostOffCPU, s.stat(statNoThread))
	lose(LostNested, s.nested)
	lose(LostKeys, s.counts.refused)
	ring, stacks := s.counts.withoutStack(s.tables)
	lose(LostRing, ring)
	lose(LostStacks, stacks)
	return st
}

// stat returns a counter of the program.
func (s *Sampler) stat(i uint32) (n uint64) {
	if s.maps != nil && s.maps.stats != nil {
		if err := s.maps.stats.Lookup(i, &n); err != nil {
			return 0
		}
	}
	return n
}
