// Package ingest defines the Profile that all stages share: stacks of (object, offset), the reasons
// why an object or location has no name, and the orders by which equal inputs give equal bytes.
// ingest/input turns captures into Profiles, ingest/input/pprof pprof files; analyze/resolve adds
// names by a join on Locations.
package ingest

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest/addr"
)

// Indices into the tables of one Profile.
type (
	ObjectID   uint32
	LocationID uint32
	StackID    uint32
	FuncID     uint32
	StringID   uint32 // index into Profile.Strings; 0 is ""
)

// ObjectKind is the kind of an object, which defines its Offsets.
type ObjectKind uint8

// The kinds, in the order in which objects are numbered.
const (
	ELF        ObjectKind = iota // executable or library: Offset is a file offset
	VDSO                         // [vdso]: file offset in the vdso image
	Kernel                       // ip − run-time address of Object.RefSymbol
	Module                       // ip − load address
	JIT                          // BPF program or other KSYMBOL range: ip − start
	PerfMap                      // code named by perf-PID.map: the address itself
	JITDump                      // code in a jit-PID.dump: offset of its bytes in that file
	Anonymous                    // memory without a file: the address itself, collapsed to 0
	Unmapped                     // outside every mapping: collapsed to Offset 0
	Guest                        // code of a virtual machine: collapsed to 0
	Hypervisor                   // collapsed to 0
	NoStack                      // a chain that was not recorded or not unwound: collapsed to 0
)

// Domain is a coarse division of objects for reports of coverage.
type Domain uint8

// The domains.
const (
	UserDomain Domain = iota
	KernelDomain
	BPFDomain
	JITDomain
)

// IDSource is the source of an object's build ID. The coverage summary counts samples by it.
type IDSource uint8

// The sources of a build ID.
const (
	IDNone     IDSource = iota // no build ID
	IDRecorded                 // the mapping's own record
	IDSibling                  // another entry with the same device, inode and generation
	IDByPath                   // another entry with the same path
	IDProven                   // on the recording host: the file equals a path row of the store
	IDTrusted                  // the path, with --trust-paths
	IDDerived                  // computed: a JITed function's identity, a kernel's vdso
	IDNamed                    // a file of --with, by the path or name of the mapping, and its layout
)

// FileRef is the record of a mapped file in a capture, without its build ID.
type FileRef struct {
	Path       string // as recorded, without " (deleted)"
	Deleted    bool
	Major      uint32
	Minor      uint32
	Inode      uint64
	Generation uint64
}

// SegmentRef is a mapped piece of an object: file bytes [Offset, Offset+Len). It is used for pprof
// mappings if the object's own program headers are unknown.
type SegmentRef struct {
	Offset addr.Offset
	Len    uint64
}

// Object is a piece of code with an identity in a capture.
type Object struct {
	Kind     ObjectKind
	ID       buildid.ID // zero if unknown
	IDSource IDSource
	// Path is also the display name: "/usr/lib/libc.so.6", "[vdso]", "[kernel.kallsyms]", "[ext4]",
	// "bpf_prog_TAG_name"
	File FileRef

	// RefSymbol is the reference symbol of a kernel's Offsets, "_text" or "_stext". It is
	// LinkedAddresses if the Offsets of a kernel or an ELF file are addresses of its ELF file, and
	// LoadText of a BPF function that is of one load only (input.Options.Loads).
	RefSymbol string

	// Symbol is the capture's own name of the whole object (KSYMBOL records), "" if none. Such an
	// object has a name without any table.
	Symbol string
	// NoImage is set for a BPF program of which only the name is known: its code and lines were not
	// read while it was loaded. Its locations have the name, and the reason ImageNotCaptured.
	NoImage bool
	// WhyNoImage is the cause of NoImage, if the capture or a bundle of the same boot has
	// it: one of the Missing constants of package bpf, or an error of the kernel.
	WhyNoImage string
	Length     uint64 // of a JITed function, bytes; 0 if unknown

	// Unseen is set for a file with bare addresses in a stack map: the recording kernel found no
	// build ID in it, or could not look for one. No option of a recorder helps.
	Unseen bool

	// Undecided is set for a second record of an object with return addresses that symbol tables
	// have not yet confirmed: Offset is of the byte before. See input.Options.Undecided.
	Undecided bool
	// Entry is set for a second record of an object with functions that called others at a place that
	// is not known (analyze/callers): Offset is of a function's first instruction, and no line is known.
	Entry bool

	// why nothing in this object can get a name from any store; ReasonNone otherwise
	Reason   Reason
	Kernel   ObjectID     // for VDSO and Module: the kernel of the same capture, or NoObject
	PID      int32        // for PerfMap and JITDump: the process (in one capture), else 0
	Program  string       // for PerfMap and JITDump: path of the process's program, "" if unknown
	Capture  string       // for PerfMap: the capture's content identity, else ""
	Segments []SegmentRef // sorted by Offset, without duplicates
}

