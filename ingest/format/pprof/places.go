package pprof

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/format/jitdump"
	"symbolize/ingest/object/symlist"
)

// objectOfMapping returns the object of a pprof mapping, and the base to subtract from its
// addresses (modulo 2^64) to get Offsets.
func objectOfMapping(m *profile.Mapping) (o ingest.Object, base uint64) {
	base = m.Start - m.Offset
	if id, err := buildid.Parse(m.BuildID); err == nil {
		o.ID, o.IDSource = id, ingest.IDRecorded
	}
	size := m.Limit - m.Start
	if m.Limit < m.Start {
		size = 0
	}
	file := m.File
	o.Kind, o.Kernel = kindOfMapping(m, o.ID), ingest.NoObject
	switch o.Kind {
	case ingest.Kernel:
		base = kernelBase(m)
		if ref, ok := strings.CutPrefix(file, ingest.KernelMapName); ok {
			file, o.RefSymbol = ingest.KernelMapName, ref
		}
	case ingest.JIT:
		file, _ = ingest.Unbracket(file)
		o.Symbol, o.Length = file, size
		base = m.Start
	case ingest.PerfMap:
		o.PID, _ = symlist.PerfMapPID(file)
	case ingest.JITDump:
		o.PID, _ = jitdump.PIDOf(file)
		base = m.Start
	case ingest.ELF, ingest.VDSO, ingest.Module:
		if size > 0 {
			o.Segments = []ingest.SegmentRef{{Offset: addr.Offset(m.Offset), Len: size}}
		}
	}
	o.File.Path = strings.TrimSuffix(file, ingest.DeletedSuffix)
	o.File.Deleted = o.File.Path != file
	return o, base
}

// kindOfMapping derives the kind of object from the names that perf, other profilers
// and Write use.
func kindOfMapping(m *profile.Mapping, id buildid.ID) ingest.ObjectKind {
	file, base := m.File, path.Base(m.File)
	inner, bracketed := ingest.Unbracket(file)
	_, isPerfMap := symlist.PerfMapPID(file)
	_, isDump := jitdump.PIDOf(file)
	switch {
	case strings.HasPrefix(file, ingest.KernelMapName), ingest.IsVmlinux(base) && m.Start>>63 != 0:
		return ingest.Kernel
	case file == "[vdso]", strings.HasPrefix(base, "linux-vdso"):
		return ingest.VDSO
	case isPerfMap && (id.IsZero() || id.Space() == buildid.JIT):
		return ingest.PerfMap
	case isDump && id.Space() == buildid.JIT:
		return ingest.JITDump
	case id.Space() == buildid.JIT, strings.HasPrefix(inner, "bpf_"):
		return ingest.JIT
	case strings.HasPrefix(file, "[guest"):
		return ingest.Guest
	case file == ingest.HypervisorPath:
		return ingest.Hypervisor
	case file == ingest.UnmappedPath, file == ingest.UnmappedKernelPath,
		file == ingest.AmbiguousPath, file == ingest.AmbiguousJITPath, file == ingest.AmbiguousKernelPath:
		return ingest.Unmapped
	case file == ingest.NoStackPath, ingest.IsStackEnd(file):
		return ingest.NoStack
	case ingest.IsAnonymousName(file) && id.IsZero():
		return ingest.Anonymous
	case bracketed && file != ingest.VsyscallPath, strings.Contains(base, ".ko"):
		return ingest.Module
	}
	return ingest.ELF
}

// kernelBase is the run-time address of the reference symbol: in perf_data_converter the
// file_offset, which is perf's pgoff, in others the start of the mapping.
func kernelBase(m *profile.Mapping) uint64 {
	if m.Offset >= m.Start && m.Offset < m.Limit && m.Offset != 0 {
		return m.Offset
	}
	return m.Start
}

// place is a pprof location before its conversion to a Location.
type place struct {
	from   *profile.Location
	object ingest.ObjectID
	offset addr.Offset
	lines  []profile.Line // none if unresolved
	reason ingest.Reason  // if there are no lines
}

