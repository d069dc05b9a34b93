package ingest

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// CompareFiles orders files by path, then by their other fields.
func CompareFiles(a, b *FileRef) int {
	return cmp.Or(
		strings.Compare(a.Path, b.Path),
		compareBools(a.Deleted, b.Deleted),
		cmp.Compare(a.Major, b.Major),
		cmp.Compare(a.Minor, b.Minor),
		cmp.Compare(a.Inode, b.Inode),
		cmp.Compare(a.Generation, b.Generation),
	)
}

// CompareSegments orders segments by Offset, then by falling length.
func CompareSegments(a, b SegmentRef) int {
	return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Len, a.Len))
}

// CompareSamples is the order of Profile.Samples. It ignores the values.
func CompareSamples(a, b Sample) int {
	if c := cmp.Compare(a.Event, b.Event); c != 0 {
		return c
	}
	if c := CompareLabels(&a, &b); c != 0 {
		return c
	}
	return cmp.Compare(a.Stack, b.Stack)
}

// CompareLabels orders samples by comm, process, thread, CPU and tags.
func CompareLabels(s, t *Sample) int {
	if c := cmp.Compare(s.Comm, t.Comm); c != 0 {
		return c
	}
	if c := cmp.Compare(s.PID, t.PID); c != 0 {
		return c
	}
	if c := cmp.Compare(s.TID, t.TID); c != 0 {
		return c
	}
	if c := cmp.Compare(s.CPU, t.CPU); c != 0 {
		return c
	}
	return cmp.Compare(s.Tags, t.Tags)
}

// SortFunctions returns the functions in the order of Names.Functions, without duplicates,
// and renumbers the frames that refer to them.
func SortFunctions(funcs []Function, frames []Frame) []Function {
	order := make([]FuncID, len(funcs))
	for i := range order {
		order[i] = FuncID(i)
	}
	slices.SortFunc(order, func(a, b FuncID) int { return compareFunctions(&funcs[a], &funcs[b]) })
	number := make([]FuncID, len(funcs))
	sorted := make([]Function, 0, len(funcs))
	for _, from := range order {
		if n := len(sorted); n == 0 || sorted[n-1] != funcs[from] {
			sorted = append(sorted, funcs[from])
		}
		number[from] = FuncID(len(sorted) - 1)
	}
	for i := range frames {
		frames[i].Func = number[frames[i].Func]
	}
	return sorted
}

func compareFunctions(a, b *Function) int {
	if c := cmp.Compare(a.Object, b.Object); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.SystemName, b.SystemName), cmp.Compare(a.File, b.File),
		cmp.Compare(a.StartLine, b.StartLine))
}

// CompareLocations is the order of Profile.Locations.
func CompareLocations(a, b Location) int {
	if c := cmp.Compare(a.Object, b.Object); c != 0 {
		return c
	}
	return cmp.Compare(a.Offset, b.Offset)
}

// Display names of objects without a file.
const (
	UnmappedPath       = "[unmapped]"        // unmapped user addresses
	UnmappedKernelPath = "[unmapped kernel]" // unmapped kernel addresses

	AmbiguousPath       = "[ambiguous]"        // user addresses of several objects
	AmbiguousJITPath    = "[ambiguous JIT]"    // of several functions of a run-time compiler
	AmbiguousKernelPath = "[ambiguous kernel]" // kernel addresses of several objects
	GuestPath           = "[guest]"
	HypervisorPath      = "[hypervisor]"
	NoStackPath         = "[no stack]"
	WaitedBeforePath    = "[waited since before the recording]" // the three of derived events
	NotYetRunPath       = "[made, not yet run]"
	NotSampledPath      = "[ran, not sampled]"
	WakersPath          = "[wakers]" // frames between a waker and the thread it woke
	AnonymousPath       = "//anon"   // the kernel's name of memory without a file
	VsyscallPath        = "[vsyscall]"
	VDSO32Path          = "[vdso32]" // perf's name for a 32-bit process under a 64-bit kernel
)

// PerfMapPath is the display name of code named by a process's perf map: the path of that map.
func PerfMapPath(pid int32) string { return fmt.Sprintf("/tmp/perf-%d.map", pid) }

// NoTablePath is the display name of the last frame of stacks that end in an object without unwind
// table, by its path.
func NoTablePath(path string) string { return noTablePrefix + path + "]" }

const noTablePrefix = "[no unwind table: "

