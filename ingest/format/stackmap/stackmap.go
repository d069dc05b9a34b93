// Package stackmap reads the stacks that BPF programs collected, in every form in which they are
// dumped or printed, and gives for all of them the same Set: distinct stacks, and samples with
// counts and labels.
//
// # Values of a BPF_MAP_TYPE_STACK_TRACE map
//
// A value is an array of addresses, or with BPF_F_STACK_BUILD_ID of struct
// bpf_stack_build_id (include/uapi/linux/bpf.h), 32 bytes a frame, innermost first:
//
//	0   s32      status: 0 the stack ends here, 1 build ID and file offset, 2 address
//	4   u8[20]   build ID, padded with zeros; its length is not stored
//	24  u64      offset in the file, or the address where no build ID was to be had
//
// An offset below 0 is of an address below the file's mapping, and in none.
//
// Counts lie in another map, under a key with the two stack ids that bpf_get_stackid returned, user
// and kernel, and labels. A negative id is an errno.
//
// # Forms
//
//   - Raw: the dump that package bundle specifies, of the stack map and of the counts.
//   - Bpftool: `bpftool map dump` as -j, -p and plain text. Only its hexadecimal bytes
//     are decoded: its "formatted" output is not always JSON, nor right.
//   - Bare: values one behind the other, and nothing else; the caller gives their size.
//   - Bpftrace: `ustack(build_id)` (bpftrace 0.25, format_build_id_stack in
//     src/types_format.cpp): a line per frame, of 40 hexadecimal digits, a blank and the
//     offset as 0x…, or of the address alone, in hexadecimal without 0x. They are in
//     keys, "@[\n…\n, comm, pid]: N", and in the output of printf, where each stack counts 1.
//     kstack prints "symbol+offset", raw addresses, or both ("perf" mode).
//   - Systing: the `.systing` export, JSON lines (docs/PROFILE_EXPORT_FORMAT.md there):
//     records p, t, f, s and x. Frames that systing could not name are
//     "unknown ([buildid:HEX]) <0xOFF>", or "buildid:HEX+0xOFF" without labels
//     (render_unresolved_build_id in src/stack_recorder.rs). Its other outputs are not read,
//     on purpose: the folded lines of systing-analyze have lost the offsets of such frames
//     ("unknown [[buildid:HEX]]", format_frame in src/analyze/flamegraph.rs), and Perfetto
//     traces and DuckDB files have no more than the export.
//   - Gadget: Inspektor Gadget's `-o json`, `jsonpretty` and `yaml`: the field buildid
//     beside addresses of a user stack, "[0]HEX +OFF; [1]ADDRESS; …", with numbers before
//     frames or without (docs/reference/stack-traces.mdx, readUserStackMap in
//     pkg/operators/ustack/ustack_linux.go). Kernel stacks are names alone.
//
// # Limits of the forms
//
// No form has the time of a sample or its CPU. A stack map alone has no counts, no pid and no comm;
// a count map has the labels that its key has. Bpftrace prints labels as the script's author
// ordered them: a word is taken for the comm and a number for the pid where there is one of each.
// Systing has pid, tid and comm. Inspektor Gadget has those of the event.
package stackmap

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest/fold/intern"
)

// Form is a way in which stacks are dumped or printed.
type Form uint8

// The forms, see the package comment.
const (
	NoForm Form = iota
	Raw
	Bpftool
	Bare
	Bpftrace
	Systing
	Gadget
)

var formText = [...]string{
	NoForm: "no form", Raw: "raw dump", Bpftool: "bpftool dump", Bare: "bare values",
	Bpftrace: "bpftrace text", Systing: "systing export", Gadget: "Inspektor Gadget output",
}

// String names the form, "bpftool dump".
func (f Form) String() string {
	if int(f) < len(formText) {
		return formText[f]
	}
	return "unknown form"
}

// Errors of Read. ErrNotStacks is data that hold no stacks, ErrKey a count map without a
// description of its key.
var (
	ErrNotStacks = errors.New("no stacks in it")
	ErrKey       = errors.New("the fields of its key are not known")
)

// Status is the kind of a frame.
type Status uint8

// The statuses. The first three are the kernel's.
const (
	Empty Status = iota
	Valid        // a build ID and an offset in that file
	IP           // an address
	Named        // the name of a function, that whoever printed the stack found
)