// NoObject is the ObjectID of nothing.
const NoObject = ^ObjectID(0)

// Location is a place in an object: the unit of symbolization.
type Location struct {
	Object ObjectID
	Offset addr.Offset // of a return address: of the byte before it
}

// Event is one perf event (or pprof sample type) of a profile.
type Event struct {
	Name string // "cycles", "cpu-clock", "sched:sched_switch"
	Unit string // unit of the weight: "nanoseconds" for the clocks, else "count"
	// Period is the fixed period, or 0 if it varied (frequency mode).
	Period uint64

	// For events of a pprof file, CountColumn is the name of the sample type with the counts;
	// OneColumn is set if the event has only one column, so that Count and Weight are the same.
	CountColumn string
	OneColumn   bool
}

// Sample is one folded row: all samples with this stack and these labels.
type Sample struct {
	Stack  StackID
	Event  uint16 // index into Profile.Events
	Comm   StringID
	PID    int32 // -1 if it is not kept
	TID    int32
	CPU    int32
	Tags   StringID // see Profile.AllTags
	Count  uint64   // number of samples
	Weight uint64   // sum of their periods
}

// Keep selects the labels, besides the comm, that distinguish folded samples.
type Keep struct {
	PID, TID, CPU bool
	Tags          string // words of tags, separated by commas: see Add
	// Access keeps AddressTag, MemoryTag and LatencyTag where they were recorded: what samples access is asked for.
	Access bool
}

// Profile holds the interned tables that all stages share. Everything is numbered in sorted order,
// independently of the order of workers, so that equal inputs give equal Profiles: Objects by
// CompareObjects, Locations by (Object, Offset), Stacks by their locations from the outermost frame,
// Samples by (Event, Comm, PID, TID, CPU, tags, Stack). A Profile is immutable once built, except Names.
type Profile struct {
	Strings   []string
	Objects   []Object
	Locations []Location
	// Callers and Leaves hold the stacks as a tree: stack s is the frame at the location Leaves[s],
	// called by the stack Callers[s]. Stack 0 has no frames. Each beginning of a stack, from the
	// outermost frame, is a stack, also if no sample has it.
	Callers []StackID
	Leaves  []LocationID
	Stacks  int // the number of distinct ones, in a profile without them (input.Options.NoStacks)
	Events  []Event
	Samples []Sample

	Names *Names // nil until resolved
	Meta  Meta
	Stats Stats
}

// Home returns the object that the functions of an object are of: itself, but of a second record
// (Object.Entry) the first, which is before it.
func (p *Profile) Home(o ObjectID) ObjectID {
	if o > 0 && p.Objects[o].Entry {
		first := p.Objects[o]
		first.Entry = false
		if CompareObjects(&first, &p.Objects[o-1]) == 0 {
			return o - 1
		}
	}
	return o
}

// Stack appends the locations of a stack, leaf first, to list.
func (p *Profile) Stack(list []LocationID, s StackID) []LocationID {
	for ; s != 0; s = p.Callers[s] {
		list = append(list, p.Leaves[s])
	}
	return list
}

