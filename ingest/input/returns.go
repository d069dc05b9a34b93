package input

import (
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/intern"
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
		behind := make([][]addr.Offset, len(f.p.Objects)) // by object
		for _, list := range lists {
			for _, pl := range list {
				if pl.Object&returned != 0 {
					id := number[pl.Object&^returned]
					behind[id] = append(behind[id], addr.Return(addr.Offset(pl.Offset), true))
				}
			}
		}
		for id, offsets := range behind {
			if len(offsets) == 0 {
				continue
			}
			slices.Sort(offsets)
			o := &f.p.Objects[id]
			for _, off := range f.opts.Exact(o, slices.Compact(offsets)) {
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