// Frame is one frame as it was dumped: return addresses are as recorded.
type Frame struct {
	Offset uint64 // in the file; the address; of a Named frame the distance from its function
	Ref    uint32 // Valid: in Set.IDs; Named: in Set.Symbols
	Status Status
}

// Symbol is the name of a Named frame.
type Symbol struct {
	Name   string
	Object string // its file, as printed; "" if not
	Kernel bool
}

// Cause is whether a part of a stack is there, or why not.
type Cause uint8

// The causes. Those from BucketTaken on are losses.
const (
	Absent      Cause = iota // there is no such part: a user stack of a kernel thread
	Present                  // Part.Stack is it
	BucketTaken              // -EEXIST: another stack lay in its bucket
	NoMemory                 // -ENOMEM
	NotTaken                 // -EFAULT for both parts, or an empty stack
	NotDumped                // its id is not in the dump: overwritten or deleted since
	OtherError               // another errno
	NumCauses   = iota
)

var causeText = [NumCauses]string{
	Absent: "absent", Present: "present", BucketTaken: "bucket taken", NoMemory: "no memory",
	NotTaken: "no stack taken", NotDumped: "not in the dump", OtherError: "error",
}

// String returns the cause in a few words.
func (c Cause) String() string {
	if c < NumCauses {
		return causeText[c]
	}
	return "unknown cause"
}

// Lost reports whether a stack was there that could not be kept.
func (c Cause) Lost() bool { return c >= BucketTaken }

// Part is the kernel's or the user's part of a sample's stack.
type Part struct {
	Stack uint32 // number in the Set, if Present
	Cause Cause
}

// Sample is a stack with its labels, and how often it was met.
type Sample struct {
	Kernel, User Part
	PID, TID     int32 // of the process and the thread; -1 if not known
	Comm         string
	Event        uint16 // in Set.Events
	Count        uint64
	Weight       uint64
	// Program is which of the programs that the process ran, or of the processes that had its
	// number, user addresses are of: 0 but in bundles.
	Program uint32
	// KernelTime is when the kernel's addresses are to be looked up, by the clock of the bundle's
	// records, if Timed; else it is unknown when they were taken.
	KernelTime uint64
	Timed      bool
	// The user's part was taken at UserTime, by CLOCK_MONOTONIC, or less than bundle.UserTimeSpan
	// after it; 0 if that is not known.
	UserTime uint64
}

// Event is the event that samples were taken at.
type Event struct {
	Name, Unit string
	Period     uint64 // weight of one, 0 if it varies
}

// Labels are the labels that the samples of a Set have.
type Labels struct{ PID, TID, Comm bool }

// Names lists the labels that there are.
func (l Labels) Names() (out []string) {
	for i, has := range [...]bool{l.PID, l.TID, l.Comm} {
		if has {
			out = append(out, labelNames[i])
		}
	}
	return out
}

var labelNames = [...]string{"pid", "tid", "comm", "cpu", "time"}

func (l Labels) with(o Labels) Labels {
	return Labels{PID: l.PID || o.PID, TID: l.TID || o.TID, Comm: l.Comm || o.Comm}
}

// Missing lists the labels that there are not, times and CPU among them, which no form has.
func (l Labels) Missing() (out []string) {
	have := l.Names()
	for _, name := range labelNames {
		if !slices.Contains(have, name) {
			out = append(out, name)
		}
	}
	return out
}

// Set is the result of reading: stacks, numbered as they came, and samples. With an error
// come the whole stacks before it.
type Set struct {
	Form    Form
	IDs     []buildid.ID // distinct, inexact but for those that a text gives in full
	Symbols []Symbol
	Events  []Event
	Samples []Sample
	Labels  Labels
	// Counted: samples have counts of their own; without a count map each stack of a map counts 1.
	Counted bool
	// LostSamples are those that the recorder reports as lost.
	LostSamples uint64
	// Unused are stacks of the dump that no count refers to.
	Unused int
	// Skipped counts skipped input that is no stack: other lines, events, records.
	Skipped uint64
	// Warnings are errors that could be skipped, the first ones of many.
	Warnings []error

	frames    []Frame         // distinct ones
	stacks    *intern.ListSet // stacks as numbers of frames
	addresses []bool          // by stack: whether one of its frames is an IP
	totals    *Totals         // once they were wanted

	idOf     map[[buildid.KeyLen]byte]uint32
	symbolOf map[Symbol]uint32
	frameOf  *intern.Pairs     // numbers frames
	commOf   map[string]string // so that equal ones share their bytes
	scratch  []uint32
	unsaid   int // warnings beyond those that are kept
	// left bounds the sums of counts and weights of further samples.
	left [2]uint64
	cut  bool // one was cut: it is reported once
	// maxFrames and maxSamples are the limits; less in tests.
	maxFrames, maxSamples int
	overfull              bool   // stacks were left out
	leftOut               uint64 // samples beyond maxSamples
}