// readLocations makes Objects, Locations and Names.
func (r *reader) readLocations() {
	places := make([]place, 0, len(r.prof.Location))
	bases := make(map[*profile.Mapping]uint64, len(r.prof.Mapping))
	ids := r.readObjects(bases)
	marked := false
	for _, l := range r.prof.Location {
		pl := place{from: l, object: ids[l.Mapping]}
		o := &r.p.Objects[pl.object]
		pl.offset = addr.Offset(l.Address - bases[l.Mapping])
		pl.lines, pl.reason = namedLines(l)
		if pl.reason != ingest.ReasonNone {
			marked = true
			if o.Kind != ingest.PerfMap && ofObject(pl.reason) {
				o.Reason = pl.reason
			}
		} else {
			pl.reason = defaultReason(o)
		}
		if o.Kind.Collapsed() && len(pl.lines) == 0 {
			pl.offset = 0
		}
		marked = marked || len(pl.lines) > 0
		places = append(places, pl)
	}
	slices.SortStableFunc(places, comparePlaces)
	places = r.numberPlaces(places)
	if marked {
		r.readNames(places)
	}
}

// namedLines returns the lines of a location with a function name, and the reason of a location
// marked as unresolved by Write.
func namedLines(l *profile.Location) ([]profile.Line, ingest.Reason) {
	for _, ln := range l.Line {
		f := ln.Function
		if text, ok := strings.CutPrefix(f.SystemName, UnresolvedPrefix); ok {
			reason, known := ingest.ReasonFromString(text)
			if !known || reason == ingest.ReasonNone {
				reason = ingest.NotIndexed
			}
			if f.Name != "" && f.Name[0] != '[' {
				return []profile.Line{ln}, reason // the function's bounds are known
			}
			return nil, reason
		}
		if f.Name == "" && f.SystemName == "" {
			return nil, ingest.ReasonNone
		}
	}
	return l.Line, ingest.ReasonNone
}

// unresolvedLine reports whether Write marked a line's function as unresolved.
func unresolvedLine(ln *profile.Line) bool {
	return strings.HasPrefix(ln.Function.SystemName, UnresolvedPrefix)
}

// ofObject reports whether a reason holds for a whole object, independently of the store.
func ofObject(r ingest.Reason) bool {
	switch r {
	case ingest.KernelHidden, ingest.AnonymousMemory, ingest.ImageNotCaptured,
		ingest.OutsideMapping, ingest.StackNotUnwound,
		ingest.GuestCode, ingest.HypervisorCode:
		return true
	}
	return false
}

// defaultReason is the reason why a location of a foreign file has no name.
func defaultReason(o *ingest.Object) ingest.Reason {
	r := ingest.ReasonWithoutID(o.Kind)
	if !o.ID.IsZero() && (r == ingest.NoBuildID || r == ingest.ImageNotCaptured) {
		return ingest.NotIndexed
	}
	return r
}

// readObjects makes one object of all mappings with the same file and build ID, numbers them and
// fills in the bases. Locations without a mapping (nil) get an object without a name.
func (r *reader) readObjects(bases map[*profile.Mapping]uint64) map[*profile.Mapping]ingest.ObjectID {
	type key struct {
		kind ingest.ObjectKind
		id   buildid.ID
		path string
		ref  string
	}
	index := make(map[key]int)
	owner := make(map[*profile.Mapping]int, len(r.prof.Mapping)+1)
	var objects []ingest.Object
	for _, m := range r.prof.Mapping {
		o, base := objectOfMapping(m)
		k := key{o.Kind, o.ID, o.File.Path, o.RefSymbol}
		i, ok := index[k]
		if !ok {
			i = len(objects)
			index[k] = i
			objects = append(objects, o)
		} else {
			objects[i].Segments = append(objects[i].Segments, o.Segments...)
			objects[i].Length = max(objects[i].Length, o.Length)
		}
		owner[m], bases[m] = i, base
	}
	if slices.ContainsFunc(r.prof.Location,
		func(l *profile.Location) bool { return l.Mapping == nil }) {
		owner[nil] = len(objects)
		objects = append(objects,
			ingest.Object{Kind: ingest.Unmapped, Kernel: ingest.NoObject,
				Reason: ingest.OutsideMapping})
	}
	number := r.numberObjects(objects)
	ids := make(map[*profile.Mapping]ingest.ObjectID, len(owner))
	for m, i := range owner {
		ids[m] = number[i]
	}
	if len(r.prof.Mapping) > 0 {
		if o := &r.p.Objects[ids[r.prof.Mapping[0]]]; o.Kind == ingest.ELF {
			r.p.Meta.MainProgram = o.File.Path
		}
	}
	return ids
}