// DistinctStacks returns the number of distinct stacks of samples.
func (p *Profile) DistinctStacks() (n int) {
	if p.Callers == nil {
		return p.Stacks
	}
	seen := make([]bool, len(p.Callers))
	for i := range p.Samples {
		if s := p.Samples[i].Stack; !seen[s] {
			seen[s] = true
			n++
		}
	}
	return n
}

// Frames returns the locations of a stack, leaf first.
func (p *Profile) Frames(s StackID) iter.Seq[LocationID] {
	return func(yield func(LocationID) bool) {
		for ; s != 0 && yield(p.Leaves[s]); s = p.Callers[s] {
		}
	}
}

// Meta describes a capture; merged captures keep values that all have in common, others are "" or
// 0.
type Meta struct {
	Captures   []string // paths as given
	Host       string
	OSRelease  string
	Arch       string // as uname -m: "x86_64"
	Command    string // command line of the recorder
	Recorder   string // "perf 6.1.192"
	StartNanos int64  // wall clock of the first sample, ns since 1970; 0 if unknown
	Duration   int64  // ns between first and last sample
	MapsIDs    bool   // mappings have build IDs where known: of perf record --buildid-mmap, of other programs
	// MainProgram is the path of the user executable with most leaf samples; pprof's mapping 0.
	MainProgram string
	Comments    []string
	Pprof       *PprofHeader // of a pprof input, otherwise nil
}

// PprofHeader has fields of a pprof file without another place in a Profile, so that files of other
// profilers keep them.
type PprofHeader struct {
	PeriodType, PeriodUnit string
	Period                 int64
	DefaultType            string
	DropFrames, KeepFrames string
	DocURL                 string
}

// Stats counts the records, samples and frames read. Weights are by period.
type Stats struct {
	Records        uint64
	RecordTypes    map[string]uint64 // by PERF_RECORD name
	Samples        uint64
	Weight         uint64
	Frames         uint64 // frames of all samples, without markers
	FilteredOut    uint64 // samples left out by --event, --comm, --pid and the like
	Lost           uint64 // records, by PERF_RECORD_LOST and LOST_SAMPLES
	Throttled      uint64
	CutChains      uint64 // chains cut at an invalid address
	BadRecords     uint64
	UnknownRecords uint64
	UnknownIDs     uint64 // samples with an unknown event ID
	Copied         CopiedStats
	Callers        CallerStats
	// KernelList is set if a kallsyms text placed the kernel's addresses.
	KernelList bool
	// NoStarts is set if there are names of a pprof file, which have no SymOff.
	NoStarts bool
	// NoReturns is set if callers are places of calls (--call-graph lbr) or of branches.
	NoReturns bool
	Warnings  []Warning // in file order, limited
}

// LostWarning returns the warning about lost records, of a recording with this number of samples; ok
// is false if fewer than one in a hundred were lost. From one in twenty on, of which perf report
// warns, too, the results are partial.
func (s *Stats) LostWarning(samples uint64) (w Warning, ok bool) {
	share := 100 * float64(s.Lost) / max(float64(s.Lost)+float64(samples), 1)
	if share < 1 {
		return w, false
	}
	return Warning{
		Text: fmt.Sprintf("%.2f%% of the records were lost (%d; %d samples were recorded): the "+
			"recorder could not keep up", share, s.Lost, samples),
		Hint:    "larger buffers (perf record -m 16M), or fewer samples (-F 99)",
		Partial: share >= 5}, true
}

// Add adds the counts and warnings of another part of the input.
func (s *Stats) Add(o *Stats) {
	s.Records += o.Records
	if s.RecordTypes == nil {
		s.RecordTypes = make(map[string]uint64)
	}
	for t, n := range o.RecordTypes {
		s.RecordTypes[t] += n
	}
	s.Samples += o.Samples
	s.Weight += o.Weight
	s.Frames += o.Frames
	s.FilteredOut += o.FilteredOut
	s.Lost += o.Lost
	s.Throttled += o.Throttled
	s.CutChains += o.CutChains
	s.BadRecords += o.BadRecords
	s.UnknownRecords += o.UnknownRecords
	s.UnknownIDs += o.UnknownIDs
	s.Copied.Add(&o.Copied)
	s.Callers.Add(&o.Callers)
	s.KernelList = s.KernelList || o.KernelList
	s.NoStarts = s.NoStarts || o.NoStarts
	s.NoReturns = s.NoReturns || o.NoReturns
	s.Warnings = append(s.Warnings, o.Warnings...)
}