// NumStacks returns how many distinct stacks there are.
func (s *Set) NumStacks() int { return s.stacks.Len() }

// Stack gives the frames of a stack, innermost first, with their places in it.
func (s *Set) Stack(n uint32) iter.Seq2[int, Frame] {
	return func(yield func(int, Frame) bool) {
		for i, number := range s.stacks.At(n) {
			if !yield(i, s.frames[number]) {
				return
			}
		}
	}
}

// Numbers returns the frames of a stack as numbers, innermost first. The slice is the
// Set's own.
func (s *Set) Numbers(stack uint32) []uint32 { return s.stacks.At(stack) }

// Frames returns the distinct frames of all stacks, by number. The slice is the Set's own.
func (s *Set) Frames() []Frame { return s.frames }

// HasAddresses reports whether a stack has frames that are an IP.
func (s *Set) HasAddresses(stack uint32) bool { return s.addresses[stack] }

// kernelHalf is where the kernel's addresses begin on all machines with 64 bits.
const kernelHalf = 1 << 63

// isKernel reports whether a stack is one of the kernel, by its frames: those have no
// build IDs, and addresses in the upper half.
func (s *Set) isKernel(n uint32) bool {
	for _, f := range s.Stack(n) {
		switch f.Status {
		case Valid:
			return false
		case Named:
			return s.Symbols[f.Ref].Kernel
		case IP:
			return f.Offset >= kernelHalf
		}
	}
	return false
}

// Totals are sums over a Set.
type Totals struct {
	// Frames of distinct stacks, by their kind.
	Valid, Addresses, Named int
	// Samples that have no such part.
	NoKernel, NoUser uint64
	// Samples with a lost part, each by one cause.
	Lost map[Cause]uint64
}

// Totals returns the sums over the samples read.
func (s *Set) Totals() *Totals {
	if s.totals != nil {
		return s.totals
	}
	t := &Totals{Lost: make(map[Cause]uint64)}
	for n := range s.NumStacks() {
		for _, number := range s.Numbers(uint32(n)) {
			switch s.frames[number].Status {
			case Valid:
				t.Valid++
			case Named:
				t.Named++
			default:
				t.Addresses++
			}
		}
	}
	for i := range s.Samples {
		sm := &s.Samples[i]
		if sm.Kernel.Cause == Absent {
			t.NoKernel += sm.Count
		}
		if sm.User.Cause == Absent {
			t.NoUser += sm.Count
		}
		if worst := max(sm.Kernel.Cause, sm.User.Cause); worst.Lost() {
			t.Lost[worst] += sm.Count
		}
	}
	s.totals = t
	return t
}

// Discard releases stacks and samples, which are most of a Set. Totals and all else that
// describes them stay.
func (s *Set) Discard() {
	s.Totals()
	s.Samples, s.frames, s.addresses, s.stacks = nil, nil, nil, intern.NewListSet()
}

// Addresses returns a Set of addresses in the kernel that somebody counted, whose samples
// have the order of list: each is of a stack of one address and counts 1. A list that is
// longer than a Set can be is an error.
func Addresses(list []uint64) (*Set, error) {
	if len(list) > maxSamples {
		return nil, fmt.Errorf("%d addresses, over the limit of %d", len(list), maxSamples)
	}
	s := newSet(Raw)
	s.Counted = true
	for _, at := range list {
		part := s.add([]Frame{{Offset: at, Status: IP}})
		s.count(Sample{Kernel: part, PID: -1, TID: -1, Count: 1})
	}
	s.finish()
	return s, nil
}