// numberObjects sorts the objects into the profile and returns the new number of each. Modules and
// vdsos belong to the kernel, if there is just one.
func (r *reader) numberObjects(objects []ingest.Object) []ingest.ObjectID {
	order := make([]int, len(objects))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return ingest.CompareObjects(&objects[a],
			&objects[b])
	})
	number := make([]ingest.ObjectID, len(objects))
	kernel := ingest.NoObject
	kernels := 0
	for to, from := range order {
		number[from] = ingest.ObjectID(to)
		o := objects[from]
		slices.SortFunc(o.Segments, ingest.CompareSegments)
		o.Segments = slices.Compact(o.Segments)
		r.p.Objects = append(r.p.Objects, o)
		if o.Kind == ingest.Kernel {
			kernel = ingest.ObjectID(to)
			kernels++
		}
	}
	for i := range r.p.Objects {
		if o := &r.p.Objects[i]; kernels == 1 && (o.Kind == ingest.VDSO || o.Kind == ingest.Module) {
			o.Kernel = kernel
		}
	}
	return number
}

// comparePlaces orders places by location; places with more names come first.
func comparePlaces(a, b place) int {
	if c := cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.offset, b.offset),
		cmp.Compare(len(b.lines), len(a.lines))); c != 0 {
		return c
	}
	return slices.CompareFunc(a.lines, b.lines, compareLines)
}