// CopiedStats counts the samples with a copied user stack (--call-graph dwarf).
type CopiedStats struct {
	Samples uint64
	Bytes   uint64 // requested bytes of the largest
	Full    uint64 // copies of the requested size: the stack may be longer

	// Counts by the end of unwinding; all are 0 if the stacks were not unwound.

	Complete   uint64 // the outermost function of the thread
	Truncated  uint64
	OtherStack uint64
	NoTable    uint64
	Broken     uint64
	NotCopied  uint64

	Guessed uint64 // with an unproven step by a frame pointer
}

// Unwound reports whether the stacks were unwound.
func (c *CopiedStats) Unwound() bool {
	return c.Complete+c.Truncated+c.OtherStack+c.NoTable+c.Broken+c.NotCopied > 0
}

// Add adds the counts of another part of the samples.
func (c *CopiedStats) Add(o *CopiedStats) {
	c.Samples += o.Samples
	c.Full += o.Full
	c.Complete += o.Complete
	c.Truncated += o.Truncated
	c.OtherStack += o.OtherStack
	c.NoTable += o.NoTable
	c.Broken += o.Broken
	c.NotCopied += o.NotCopied
	c.Guessed += o.Guessed
	c.Bytes = max(c.Bytes, o.Bytes)
}

// CallerStats counts what is known of the callers in stacks that were made of frame pointers, by
// samples (analyze/callers). All are 0 if the stacks are as they were recorded.
type CallerStats struct {
	Samples uint64 // that were checked

	// Pairs of a function and its caller in the stacks of all samples.

	Proven   uint64 // by the unwind rule of the function
	Restored uint64 // the caller was not recorded, and no other one is possible
	Recorded uint64 // neither proven nor refuted
	Cut      uint64 // the rest of the stack were no callers
	Gaps     uint64 // a caller at least is missing

	// Samples with at least one such pair.

	SamplesRestored, SamplesCut, SamplesGaps, SamplesRecorded uint64

	SamplesProven uint64            // with such pairs, all proven or restored
	Unproven      []UnprovenCallers // the others by object
}

// Add adds the counts of another part of the samples.
func (c *CallerStats) Add(o *CallerStats) {
	c.Samples += o.Samples
	c.Proven += o.Proven
	c.Restored += o.Restored
	c.Recorded += o.Recorded
	c.Cut += o.Cut
	c.Gaps += o.Gaps
	c.SamplesRestored += o.SamplesRestored
	c.SamplesCut += o.SamplesCut
	c.SamplesGaps += o.SamplesGaps
	c.SamplesRecorded += o.SamplesRecorded
	c.SamplesProven += o.SamplesProven
	if len(o.Unproven) > 0 {
		c.AddUnproven(o.Unproven)
	}
}

// Warning is a defect of an input, or another fact for the user.
type Warning struct {
	Text    string
	Hint    string // the command or step that would fix it, or ""
	Partial bool   // the exit status is 3
	Result  bool   // it is about what this run makes of the recording
}

// Function is a named function of an object.
type Function struct {
	Object     ObjectID
	SystemName string // as in the symbol table, mangled
	File       string // "" if unknown
	StartLine  int32  // 0 if unknown
}

// Frame is one function activation at a location.
type Frame struct {
	Func    FuncID
	Line    int32 // 0 if unknown
	Column  int32
	Inlined bool // true for all frames of a location except the last
}

