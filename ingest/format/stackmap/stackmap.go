package stackmap

import (
	"errors"
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