func compareLines(a, b profile.Line) int {
	return cmp.Or(cmp.Compare(systemName(a.Function), systemName(b.Function)),
		cmp.Compare(a.Function.Filename, b.Function.Filename),
		cmp.Compare(a.Function.StartLine, b.Function.StartLine),
		cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

func systemName(f *profile.Function) string {
	if f.SystemName != "" && !strings.HasPrefix(f.SystemName, UnresolvedPrefix) {
		return f.SystemName
	}
	return f.Name
}

// numberPlaces makes Locations and returns the kept places. Places at one address are one location,
// unless they have different names, as in files without real addresses: these get the next free
// Offsets.
func (r *reader) numberPlaces(places []place) []place {
	r.places = make(map[*profile.Location]ingest.LocationID, len(places))
	kept := places[:0]     // never overtakes the reading
	var offset addr.Offset // of the place before, before it was moved
	for i := range places {
		pl := places[i]
		n := len(kept)
		if n > 0 && kept[n-1].object == pl.object {
			last := &kept[n-1]
			next := last.offset + 1
			same := pl.offset == offset && (len(pl.lines) == 0 || next == 0 ||
				slices.CompareFunc(pl.lines, last.lines, compareLines) == 0)
			if same {
				r.places[pl.from] = ingest.LocationID(n - 1)
				continue
			}
			offset = pl.offset
			pl.offset = max(pl.offset, next)
		} else {
			offset = pl.offset
		}
		r.places[pl.from] = ingest.LocationID(n)
		kept = append(kept, pl)
		r.p.Locations = append(r.p.Locations, ingest.Location{Object: pl.object, Offset: pl.offset})
	}
	return kept
}

// readNames makes Names from the lines of the places.
func (r *reader) readNames(places []place) {
	n := &ingest.Names{
		FrameEnds: make([]uint32, len(places)),
		Reasons:   make([]ingest.Reason, len(places)),
		SymOff:    make([]uint64, len(places)),
	}
	type key struct {
		object ingest.ObjectID
		f      *profile.Function
	}
	index := make(map[key]ingest.FuncID)
	var funcs []ingest.Function
	for i := range places {
		pl := &places[i]
		for k, ln := range pl.lines {
			id, ok := index[key{pl.object, ln.Function}]
			if !ok {
				id = ingest.FuncID(len(funcs))
				index[key{pl.object, ln.Function}] = id
				funcs = append(funcs, ingest.Function{Object: pl.object,
					SystemName: systemName(ln.Function),
					File:       ln.Function.Filename, StartLine: clampLine(ln.Function.StartLine)})
			}
			n.Frames = append(n.Frames, ingest.Frame{Func: id, Line: clampLine(ln.Line),
				Column: clampLine(ln.Column), Inlined: k < len(pl.lines)-1})
		}
		n.FrameEnds[i] = uint32(len(n.Frames))
		if len(pl.lines) == 0 || unresolvedLine(&pl.lines[0]) {
			n.Reasons[i] = pl.reason
		} else {
			r.p.Stats.NoStarts = true
		}
	}
	n.Functions = ingest.SortFunctions(funcs, n.Frames)
	r.p.Names = n
}

func clampLine(v int64) int32 { return int32(min(max(v, 0), math.MaxInt32)) }

// stackBuilder interns stacks of a profile with final Locations, and finally sorts stacks, comms
// and samples.
type stackBuilder struct {
	p      *ingest.Profile
	stacks *intern.ListSet
}

// stack interns a list of locations, leaf first, at most intern.MaxList.
func (b *stackBuilder) stack(locs []uint32) ingest.StackID {
	id, _ := b.stacks.Add(locs)
	return ingest.StackID(id)
}

func (b *stackBuilder) add(s ingest.Sample) { b.p.Samples = append(b.p.Samples, s) }

// finish sorts and renumbers stacks, strings and samples, and joins equal samples.
func (b *stackBuilder) finish() {
	p := b.p
	b.stacks.Forget()
	stacks := b.sortStacks()
	strings := sortStrings(p)
	for i := range p.Samples {
		s := &p.Samples[i]
		s.Stack, s.Comm, s.Tags = stacks[s.Stack], strings[s.Comm], strings[s.Tags]
	}
	slices.SortFunc(p.Samples, ingest.CompareSamples)
	p.Samples = mergeSamples(p.Samples)
}

// sortStacks sorts the stacks, and returns the new number of each.
func (b *stackBuilder) sortStacks() []ingest.StackID {
	order := make([]uint32, b.stacks.Len())
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int {
		return slices.Compare(b.stacks.At(x), b.stacks.At(y))
	})
	number := make([]ingest.StackID, len(order))
	b.p.StackEnds = make([]uint32, 0, len(order))
	b.p.StackLocs = make([]ingest.LocationID, 0, b.stacks.Words())
	for to, from := range order {
		number[from] = ingest.StackID(to)
		for _, l := range b.stacks.At(from) {
			b.p.StackLocs = append(b.p.StackLocs, ingest.LocationID(l))
		}
		b.p.StackEnds = append(b.p.StackEnds, uint32(len(b.p.StackLocs)))
	}
	return number
}

func sortStrings(p *ingest.Profile) []ingest.StringID {
	old := p.Strings
	p.Strings = slices.Clone(old)
	slices.Sort(p.Strings)
	number := make([]ingest.StringID, len(old))
	for i, s := range old {
		at, _ := slices.BinarySearch(p.Strings, s)
		number[i] = ingest.StringID(at)
	}
	return number
}

// mergeSamples adds up adjacent samples that differ only in their values.
func mergeSamples(samples []ingest.Sample) []ingest.Sample {
	out := samples[:0]
	for _, s := range samples {
		if n := len(out); n > 0 && ingest.CompareSamples(out[n-1], s) == 0 {
			out[n-1].Count += s.Count
			out[n-1].Weight += s.Weight
			continue
		}
		out = append(out, s)
	}
	return out
}
