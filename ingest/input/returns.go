package input

import (
	"context"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/parallel"
	"symbolize/ingest/sideband"
)

// returned is the bit in a place's object that marks a return address, whose place is the
// byte before it, until correctReturns has decided whether it is one.
const returned = 1 << 31

// markReturned marks the place of a return address in an object, if it is to be checked
// with symbol tables.
func markReturned(r *sideband.Objects, object uint32) uint32 {
	if o := &r.List[object]; sideband.NeedsID(o.Kind) && o.Symbol == "" {
		return object | returned
	}
	return object
}

// correctReturns removes the marks of return addresses. Those of which Options.Exact knows that
// no call can precede them get the place of the address itself; it returns these places, for
// a replay.
func (f *assembly) correctReturns(number []ingest.ObjectID, lists ...[]intern.Pair,
) map[ingest.Location]struct{} {
	exact := make(map[ingest.Location]struct{})
	if f.opts.Seen != nil {
		f.opts.Seen(f.seen(number, lists))
	}
	if f.opts.Exact != nil {
		for id, offsets := range f.exactOffsets(number, lists) {
			for _, off := range offsets {
				exact[ingest.Location{Object: ingest.ObjectID(id), Offset: off}] = struct{}{}
			}
		}
	}
	for _, list := range lists {
		for i, pl := range list {
			if pl.Object&returned == 0 {
				continue
			}
			list[i].Object &^= returned
			at := ingest.Location{Object: number[list[i].Object],
				Offset: addr.Return(addr.Offset(pl.Offset), true)}
			if _, ok := exact[at]; ok {
				list[i].Offset = uint64(at.Offset)
			}
		}
	}
	return exact
}

// exactOffsets asks Options.Exact about the return addresses in lists, and returns its answers by object.
func (f *assembly) exactOffsets(number []ingest.ObjectID, lists [][]intern.Pair) [][]addr.Offset {
	behind := make([][]addr.Offset, len(f.p.Objects)) // by object
	for _, list := range lists {
		for _, pl := range list {
			if pl.Object&returned != 0 {
				id := number[pl.Object&^returned]
				behind[id] = append(behind[id], addr.Return(addr.Offset(pl.Offset), true))
			}
		}
	}
	ask := func(_ context.Context, id int) error {
		if offsets := behind[id]; len(offsets) > 0 {
			slices.Sort(offsets)
			behind[id] = f.opts.Exact(&f.p.Objects[id], slices.Compact(offsets))
		}
		return nil
	}
	_ = parallel.Each(context.Background(), f.opts.Workers, len(behind), ask) // fails with ask alone
	return behind
}

// separateUndecided moves the marked places of objects that Options.Undecided selects to an object
// of their own, and returns the new numbers of the objects, by raw object.
func (f *assembly) separateUndecided(number []ingest.ObjectID,
	lists ...[]intern.Pair) []ingest.ObjectID {
	if f.opts.Undecided == nil {
		return number
	}
	raw := len(number)
	selected := make([]bool, len(f.p.Objects))
	for i := range f.p.Objects {
		selected[i] = f.opts.Undecided(&f.p.Objects[i])
	}
	used := make([]bool, len(f.p.Objects))
	for _, list := range lists {
		for i, pl := range list {
			if id := number[pl.Object&^returned]; pl.Object&returned != 0 && selected[id] {
				list[i].Object = pl.Object&^returned + uint32(raw)
				used[id] = true
			}
		}
	}
	var objects []ingest.Object
	first := make([]ingest.ObjectID, len(f.p.Objects)) // the new numbers; that of its undecided part follows
	for i := range f.p.Objects {
		first[i] = ingest.ObjectID(len(objects))
		objects = append(objects, f.p.Objects[i])
		if used[i] {
			o := f.p.Objects[i]
			o.Undecided = true
			objects = append(objects, o)
		}
	}
	for i := range objects {
		if k := objects[i].Kernel; k != ingest.NoObject {
			objects[i].Kernel = first[k]
		}
	}
	f.p.Objects = objects
	out := make([]ingest.ObjectID, 2*raw)
	for i, id := range number {
		out[i], out[raw+i] = ingest.NoObject, ingest.NoObject
		if id != ingest.NoObject {
			out[i], out[raw+i] = first[id], first[id]+1
		}
	}
	return out
}

// seen lists the places by object, for Options.Seen.
func (f *assembly) seen(number []ingest.ObjectID, lists [][]intern.Pair) Seen {
	s := Seen{Host: f.Host.Name, Objects: f.p.Objects,
		Offsets: make([][]addr.Offset, len(f.p.Objects))}
	for _, list := range lists {
		for _, pl := range list {
			id, off := number[pl.Object&^returned], addr.Offset(pl.Offset)
			s.Offsets[id] = append(s.Offsets[id], off)
			if pl.Object&returned != 0 {
				s.Offsets[id] = append(s.Offsets[id], off+1)
			}
		}
	}
	return s
}
