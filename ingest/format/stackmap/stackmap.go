// Package stackmap reads the stacks that BPF programs collected, in every form in which they are
// dumped or printed, and returns a Set for all of them: distinct stacks, and samples with counts
// and labels.
//
// # Values of a BPF_MAP_TYPE_STACK_TRACE map
//
// A value is an array of addresses or, with BPF_F_STACK_BUILD_ID, of struct bpf_stack_build_id
// (include/uapi/linux/bpf.h), 32 bytes per frame, innermost first:
//
//	0   s32      status: 0 the stack ends here, 1 build ID and file offset, 2 address
//	4   u8[20]   build ID, padded with zeros; its length is not stored
//	24  u64      offset in the file, or the address if the kernel found no build ID
//
// An offset below 0 belongs to an address below the file's mapping, in no mapping.
//
// Counts are in another map, under a key with labels and the two stack IDs that bpf_get_stackid
// returned, user and kernel. A negative ID is an errno.
//
// # Forms
//
//   - Raw: the dump specified in package rawdump, of the stack map and of the counts.
//   - Bpftool: `bpftool map dump` as -j, -p and plain text. Only its hexadecimal bytes
//     are decoded: its "formatted" output is not always valid JSON, nor correct.
//   - Bare: concatenated values, and nothing else; the caller gives their size.
//   - Bpftrace: `ustack(build_id)` (bpftrace 0.25, format_build_id_stack in
//     src/types_format.cpp): a line per frame, with 40 hexadecimal digits, a blank and the
//     offset as 0x…, or with only the address, in hexadecimal without 0x. Stacks are in
//     keys, "@[\n…\n, comm, pid]: N", and in the output of printf, where each counts 1.
//     kstack prints "symbol+offset", raw addresses, or both ("perf" mode). With -f json each
//     line is an object with the same texts, without blanks in keys (src/output/json.cpp).
//   - Systing: the `.systing` export, JSON lines (docs/PROFILE_EXPORT_FORMAT.md there):
//     records p, t, f, s and x. Frames that systing could not name are
//     "unknown ([buildid:HEX]) <0xOFF>", or "buildid:HEX+0xOFF" without labels
//     (render_unresolved_build_id in src/stack_recorder.rs). Its other outputs are not read:
//     the folded lines of systing-analyze lack the offsets of such frames
//     ("unknown [[buildid:HEX]]", format_frame in src/analyze/flamegraph.rs), and Perfetto
//     traces and DuckDB files have no more than the export.
//   - Memleak: what bcc's memleak (memleak-bpfcc, and memleak of libbpf-tools) prints: reports of
//     "N bytes in N allocations from stack" with a line per frame (print_outstanding in
//     tools/memleak.py, print_stack_frames in libbpf-tools/memleak.c). The last report is read.
//     Frames have names and files, no build IDs.
//   - Gadget: Inspektor Gadget's `-o json`, `jsonpretty` and `yaml`: the field buildid
//     beside addresses of a user stack, "[0]HEX +OFF; [1]ADDRESS; …", with or without numbers
//     before frames (docs/reference/stack-traces.mdx, readUserStackMap in
//     pkg/operators/ustack/ustack_linux.go). Kernel stacks have only names.
//
// # Limits of the forms
//
// No form has the time or the CPU of a sample. A stack map without a count map has no counts, pid
// or comm; the labels of a count map are in its key. Bpftrace prints labels in the order of the
// script: a word is used as comm and a number as pid if there is one of each. Systing has pid, tid
// and comm, Inspektor Gadget the labels of the event.
package stackmap

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest/intern"
)

// Form is a way in which stacks are dumped or printed.
type Form uint8

// The forms; see the package comment.
const (
	NoForm Form = iota
	Raw
	Bpftool
	Bare
	Bpftrace
	Systing
	Gadget
	Memleak
)

var formText = [...]string{
	NoForm: "no form", Raw: "raw dump", Bpftool: "bpftool dump", Bare: "bare values",
	Bpftrace: "bpftrace text", Systing: "systing export", Gadget: "Inspektor Gadget output",
	Memleak: "memleak text",
}

// String names the form, "bpftool dump".
func (f Form) String() string {
	if int(f) < len(formText) {
		return formText[f]
	}
	return "unknown form"
}

// Records reports whether a form is a list of records, some without a stack.
func (f Form) Records() bool { return f == Systing || f == Gadget }

// OwnEvents reports whether each sample of a form names its event; those of others are of the latest.
func (f Form) OwnEvents() bool { return f == Systing }

// FramePointers reports whether the kernel made the stacks of a form, by frame pointers: systing may
// unwind stacks itself.
func (f Form) FramePointers() bool { return f != Systing }

// Errors of Read: ErrNotStacks for data without stacks, ErrKey for a count map without a
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
	Named        // the name of a function, found by the program that printed the stack
)

// Frame is one frame as it was dumped: return addresses are as recorded.
type Frame struct {
	Offset uint64 // in the file; an IP's address; a Named frame's distance from the function
	Ref    uint32 // Valid: in Set.IDs; Named: in Set.Symbols
	Status Status
}

// Symbol is the name of a Named frame.
type Symbol struct {
	Name   string
	Object string // its file, as printed; "" if not printed
	Kernel bool
}

// Cause is the reason why a part of a stack is missing, or that it is present.
type Cause uint8

