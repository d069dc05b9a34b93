package pprof

import (
	"math"
	"path"
	"strings"

	"github.com/google/pprof/profile"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/named"
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

// readLocations adds objects, functions and places, and sets the place of each location.
func (r *reader) readLocations() {
	objects := make(map[*profile.Mapping]uint32, len(r.prof.Mapping)+1)
	bases := make(map[*profile.Mapping]uint64, len(r.prof.Mapping))
	for i, m := range r.prof.Mapping {
		o, base := objectOfMapping(m)
		objects[m], bases[m] = r.b.Object(o), base
		if i == 0 && o.Kind == ingest.ELF {
			r.p.Meta.MainProgram = o.File.Path
		}
	}
	r.places = make(map[*profile.Location]uint32, len(r.prof.Location))
	var frames []ingest.Frame
	for _, l := range r.prof.Location {
		object, ok := objects[l.Mapping]
		if !ok { // without a mapping: an object without a name
			object = r.b.Object(ingest.Object{Kind: ingest.Unmapped, Kernel: ingest.NoObject,
				Reason: ingest.OutsideMapping})
			objects[nil] = object
		}
		pl := named.Place{Object: object, Offset: addr.Offset(l.Address - bases[l.Mapping])}
		lines, reason := namedLines(l)
		pl.Reason = reason
		if reason != ingest.ReasonNone && r.b.Kind(object) != ingest.PerfMap && ofObject(reason) {
			r.b.SetReason(object, reason)
		}
		frames = frames[:0]
		for _, ln := range lines {
			f := ingest.Function{Object: ingest.ObjectID(object),
				SystemName: systemName(ln.Function), File: ln.Function.Filename,
				StartLine: clampLine(ln.Function.StartLine)}
			frames = append(frames, ingest.Frame{Func: r.b.Function(f), Line: clampLine(ln.Line),
				Column: clampLine(ln.Column)})
		}
		pl.Frames = frames
		r.places[l] = r.b.Place(pl)
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

func systemName(f *profile.Function) string {
	if f.SystemName != "" && !strings.HasPrefix(f.SystemName, UnresolvedPrefix) {
		return f.SystemName
	}
	return f.Name
}

func clampLine(v int64) int32 { return int32(min(max(v, 0), math.MaxInt32)) }
