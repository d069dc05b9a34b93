package stackmap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"symbolize/buildid"
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

// What Read refuses. ErrNotStacks is data that hold no stacks, ErrKey a count map
// whose key nobody describes.
var (
	ErrNotStacks = errors.New("no stacks in it")
	ErrKey       = errors.New("the fields of its key are not known")
)

// Status says what a frame has.
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
	Object string // what it lies in, as printed; "" if not
	Kernel bool
}

// Cause says whether a part of a stack is there, or why not.
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
}

// Event is what samples were taken at.
type Event struct {
	Name, Unit string
	Period     uint64 // weight of one, 0 if it varies
}

// Labels says which labels the samples of a Set have.
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

// Missing lists the labels that there are not, times and CPU among them, which no
// form has.
func (l Labels) Missing() (out []string) {
	have := l.Names()
	for _, name := range labelNames {
		if !slices.Contains(have, name) {
			out = append(out, name)
		}
	}
	return out
}

// Set is what was read: stacks, numbered as they came, and samples. With an error
// comes what was whole before it.
type Set struct {
	Form    Form
	IDs     []buildid.ID // distinct, inexact but for those that a text gives in full
	Symbols []Symbol
	Events  []Event
	Samples []Sample
	Labels  Labels
	// Counted says that samples have counts of their own; without a count map each stack
	// of a map counts 1.
	Counted bool
	// LostSamples are those that whoever counted says that it lost.
	LostSamples uint64
	// Unused are stacks of the dump that no count refers to.
	Unused int
	// Skipped counts what was passed over as no stack: other lines, events, records.
	Skipped uint64
	// Warnings are what is wrong and could be passed over, the first ones of many.
	Warnings []error

	frames []Frame
	ends   []uint32

	idOf     map[buildid.ID]uint32
	symbolOf map[Symbol]uint32
	stackOf  map[string]uint32
	scratch  []byte
	unsaid   int // warnings beyond those that are kept
	// left is what counts and weights of further samples may add up to.
	left [2]uint64
	cut  bool // one was cut: it is told once
}

// Limits of what is kept of one input; the dumps of the kernel's largest map stay
// below.
const (
	maxFrames   = 1 << 26 // of all stacks
	maxDepth    = 1 << 10 // frames of one stack; kernel.perf_event_max_stack is 127
	maxWarnings = 20
)

// maxTotal bounds what all counts add up to, and all weights: it is what a profile can
// say. Only damage gets there.
const maxTotal = math.MaxInt64

func newSet(form Form) *Set {
	return &Set{
		Form: form, Events: []Event{{Name: "samples", Unit: "count", Period: 1}},
		idOf: make(map[buildid.ID]uint32), symbolOf: make(map[Symbol]uint32),
		stackOf: make(map[string]uint32), left: [2]uint64{maxTotal, maxTotal},
	}
}

// NumStacks returns how many distinct stacks there are.
func (s *Set) NumStacks() int { return len(s.ends) }

// Stack returns the frames of a stack, innermost first. The slice is the Set's own.
func (s *Set) Stack(n uint32) []Frame {
	from := uint32(0)
	if n > 0 {
		from = s.ends[n-1]
	}
	return s.frames[from:s.ends[n]]
}

func (s *Set) id(id buildid.ID) uint32 {
	n, ok := s.idOf[id]
	if !ok {
		n = uint32(len(s.IDs))
		s.IDs = append(s.IDs, id)
		s.idOf[id] = n
	}
	return n
}

// valid makes the frame of a build ID. Of an address that is in no mapping the kernel takes
// the one above it (find_vma in stack_map_get_build_id_offset), as for the 0 that chains of
// frame pointers end in: the offset then is below 0, and nothing is known of the place.
func (s *Set) valid(id buildid.ID, offset uint64) Frame {
	if int64(offset) < 0 {
		return Frame{Status: IP}
	}
	return Frame{Offset: offset, Ref: s.id(id), Status: Valid}
}

func (s *Set) symbol(sym Symbol) uint32 {
	n, ok := s.symbolOf[sym]
	if !ok {
		n = uint32(len(s.Symbols))
		s.Symbols = append(s.Symbols, sym)
		s.symbolOf[sym] = n
	}
	return n
}

// add numbers a stack; equal ones have one number. An empty one is NotTaken.
func (s *Set) add(frames []Frame) Part {
	if len(frames) == 0 {
		return Part{Cause: NotTaken}
	}
	if len(frames) > maxDepth {
		s.warn(fmt.Errorf("a stack of %d frames is cut after %d", len(frames), maxDepth))
		frames = frames[:maxDepth]
	}
	s.scratch = s.scratch[:0]
	for _, f := range frames {
		s.scratch = binary.LittleEndian.AppendUint64(s.scratch, f.Offset)
		s.scratch = binary.LittleEndian.AppendUint32(s.scratch, f.Ref<<2|uint32(f.Status))
	}
	n, ok := s.stackOf[string(s.scratch)]
	if !ok {
		if len(s.frames)+len(frames) > maxFrames {
			s.warn(fmt.Errorf("more than %d frames: further stacks are left out", maxFrames))
			return Part{Cause: NotDumped}
		}
		n = uint32(len(s.ends))
		s.frames = append(s.frames, frames...)
		s.ends = append(s.ends, uint32(len(s.frames)))
		s.stackOf[string(s.scratch)] = n
	}
	return Part{Stack: n, Cause: Present}
}

// count adds a sample: of the latest event, but for those of systing, which say theirs.
func (s *Set) count(sm Sample) {
	if s.Form != Systing {
		sm.Event = uint16(len(s.Events) - 1)
	}
	if period := s.Events[sm.Event].Period; period > 0 {
		sm.Weight = product(sm.Count, period)
	}
	counted, weighed := s.spend(0, &sm.Count), s.spend(1, &sm.Weight)
	if !counted || !weighed {
		if !s.cut {
			s.warn(fmt.Errorf("counts or weights add up to more than %d: they are cut",
				uint64(maxTotal)))
		}
		s.cut = true
	}
	if sm.Count > 0 {
		s.Samples = append(s.Samples, sm)
	}
}

// spend takes a number from what is left of the i-th total. It is false for one that
// had to be made smaller.
func (s *Set) spend(i int, v *uint64) bool {
	whole := *v <= s.left[i]
	*v = min(*v, s.left[i])
	s.left[i] -= *v
	return whole
}

// product and sum stop at the largest number.
func product(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

func sum(a, b uint64) uint64 {
	low, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return low
}

func (s *Set) warn(err error) {
	if len(s.Warnings) < maxWarnings {
		s.Warnings = append(s.Warnings, err)
		return
	}
	s.unsaid++
}

// warnLong tells of lines that were passed over because of their length.
func (s *Set) warnLong(name string, lines uint64) {
	if lines > 0 {
		s.warn(fmt.Errorf("%s: %d lines of more than %d bytes are left out", name, lines, maxLine))
	}
}

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

// side adds a sample of a stack of which it is not said whose it is.
func (s *Set) side(p Part, sm Sample) {
	if p.Cause == Present && s.isKernel(p.Stack) {
		sm.Kernel = p
	} else {
		sm.User = p
	}
	s.count(sm)
}

// finish lets go of what only reading needs.
func (s *Set) finish() {
	if s.unsaid > 0 {
		s.Warnings = append(s.Warnings, fmt.Errorf("and %d warnings more", s.unsaid))
	}
	s.idOf, s.symbolOf, s.stackOf, s.scratch = nil, nil, nil, nil
}