// Names is the result of resolution, parallel to Profile.Locations.
type Names struct {
	Functions []Function // sorted by (Object, SystemName, File, StartLine)
	// FrameEnds and Frames: location l has Frames[FrameEnds[l-1]:FrameEnds[l]],
	// innermost first. Reasons[l] is the reason why a location has no name. Such a location still
	// has a frame if the function's bounds are known from an unwind table, with a name made of its
	// address ("fun_4290"), or if the name of a BPF program is known (ImageNotCaptured).
	FrameEnds []uint32
	Frames    []Frame
	Reasons   []Reason
	// SymOff is the distance of each location from the start of its physical function, for
	// `sym+0xOFF`; 0 for unresolved locations.
	SymOff []uint64
	// Found is the build ID of the file at the recorded path, for objects with the reason Mismatch.
	Found map[ObjectID]buildid.ID
	// Probable is the object that provides the lines of a JITed function without a captured image.
	// It has the same name, tag and length, but may have been compiled from other source.
	Probable map[ObjectID]buildid.ID
	Warnings []Warning // about unreadable tables
}

// At returns the frames of a location, innermost first; none if unresolved.
func (n *Names) At(l LocationID) []Frame {
	start := uint32(0)
	if l > 0 {
		start = n.FrameEnds[l-1]
	}
	return n.Frames[start:n.FrameEnds[l]]
}

// Prefixes of names made of a function's address, if only its bounds are known from an unwind
// table. SignalPrefix is for code that signal handlers return to; it begins at the address or one
// byte later (cfi.CodeRange).
const (
	MadePrefix   = "fun_"
	SignalPrefix = "signal_return_"
)

// Made reports whether a location has a name with the prefix, made of its function's address.
func (n *Names) Made(l LocationID, prefix string) bool {
	frames := n.At(l)
	return n.Reasons[l] == Stripped && len(frames) > 0 &&
		strings.HasPrefix(n.Functions[frames[len(frames)-1].Func].SystemName, prefix)
}

// Named reports whether a location has the name of a function that is not made of its address. The
// capture itself names BPF programs without a captured image.
func (n *Names) Named(l LocationID) bool {
	r := n.Reasons[l]
	return (r == ReasonNone || r == ImageNotCaptured) && len(n.At(l)) > 0
}

