package pprof

import (
	"math"
	"strings"

	"github.com/google/pprof/profile"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/input/named"
)

// mappingOf returns a mapping of the library.
func mappingOf(m *profile.Mapping) named.Mapping {
	id, _ := buildid.Parse(m.BuildID)
	return named.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: m.File, ID: id}
}

// readLocations adds objects, functions and places, and sets the place of each location.
func (r *profileReader) readLocations() {
	mappings := make(map[*profile.Mapping]*named.Mapped, len(r.prof.Mapping)+1)
	for i, m := range r.prof.Mapping {
		x := r.b.Map(mappingOf(m))
		mappings[m] = x
		object, _ := r.b.Locate(x, m.Start)
		if o := r.b.ObjectAt(object); i == 0 && o.Kind == ingest.ELF {
			r.p.Meta.MainProgram = o.File.Path
		}
	}
	r.places = make(map[*profile.Location]uint32, len(r.prof.Location))
	var frames []ingest.Frame
	for _, l := range r.prof.Location {
		m, ok := mappings[l.Mapping]
		if !ok {
			m = r.b.MapNone()
			mappings[l.Mapping] = m
		}
		object, off := r.b.Locate(m, l.Address)
		pl := named.Place{Object: object, Offset: off}
		lines, reason := namedLines(l)
		pl.Reason = reason
		if reason != ingest.ReasonNone && r.b.ObjectAt(object).Kind != ingest.PerfMap && ofObject(reason) {
			r.b.ObjectAt(object).Reason = reason
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
	case ingest.KernelHidden, ingest.AnonymousMemory, ingest.TextRemapped, ingest.ImageNotCaptured,
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