// The causes. From BucketTaken on they are losses.
const (
	Absent      Cause = iota // there is no such part: a user stack of a kernel thread
	Present                  // Part.Stack is it
	BucketTaken              // -EEXIST: another stack occupied its bucket
	NoMemory                 // -ENOMEM
	NotTaken                 // -EFAULT for both parts, or an empty stack
	NotDumped                // its ID is not in the dump: since overwritten or deleted
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

// Lost reports whether there was a stack that could not be kept.
func (c Cause) Lost() bool { return c >= BucketTaken }

// Part is the kernel's or the user's part of a sample's stack.
type Part struct {
	Stack uint32 // number in the Set, if Present
	Cause Cause
}

// Sample is a stack with its labels and its count.
type Sample struct {
	Kernel, User Part
	PID, TID     int32 // of the process and the thread; -1 if not known
	Comm         string
	Event        uint16 // in Set.Events
	// State is 1 more than prev_state of sched_switch when a thread stopped; 0 for other events.
	State  uint32
	Waker  uint32 // 1 more than the number in Set.Wakers; 0: unknown
	Count  uint64
	Weight uint64
	// Program selects the program of user addresses among the programs of the process, or among the
	// processes that had its number: 0 except in bundles.
	Program uint32
	// KernelTime, if Timed, is the time for which kernel addresses are looked up, by the clock of
	// the bundle's records; otherwise their time is unknown.
	KernelTime uint64
	Timed      bool
	// The user part was recorded at UserTime, by CLOCK_MONOTONIC, or less than
	// bundle.UserTimeSpan after it; 0 if the time is unknown.
	UserTime uint64
}

// Waker is the thread that ran when another was woken, as the fields of Sample.
type Waker struct {
	Kernel, User         Part
	PID                  int32
	Comm                 string
	Interrupt            bool // an interrupt woke meanwhile, not the thread
	Program              uint32
	KernelTime, UserTime uint64
}

// Event is the event that triggered samples.
type Event struct {
	Name, Unit string
	Period     uint64 // weight of one, 0 if it varies
}

// Labels are the labels that the samples of a Set have.
type Labels struct{ PID, TID, Comm bool }

// Names lists the labels that samples have.
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

// Missing lists the labels that samples lack, among them times and CPU, which no form has.
func (l Labels) Missing() (out []string) {
	have := l.Names()
	for _, name := range labelNames {
		if !slices.Contains(have, name) {
			out = append(out, name)
		}
	}
	return out
}

// Set is the result of reading: stacks, numbered in order of their first occurrence, and samples.
// With an error it holds the whole stacks before it.
type Set struct {
	Form    Form
	IDs     []buildid.ID // distinct; inexact
	Symbols []Symbol
	Events  []Event
	Samples []Sample
	Wakers  []Waker // distinct
	Labels  Labels
	// Counted reports that samples have counts of their own; without a count map each stack of a
	// map counts 1.
	Counted     bool
	LostSamples uint64   // as reported by the recorder
	Losses      []string // what the recorder lost, with numbers
	Unused      int      // stacks of the dump that no count refers to
	Skipped     uint64   // lines, events and records that are not stacks
	Reports     int      // of memleak; the samples are those of the last one
	Warnings    []error  // the first ones of skipped errors

	frames    []Frame         // distinct ones
	stacks    *intern.ListSet // stacks as numbers of frames
	addresses []bool          // by stack: whether one of its frames is an IP
	totals    *Totals         // once computed

	wakerOf   map[Waker]uint32
	idOf      map[[buildid.KeyLen]byte]uint32
	recentIDs [64]knownID // by the first byte
	symbolOf  map[Symbol]uint32
	frameOf   *intern.Pairs     // numbers frames
	commOf    map[string]string // so that equal names share their bytes
	scratch   []uint32
	pairs     []intern.Pair // scratch of number

	unreported int       // warnings beyond maxWarnings
	left       [2]uint64 // what counts and weights of further samples may add up to
	cut        bool      // a count or weight was cut, which is reported once

	maxFrames, maxSamples int    // see bound
	overfull              bool   // stacks were left out
	leftOut               uint64 // samples beyond maxSamples
}

// NumStacks returns the number of distinct stacks.
func (s *Set) NumStacks() int { return s.stacks.Len() }

// Stack returns the frames of a stack, innermost first, with their indices.
func (s *Set) Stack(n uint32) iter.Seq2[int, Frame] {
	return func(yield func(int, Frame) bool) {
		for i, number := range s.stacks.At(n) {
			if !yield(i, s.frames[number]) {
				return
			}
		}
	}
}

// Numbers returns the frames of a stack as numbers, innermost first. The slice belongs to the Set.
func (s *Set) Numbers(stack uint32) []uint32 { return s.stacks.At(stack) }

// Frames returns the distinct frames of all stacks, by number. The slice belongs to
// the Set.
func (s *Set) Frames() []Frame { return s.frames }

// HasAddresses reports whether a stack has frames of status IP.
func (s *Set) HasAddresses(stack uint32) bool { return s.addresses[stack] }

// kernelHalf is where the kernel's addresses begin on all machines with 64 bits.
const kernelHalf = 1 << 63

// isKernel reports whether a stack is a kernel stack: without build IDs, and with addresses in the
// upper half.
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
	// Samples without a kernel or user part.
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

// Discard releases stacks and samples, which are most of the memory of a Set. Totals and the other
// fields stay.
func (s *Set) Discard() {
	s.Totals()
	s.Samples, s.Wakers, s.frames, s.addresses, s.stacks = nil, nil, nil, nil, intern.NewListSet()
}

// Addresses returns a Set of kernel addresses: a sample with a stack of one address and count 1 for
// each element of list, in order. It fails if list has more elements than a Set can hold.
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