// NoTableFile is the inverse of NoTablePath; ok is false for other names.
func NoTableFile(name string) (path string, ok bool) {
	path, ok = strings.CutPrefix(name, noTablePrefix)
	path, closed := strings.CutSuffix(path, "]")
	return path, ok && closed
}

// IsStackEnd reports whether a display name is of a frame inserted by unwinding: after the last
// unwound frame of an incomplete stack, or where callers are uncertain.
func IsStackEnd(name string) bool {
	if _, ok := NoTableFile(name); ok {
		return true
	}
	for r := StackTruncated; r <= CallersLikely; r++ {
		if name == "["+r.String()+"]" {
			return true
		}
	}
	return false
}

// CompareObjects is the order of Profile.Objects: by kind, path and build ID, then by other fields.
// It is 0 only for equal objects.
func CompareObjects(a, b *Object) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		strings.Compare(a.File.Path, b.File.Path),
		a.ID.Compare(b.ID),
		strings.Compare(a.RefSymbol, b.RefSymbol),
		strings.Compare(a.Symbol, b.Symbol),
		cmp.Compare(a.Length, b.Length),
		cmp.Compare(a.PID, b.PID),
		strings.Compare(a.Capture, b.Capture),
		CompareFiles(&a.File, &b.File),
		cmp.Compare(a.Reason, b.Reason),
		compareBools(a.Undecided, b.Undecided),
		compareBools(a.Entry, b.Entry),
	)
}

// compareBools sorts false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Domain returns the Domain of the object's frames.
func (o *Object) Domain() Domain {
	switch o.Kind {
	case Kernel, Module, Hypervisor:
		return KernelDomain
	case JIT:
		if strings.HasPrefix(o.File.Path, "bpf_") {
			return BPFDomain
		}
		return KernelDomain
	case PerfMap, JITDump, Anonymous:
		return JITDomain
	case Unmapped:
		if o.File.Path == UnmappedKernelPath || o.File.Path == AmbiguousKernelPath {
			return KernelDomain
		}
	}
	return UserDomain
}

// FrameSum is a sum over frames.
type FrameSum struct {
	Frames uint64
	Weight float64 // frames by the weight of their samples; sums pass 2^64
}

// Add adds another sum.
func (s *FrameSum) Add(o FrameSum) { s.Frames += o.Frames; s.Weight += o.Weight }

// SampleSums returns the samples, each with the FrameSum of one of its frames. The weight is the
// sum of periods or, with count and for events without periods, the number of samples.
func (p *Profile) SampleSums(count bool) iter.Seq2[*Sample, FrameSum] {
	periods := make([]bool, len(p.Events))
	for i := range p.Samples {
		s := &p.Samples[i]
		periods[s.Event] = periods[s.Event] || s.Weight != 0
	}
	return func(yield func(*Sample, FrameSum) bool) {
		for i := range p.Samples {
			s := &p.Samples[i]
			w := FrameSum{Frames: s.Count, Weight: float64(s.Weight)}
			if count || !periods[s.Event] {
				w.Weight = float64(s.Count)
			}
			if !yield(s, w) {
				return
			}
		}
	}
}

// WeighFrames sums the frames of a profile by location over all its events, weighted as by
// SampleSums.
func (p *Profile) WeighFrames(count bool) []FrameSum {
	locations := make([]FrameSum, len(p.Locations))
	for s, w := range p.SampleSums(count) {
		for l := range p.Frames(s.Stack) {
			locations[l].Add(w)
		}
	}
	return locations
}

// WeighInnermost sums the samples of a profile by the location of their innermost frame, and all
// samples, including those without frames. Each sample counts as one frame.
func (p *Profile) WeighInnermost(count bool) (locations []FrameSum, all FrameSum) {
	locations = make([]FrameSum, len(p.Locations))
	for s, w := range p.SampleSums(count) {
		all.Add(w)
		if s.Stack != 0 {
			locations[p.Leaves[s.Stack]].Add(w)
		}
	}
	return locations, all
}

// IsNamed reports whether a location of the profile has the name of a function (see
// Names.Named).
func (p *Profile) IsNamed(l LocationID) bool { return p.Names != nil && p.Names.Named(l) }

// NamedFrames adds up the sums of WeighFrames or WeighInnermost, over all frames and over frames
// with the name of a function. All printed shares of named frames are computed from these.
func (p *Profile) NamedFrames(locations []FrameSum) (named, all FrameSum) {
	for l, w := range locations {
		all.Add(w)
		if p.IsNamed(LocationID(l)) {
			named.Add(w)
		}
	}
	return named, all
}
