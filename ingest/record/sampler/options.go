package sampler

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// DefaultFrequency is the default number of samples per second and CPU. As perf recommends, it does
// not divide 100 Hz, the rate of periodic work.
const DefaultFrequency = 99

// MaxFrequency is the highest frequency of a clock.
const MaxFrequency = 50_000

// Depth is the maximum number of frames of a user or kernel stack: the default of
// kernel.perf_event_max_stack.
const Depth = 127

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events.
const (
	Clock      EventKind = iota // cpu-clock on each CPU
	Tracepoint                  // GROUP:NAME
	Uprobe                      // uprobe:PATH:FUNCTION
	OffCPU                      // a thread stops; weight: time until it runs again, or Stop
)

// outsideBit marks the initial ID of a process that is not visible in the recorder's PID namespace.
// Process IDs are below 2^22 (PID_MAX_LIMIT).
const outsideBit = 1 << 30

// IsOutside reports whether a process is outside the recorder's PID namespace. Its ID on the host
// is pid - 2^30.
func IsOutside(pid int32) bool { return pid&outsideBit != 0 }

// Event is the event at which samples are recorded.
type Event struct {
	Kind        EventKind
	Group, Name string // Tracepoint
	Path        string // Uprobe: file
	Function    string // Uprobe
}

// ErrTarget: the selected process or control group does not exist.
var ErrTarget = errors.New("nothing to sample")

// ErrEvent is the error of ParseEvent for other text.
var ErrEvent = errors.New("not an event that can be sampled")

// ParseEvent parses "cpu-clock", "GROUP:NAME" for a tracepoint, or "uprobe:PATH:FUNCTION".
func ParseEvent(text string) (Event, error) {
	if rest, ok := strings.CutPrefix(text, "uprobe:"); ok {
		i := strings.LastIndexByte(rest, ':')
		if i <= 0 || i == len(rest)-1 {
			return Event{}, fmt.Errorf("%w: %q: want uprobe:PATH:FUNCTION", ErrEvent, text)
		}
		return Event{Kind: Uprobe, Path: rest[:i], Function: rest[i+1:]}, nil
	}
	if text == "cpu-clock" {
		return Event{}, nil
	}
	group, name, ok := strings.Cut(text, ":")
	if !ok || group == "" || name == "" || strings.ContainsAny(text, "/ ") ||
		strings.Contains(name, ":") {
		return Event{}, fmt.Errorf("%w: %q: want cpu-clock, GROUP:TRACEPOINT or "+
			"uprobe:PATH:FUNCTION", ErrEvent, text)
	}
	return Event{Kind: Tracepoint, Group: group, Name: name}, nil
}

// String returns perf's name of the event.
func (e Event) String() string {
	switch e.Kind {
	case Tracepoint:
		return e.Group + ":" + e.Name
	case Uprobe:
		return "uprobe:" + e.Path + ":" + e.Function
	case OffCPU:
		return "off-cpu"
	}
	return "cpu-clock"
}

// Options select the samples: all of the machine without PIDs and Cgroup.
type Options struct {
	Event     Event
	Frequency int    // samples per second and CPU of a clock; 0: DefaultFrequency
	Wall      bool   // sample threads off CPU, too, as an event of its own: see Events
	Wakers    bool   // of threads off CPU, sample their wakers
	PIDs      []int  // processes
	Cgroup    string // directory of a control group, sampled with its subgroups
	// Mappings is called, from the goroutine of Drain, with each process that has user frames
	// without a build ID, or with a new build ID: its mappings locate them.
	Mappings func(pid int32)
	// HostPIDs: process IDs in PIDs, Mappings and the output are of the initial namespace, even if
	// this process is in another one. Otherwise they are of the recorder's namespace, and IsOutside
	// for processes outside it.
	HostPIDs bool

	// Changes separates stacks in BPF programs or modules by time. If it is nil each such sample is
	// counted alone, with its time.
	Changes Changes

	sizes      mapSizes // set by tests
	interrupts []Range  // functions that run interrupts, with Wakers
	// prefix begins the names of the dumps.
	prefix string
}

// Events returns the options of the samplers, one for each event.
func (o Options) Events() []Options {
	if !o.Wall {
		return []Options{o}
	}
	o.Wall = false
	waits := o
	o.Wakers = false
	waits.Event, waits.prefix = Event{Kind: OffCPU}, waitPrefix
	return []Options{o, waits}
}

// keySize returns the size of the key of the counts in bytes.
func (o *Options) keySize() uint32 {
	if o.Wakers {
		return wakerKeySize
	}
	return keySize
}

// mapSizes holds the sizes of maps: entries, and bytes of the ring.
type mapSizes struct{ counts, seen, threads, ring uint32 }

// RingStacks is the number of stacks of full depth that fit into the ring.
const RingStacks = ringSize / (Depth * (userFrame + kernelFrame))

const ringSize = 8 << 20 // bytes

// orDefault replaces sizes of 0 by the defaults. Between two drains the ring holds 2,000 stacks of
// full depth, and half of the counts may fill up.
func (s mapSizes) orDefault() mapSizes {
	return mapSizes{
		counts: cmp.Or(s.counts, 1<<16), seen: cmp.Or(s.seen, 1<<16),
		threads: cmp.Or(s.threads, 1<<16), ring: cmp.Or(s.ring, ringSize),
	}
}

// Stats counts the samples.
type Stats struct {
	Samples      uint64            // including lost ones
	Lost         map[string]uint64 // samples, by cause
	UserStacks   int               // distinct
	KernelStacks int
	KernelMemory uint64 // bytes of the maps
}

// Add adds the counts of another sampler.
func (s *Stats) Add(o *Stats) {
	s.Samples += o.Samples
	for cause, n := range o.Lost {
		s.Lost[cause] += n
	}
	s.UserStacks += o.UserStacks
	s.KernelStacks += o.KernelStacks
	s.KernelMemory += o.KernelMemory
}

// Causes in Stats.Lost. Samples with LostRing, LostFile and LostStacks are counted, with their
// process and the other stack if it was received. LostNested is the kernel's count for tracepoints
// and functions, before PIDs and Cgroup are applied. For a clock it does not include samples that
// hit another BPF program or the bpf system call.
const (
	LostCounts  = "the map of counts was full"
	LostRing    = "stack not received: the ring buffer was full"
	LostFile    = "stack not received: the temporary file could not be written"
	LostStacks  = "limit of distinct stacks reached"
	LostKeys    = "limit of distinct counts reached"
	LostNested  = "sampled while a BPF program ran on the CPU"
	LostDrain   = "added to a count while it was read"
	LostRead    = "the counts could not be read"
	LostScratch = "no scratch memory for the stack"
	LostReturn  = "a thread ran again unseen: time off CPU unknown"
	LostOffCPU  = "the map of stopped threads was full"
)