// EventNamed returns the index of the event that a name means in a list of names: the one of this
// name, else the only one with modifiers after it, as cycles:uppp for cycles; -1 if there is none.
func EventNamed(names []string, name string) int {
	found := slices.Index(names, name)
	if found >= 0 {
		return found
	}
	for i, n := range names {
		if name != "" && strings.HasPrefix(n, name+":") {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// IsClock reports whether an event is one of perf's software clocks, with any modifiers
// ("cpu-clock:u"). A pprof profile of it alone has the event "cpu".
func (e *Event) IsClock() bool {
	name, _, _ := strings.Cut(e.Name, ":")
	return name == "cpu-clock" || name == "task-clock"
}

// modifiers are the letters that perf takes after the name of an event (perf-list(1)).
const modifiers = "ukhIGHpPSDWeb"

// base returns the name of an event without modifiers, and whether it has some.
func (e *Event) base() (name string, modified bool) {
	if i := strings.LastIndexByte(e.Name, ':'); i > 0 && strings.Trim(e.Name[i+1:], modifiers) == "" {
		return e.Name[:i], true
	}
	return e.Name, false
}

// Modes returns the modes of the processor in which an event counts, of the letters u, k and h after
// its name; "" for all of them.
func (e *Event) Modes() string {
	name, modified := e.base()
	if !modified {
		return ""
	}
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune("ukh", c) {
			return c
		}
		return -1
	}, e.Name[len(name):])
}

// MatchEvent returns the index of the event of another profile that an event is compared with: the
// one with its name and unit, else the only one with its unit and its name but for modifiers, if one
// of both has none; -1 if there is none. So "cpu-clock:u" of a recording is the "cpu" of its pprof
// profile, and cycles:u is never compared with cycles:k.
func MatchEvent(events []Event, e *Event) int {
	base, modified := e.base()
	found := -1
	for i := range events {
		other := &events[i]
		if other.Unit != e.Unit {
			continue
		}
		if other.Name == e.Name {
			return i
		}
		name, also := other.base()
		cpu := e.Name == "cpu" && other.IsClock() || other.Name == "cpu" && e.IsClock()
		switch {
		case !cpu && (name != base || also && modified):
		case found >= 0:
			found = len(events) // several
		default:
			found = i
		}
	}
	if found == len(events) {
		return -1
	}
	return found
}

// EventError is the error for a capture without the requested event.
type EventError struct {
	Capture string
	Event   string
	Has     []string // names of the capture's events, if known
}

// Error names the capture, the event and the capture's own events.
func (e *EventError) Error() string {
	text := fmt.Sprintf("%s: no event %q in it", e.Capture, e.Event)
	if len(e.Has) > 0 {
		text += ", only " + strings.Join(e.Has, ", ")
	}
	return text
}

// DefaultEvent returns the number of the event that is shown if none is named: of pprof files the
// default sample type, else the last one, as pprof does; of others, and if it has no samples, the
// first with samples. Without samples it is 0.
func (p *Profile) DefaultEvent() int {
	has := make([]bool, len(p.Events))
	for i := range p.Samples {
		has[p.Samples[i].Event] = true
	}
	if h := p.Meta.Pprof; h != nil {
		at := slices.IndexFunc(p.Events, func(e Event) bool {
			return h.DefaultType != "" && (e.Name == h.DefaultType || e.CountColumn == h.DefaultType)
		})
		if at < 0 {
			at = len(p.Events) - 1
		}
		if at >= 0 && has[at] {
			return at
		}
	}
	return max(0, slices.Index(has, true))
}

// Kernels returns the build IDs of the kernels in the profile.
func (p *Profile) Kernels() (kernels []buildid.ID) {
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.Kind == Kernel && !o.ID.IsZero() && !slices.Contains(kernels, o.ID) {
			kernels = append(kernels, o.ID)
		}
	}
	return kernels
}

// WithoutInlines returns names with only the frame of the physical function at each location: n
// itself if it has no inlined frames, otherwise Names that share all fields except FrameEnds and
// Frames.
func (n *Names) WithoutInlines() *Names {
	physical := 0
	for i := range n.Frames {
		if !n.Frames[i].Inlined {
			physical++
		}
	}
	if physical == len(n.Frames) {
		return n
	}
	out := *n
	out.Frames = make([]Frame, 0, physical)
	out.FrameEnds = make([]uint32, len(n.FrameEnds))
	for l := range n.FrameEnds {
		for _, f := range n.At(LocationID(l)) {
			if !f.Inlined {
				out.Frames = append(out.Frames, f)
			}
		}
		out.FrameEnds[l] = uint32(len(out.Frames))
	}
	return &out
}

// Reason is the reason why a location has no name. Every unresolved frame has exactly one, and
// hints name the command that fixes it.
type Reason uint8

