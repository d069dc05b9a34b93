package sampler

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// DefaultFrequency is how often a clock samples each CPU, per second, by default. It is perf's
// advice: no divisor of periodic work at 100 Hz.
const DefaultFrequency = 99

// MaxFrequency is the most samples per second and CPU that a clock is asked for.
const MaxFrequency = 50_000

// Depth is how many frames of each part of a stack are taken, as many as
// kernel.perf_event_max_stack allows by default.
const Depth = 127

// EventKind is where samples are taken.
type EventKind uint8

// The kinds of events.
const (
	Clock      EventKind = iota // cpu-clock on each CPU
	Tracepoint                  // GROUP:NAME
	Uprobe                      // uprobe:PATH:FUNCTION
	OffCPU                      // a thread stops running; weighs the time till it goes on, or Stop
)

// outsideBit marks the number of a process in the initial namespace against one in that of the
// recorder, which does not see it. Numbers of processes are below 2^22 (PID_MAX_LIMIT).
const outsideBit = 1 << 30

// IsOutside reports whether a process is none of the recorder's namespace: less 2^30 it is
// the number that the process has on the host.
func IsOutside(pid int32) bool { return pid&outsideBit != 0 }

// Event is the event that samples are taken at.
type Event struct {
	Kind        EventKind
	Group, Name string // of a tracepoint
	Path        string // of a uprobe's file
	Function    string // of a uprobe
}

// ErrTarget: there is no such process or control group to sample.
var ErrTarget = errors.New("nothing to sample")

// ErrEvent is the error of ParseEvent for text of another form.
var ErrEvent = errors.New("no event that can be sampled")

// ParseEvent reads "cpu-clock", "GROUP:NAME" for a tracepoint, or
// "uprobe:PATH:FUNCTION".
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

// String returns the event as perf names it.
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

// Options select the samples. Without PIDs and Cgroup everything is.
type Options struct {
	Event     Event
	Frequency int    // samples per second and CPU of a clock; 0: DefaultFrequency
	PIDs      []int  // processes
	Cgroup    string // directory of a control group, in which and below which all is sampled
	// Mappings is called, from the goroutine of Drain, with the number of each process that
	// has user frames without a build ID, or with one that was not met before: its mappings
	// locate them.
	Mappings func(pid int32)
	// HostPIDs: processes have the numbers of the initial namespace, in PIDs, Mappings
	// and the output, though this process may live in another one. Else they have those of
	// the namespace of this process, and those that it does not see IsOutside.
	HostPIDs bool

	// Changes distinguishes the stacks within BPF programs or modules by time. With nil each is
	// counted alone, under its time.
	Changes Changes

	sizes mapSizes // tests make them small
	skip  []Range  // functions that off-CPU stacks do not begin with
}

// mapSizes are the sizes of maps: entries, and bytes of the ring.
type mapSizes struct{ counts, seen, threads, ring uint32 }

// RingStacks is how many stacks as deep as can be the ring holds.
const RingStacks = ringSize / (Depth * (userFrame + kernelFrame))

const ringSize = 8 << 20 // bytes

// orDefault returns the sizes, where one is 0 that of all recordings. The ring holds 2,000
// stacks of full depth, between one drain and the next; of the counts half may fill up in
// that time.
func (s mapSizes) orDefault() mapSizes {
	return mapSizes{
		counts: cmp.Or(s.counts, 1<<16), seen: cmp.Or(s.seen, 1<<16),
		threads: cmp.Or(s.threads, 1<<16), ring: cmp.Or(s.ring, ringSize),
	}
}

// Stats counts the samples.
type Stats struct {
	Samples      uint64            // taken, those that are lost with them
	Lost         map[string]uint64 // samples, by cause
	UserStacks   int               // distinct
	KernelStacks int
	KernelMemory uint64 // bytes that the maps took in the kernel
}

// The causes in Stats.Lost. Of LostRing, LostFile and LostStacks the sample is counted, under its
// process and the other stack if that was received. LostNested is the kernel's count for
// tracepoints and functions, before PIDs and Cgroup are applied; of a clock it does not
// count samples that hit another BPF program, or the bpf system call.
const (
	LostCounts  = "no room in the map of counts"
	LostRing    = "stack not received: the ring buffer was full"
	LostFile    = "stack not received: the temporary file could not be written"
	LostStacks  = "more distinct stacks than are kept"
	LostKeys    = "more distinct counts than are kept"
	LostNested  = "sampled while a BPF program ran on the CPU"
	LostDrain   = "added to a count that was just being read"
	LostRead    = "the counts could not be read"
	LostScratch = "no memory to take a stack in"
	LostReturn  = "a thread ran again unseen, so that it is not known for how long it had stopped"
	LostOffCPU  = "no room to remember a thread that stopped running"
)
