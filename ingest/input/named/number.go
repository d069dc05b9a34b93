package named

import (
	"cmp"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/merge"
)

// numberObjects sorts the objects into the profile, and renumbers places and functions. Modules and
// vdsos belong to the kernel, if there is just one.
func (b *Builder) numberObjects() {
	order := make([]uint32, len(b.objects))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(x, y uint32) int {
		return ingest.CompareObjects(&b.objects[x], &b.objects[y])
	})
	p := b.P
	number := make([]uint32, len(b.objects))
	kernel, kernels := ingest.NoObject, 0
	for to, from := range order {
		number[from] = uint32(to)
		o := b.objects[from]
		slices.SortFunc(o.Segments, ingest.CompareSegments)
		o.Segments = slices.Compact(o.Segments)
		p.Objects = append(p.Objects, o)
		if o.Kind == ingest.Kernel {
			kernel = ingest.ObjectID(to)
			kernels++
		}
	}
	for i := range p.Objects {
		if o := &p.Objects[i]; kernels == 1 && (o.Kind == ingest.VDSO || o.Kind == ingest.Module) {
			o.Kernel = kernel
		}
	}
	for i := range b.places {
		b.places[i].object = number[b.places[i].object]
	}
	for i := range b.funcs {
		b.funcs[i].Object = ingest.ObjectID(number[b.funcs[i].Object])
	}
}

// numberPlaces makes Locations and Names, and returns the location of each place. Places at one
// address are one location, unless they have different names, as in files without real addresses:
// these get the next free Offsets.
func (b *Builder) numberPlaces() []ingest.LocationID {
	p, places := b.P, b.places
	slices.SortFunc(places, b.comparePlaces)
	number := make([]ingest.LocationID, len(places))
	kept := places[:0]     // never overtakes the reading
	var offset addr.Offset // of the place before, before it was moved
	for i := range places {
		pl := places[i]
		n := len(kept)
		if n > 0 && kept[n-1].object == pl.object {
			last := &kept[n-1]
			next := last.offset + 1
			same := pl.offset == offset && (pl.from == pl.to || next == 0 ||
				slices.CompareFunc(b.lines(pl), b.lines(*last), b.compareLines) == 0)
			if same {
				number[pl.number] = ingest.LocationID(n - 1)
				continue
			}
			offset = pl.offset
			pl.offset = max(pl.offset, next)
		} else {
			offset = pl.offset
		}
		number[pl.number] = ingest.LocationID(n)
		kept = append(kept, pl)
		p.Locations = append(p.Locations,
			ingest.Location{Object: ingest.ObjectID(pl.object), Offset: pl.offset})
	}
	if b.marked {
		b.names(kept)
	}
	b.places = nil
	return number
}

// lines returns the frames of a place.
func (b *Builder) lines(pl place) []ingest.Frame { return b.frames[pl.from:pl.to] }

// comparePlaces orders places by location; places with more names come first.
func (b *Builder) comparePlaces(x, y place) int {
	if c := cmp.Or(cmp.Compare(x.object, y.object), cmp.Compare(x.offset, y.offset),
		cmp.Compare(y.to-y.from, x.to-x.from)); c != 0 {
		return c
	}
	return cmp.Or(slices.CompareFunc(b.lines(x), b.lines(y), b.compareLines),
		cmp.Compare(x.reason, y.reason))
}

func (b *Builder) compareLines(x, y ingest.Frame) int {
	f, g := &b.funcs[x.Func], &b.funcs[y.Func]
	return cmp.Or(cmp.Compare(f.SystemName, g.SystemName), cmp.Compare(f.File, g.File),
		cmp.Compare(f.StartLine, g.StartLine), cmp.Compare(x.Line, y.Line),
		cmp.Compare(x.Column, y.Column))
}

// names makes Names of the frames of the places, which are in the order of Locations.
func (b *Builder) names(places []place) {
	n := &ingest.Names{
		FrameEnds: make([]uint32, len(places)),
		Reasons:   make([]ingest.Reason, len(places)),
		SymOff:    make([]uint64, len(places)),
	}
	for i, pl := range places {
		for k, f := range b.lines(pl) {
			f.Inlined = k < int(pl.to-pl.from)-1
			n.Frames = append(n.Frames, f)
		}
		n.FrameEnds[i] = uint32(len(n.Frames))
		switch {
		case pl.reason != ingest.ReasonNone:
			n.Reasons[i] = pl.reason
		case pl.from == pl.to:
			n.Reasons[i] = defaultReason(&b.P.Objects[pl.object])
		default:
			b.P.Stats.NoStarts = true
		}
	}
	n.Functions = ingest.SortFunctions(b.funcs, n.Frames)
	b.P.Names = n
}

// defaultReason is the reason why a location of a foreign file has no name.
func defaultReason(o *ingest.Object) ingest.Reason {
	r := ingest.ReasonWithoutID(o.Kind)
	if !o.ID.IsZero() && (r == ingest.NoBuildID || r == ingest.ImageNotCaptured) {
		return ingest.NotIndexed
	}
	return r
}

// finishSamples sorts and renumbers stacks, strings and samples, and joins equal samples.
func (b *Builder) finishSamples(locations []ingest.LocationID) {
	p := b.P
	merge.SetStacks(p, b.stacks.Trees(), locations)
	b.stacks = nil
	strings := sortStrings(p)
	for i := range p.Samples {
		s := &p.Samples[i]
		s.Comm, s.Tags = strings[s.Comm], strings[s.Tags]
	}
	p.Samples = merge.Samples(p.Samples)
	depth := make([]uint32, len(p.Callers))
	for s := 1; s < len(depth); s++ {
		depth[s] = depth[p.Callers[s]] + 1
	}
	for i := range p.Samples {
		p.Stats.Frames += p.Samples[i].Count * uint64(depth[p.Samples[i].Stack])
	}
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