// The reasons. Their texts, not their numbers, appear in files.
const (
	ReasonNone       Reason = iota
	NotIndexed              // the build ID is known and the store has no object for it
	Stripped                // the object is indexed; no source of it covers the address
	LayoutUnknown           // only a debug file is indexed: file offsets cannot be mapped
	OtherLayout             // the recorded mappings of the object fit no indexed file of its build ID
	Mismatch                // the file at the recorded path has another build ID now
	NoBuildID               // the capture has no build ID for the mapping
	Ambiguous               // a padded build ID matches two objects
	AnonymousMemory         // code without a file: JIT without a map
	TextRemapped            // code without a file, where the code of a file was mapped before
	ImageNotCaptured        // a BPF program without code, perhaps with a name
	KernelHidden            // kptr_restrict hid the kernel's addresses
	StackNotUnwound         // --call-graph dwarf: the user stack is still to be unwound
	OutsideMapping          // no mapping covers the address: a junk chain tail, or a lost record
	OutsideObject           // the offset is in no segment of the object
	GuestCode               // code of a virtual machine
	HypervisorCode
	TableDamaged // the store's table could not be read
	// MapsNotSaved: a bare address in a stack map without mappings, neither /proc/PID/maps of the
	// process nor kallsyms of the boot.
	MapsNotSaved
	StackLost // a stack map was full, or the stack was not recorded
	// ProcessGone: an address in a bundle of stacks; the process ended before its mappings were
	// read.
	ProcessGone
	// MapsNotRead: an address in a bundle of stacks; the mappings of the running process could not
	// be read.
	MapsNotRead
	// AddressReused: an address of several successive objects, in a stack of unknown time.
	AddressReused

	// The reasons below are for the last frame of a copied user stack (--call-graph dwarf) that was
	// not unwound to its end.

	StackTruncated // the copy of the stack ends before the stack does
	OtherStack     // the rest is on a stack that was not copied
	NoUnwindTable  // the store has no unwind table for the object of the previous frame
	ChainBroken    // the code of the previous frame has no rule, or its rule is wrong
	StackNotCopied // nothing was copied: the program was being replaced

	// CallersUncertain: a frame inserted into a copied stack after code without unwind rules, which
	// was left by its frame pointer: that may belong to an outer function.
	CallersUncertain
	// CallersUnknown: a frame in place of the rest of a stack made of frame pointers: the words that
	// follow are proven to be no callers (analyze/callers).
	CallersUnknown
	// CallersMissing: a frame in place of callers that such a stack lacks, where several are possible.
	CallersMissing
	// CallersLikely: a frame above which the caller of such a stack is likely, not proven: it is the one
	// that calls show, and an indirect call may hide another.
	CallersLikely
	numReasons
)

var reasonText = [numReasons]string{
	ReasonNone:       "none",
	NotIndexed:       "not indexed",
	Stripped:         "stripped",
	LayoutUnknown:    "layout unknown",
	OtherLayout:      "other layout",
	Mismatch:         "build ID mismatch",
	NoBuildID:        "no build ID",
	Ambiguous:        "ambiguous",
	AnonymousMemory:  "anonymous memory",
	TextRemapped:     "text remapped",
	ImageNotCaptured: "image not captured",
	KernelHidden:     "kernel hidden",
	StackNotUnwound:  "stack not unwound",
	OutsideMapping:   "unmapped",
	OutsideObject:    "outside the object",
	GuestCode:        "guest code",
	HypervisorCode:   "hypervisor code",
	TableDamaged:     "table damaged",
	MapsNotSaved:     "mappings not saved",
	StackLost:        "stack lost",
	ProcessGone:      "process gone",
	MapsNotRead:      "mappings not read",
	AddressReused:    "address reused",
	StackTruncated:   "stack truncated",
	OtherStack:       "other stack",
	NoUnwindTable:    "no unwind table",
	ChainBroken:      "chain broken",
	StackNotCopied:   "stack not copied",
	CallersUncertain: "callers uncertain",
	CallersUnknown:   "callers unknown",
	CallersMissing:   "…",
	CallersLikely:    "likely",
}

// String returns the reason in words, as reports print it.
func (r Reason) String() string {
	if r < numReasons {
		return reasonText[r]
	}
	return "unknown reason"
}

// ReasonFromString is the inverse of String; ok is false for other text.
func ReasonFromString(s string) (r Reason, ok bool) {
	if s == "outside every mapping" { // in profiles of versions before December 2026
		return OutsideMapping, true
	}
	for i, t := range reasonText {
		if t == s {
			return Reason(i), true
		}
	}
	return ReasonNone, false
}

// ReasonWithoutID returns the reason of locations in an object of a kind without build ID and
// without a name of its own.
func ReasonWithoutID(k ObjectKind) Reason {
	switch k {
	case JIT:
		return ImageNotCaptured
	case PerfMap, JITDump, Anonymous:
		return AnonymousMemory
	case Unmapped:
		return OutsideMapping
	case Guest:
		return GuestCode
	case Hypervisor:
		return HypervisorCode
	case NoStack:
		return StackNotUnwound
	}
	return NoBuildID
}
