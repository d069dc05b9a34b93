package batch

import (
	"slices"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/input/merge"
)

// namesBuilder makes the Names of a profile of answers.
type namesBuilder struct {
	p     *ingest.Profile
	old   *ingest.Names // of a pprof file; nil for none
	names *ingest.Names
	funcs []ingest.Function
	base  map[source]ingest.FuncID // of its functions in funcs
}

// source is an answer as it is used for an object.
type source struct {
	object ingest.ObjectID
	answer *answer
}

func newNamesBuilder(p *ingest.Profile) *namesBuilder {
	n := len(p.Locations)
	b := &namesBuilder{p: p, old: p.Names, base: make(map[source]ingest.FuncID),
		names: &ingest.Names{FrameEnds: make([]uint32, 0, n), Reasons: make([]ingest.Reason, 0, n),
			SymOff: make([]uint64, 0, n)}}
	if b.old != nil {
		b.funcs = slices.Clone(b.old.Functions)
	}
	return b
}

// add appends the frames of the next location, or the reason for their absence, by the rules of
// resolve.Resolve.
func (b *namesBuilder) add(l ingest.LocationID, list []*answer) error {
	loc := b.p.Locations[l]
	o := &b.p.Objects[loc.Object]
	switch {
	case b.old != nil && b.old.Named(l) && b.old.Reasons[l] == ingest.ReasonNone:
		b.append(b.old.At(l), ingest.ReasonNone, b.old.SymOff[l])
	case o.Symbol == "" && o.Reason != ingest.ReasonNone:
		b.append(nil, o.Reason, 0)
	case list == nil:
		b.append(nil, ingest.ReasonWithoutID(o.Kind), 0)
	default:
		a, at := pick(list, loc)
		if a == nil {
			return noAnswer(o)
		}
		base := b.baseOf(source{loc.Object, a})
		frames := slices.Clone(a.Names.At(at))
		for i := range frames {
			frames[i].Func += base
		}
		b.append(frames, a.Names.Reasons[at], a.Names.SymOff[at])
	}
	return nil
}

// pick returns the first answer that names a location, else the first that has it, and the number
// of the location there.
func pick(list []*answer, loc ingest.Location) (found *answer, at ingest.LocationID) {
	for _, a := range list {
		i, ok := slices.BinarySearch(a.Offsets, loc.Offset)
		if !ok {
			continue
		}
		if a.Names.Reasons[i] == ingest.ReasonNone {
			return a, ingest.LocationID(i)
		}
		if found == nil {
			found, at = a, ingest.LocationID(i)
		}
	}
	return found, at
}

// baseOf adds the functions of an answer and returns the number of the first.
func (b *namesBuilder) baseOf(s source) ingest.FuncID {
	base, ok := b.base[s]
	if !ok {
		base = ingest.FuncID(len(b.funcs))
		b.base[s] = base
		for _, fn := range s.answer.Names.Functions {
			fn.Object = b.p.Home(s.object)
			b.funcs = append(b.funcs, fn)
		}
	}
	return base
}

func (b *namesBuilder) append(frames []ingest.Frame, reason ingest.Reason, off uint64) {
	n := b.names
	n.Frames = append(n.Frames, frames...)
	n.FrameEnds = append(n.FrameEnds, uint32(len(n.Frames)))
	n.Reasons, n.SymOff = append(n.Reasons, reason), append(n.SymOff, off)
}

// finish sets the profile's names, with the functions that are in use: answers have the functions
// of all captures. Names that the profile had before are kept.
func (b *namesBuilder) finish() {
	const unused = ^ingest.FuncID(0)
	number := slices.Repeat([]ingest.FuncID{unused}, len(b.funcs))
	var used []ingest.Function
	if b.old != nil {
		used = slices.Clone(b.old.Functions)
		for i := range used {
			number[i] = ingest.FuncID(i)
		}
	}
	for i := range b.names.Frames {
		f := &b.names.Frames[i].Func
		if number[*f] == unused {
			number[*f] = ingest.FuncID(len(used))
			used = append(used, b.funcs[*f])
		}
		*f = number[*f]
	}
	b.funcs = used
	b.names.Functions = ingest.SortFunctions(b.funcs, b.names.Frames)
	b.p.Names = b.names
	merge.TrimWaits(b.p)
}

// facts adds the fields of an answer that are of a whole object.
func (b *namesBuilder) facts(object ingest.ObjectID, a *answer) {
	n := b.names
	n.Warnings = append(n.Warnings, a.Names.Warnings...)
	if id, ok := a.Names.Probable[0]; ok {
		if n.Probable == nil {
			n.Probable = make(map[ingest.ObjectID]buildid.ID)
		}
		n.Probable[object] = id
	}
	id, ok := a.Mismatch[b.p.Objects[object].File.Path]
	if !ok {
		return
	}
	if n.Found == nil {
		n.Found = make(map[ingest.ObjectID]buildid.ID)
	}
	n.Found[object] = id
	for l := range b.p.Locations {
		if b.p.Locations[l].Object == object && n.Reasons[l] == ingest.NotIndexed {
			n.Reasons[l] = ingest.Mismatch
		}
	}
}
