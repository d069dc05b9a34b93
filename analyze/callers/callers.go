// Package callers checks and completes stacks that were made of frame pointers.
//
// Such a stack is wrong in two ways. Where a function has no frame (leaf functions, assembly,
// prologues, code built without frame pointers), its caller is missing: the frame pointer is the one of
// a function H further out, and the next address is where H was called from. And where code uses the
// register for something else, the words that follow were never callers.
//
// What holds at each step is known without the stack: the unwind rule at an address says whose frame
// the frame pointer is, and the call before a return address says which function was called
// (ingest/object/calls). By the state at a place P in a function f, the next address R is:
//
//	Own       f's caller: proven
//	Outer     the place from which H was called. If the call before R has one target, H is that
//	          function, or one that it jumps to; between H and f are only functions that leave the
//	          frame pointer unchanged. If one function can be f's caller it is inserted, and so on
//	          up to H; otherwise there is a gap, above it H.
//	Used      nothing: the rest of the stack is replaced by one frame, [callers unknown]
//	Unproven  perhaps f's caller: it stays if a call ends there
//
// An address at which no call ends, or outside of all mappings, ends the stack in the same way. If a
// call or jump in the way may go anywhere, f's caller is restored only if f's address is nowhere taken,
// and of the calls in its object only those of one function are possible.
//
// Code without tables (of run-time compilers, files that are not found) stays as it was recorded, as
// does the kernel's part of a stack.
package callers

import (
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/object/calls"
)

// Options are for Complete.
type Options struct {
	// Code returns the code of an object, nil if it is not known. It is called once per object.
	Code func(*ingest.Object) *Code
	// Gaps inserts a frame where a caller is missing.
	Gaps bool
	// Whole is set if all mappings are known: an address outside of them is no caller.
	Whole bool
}

// Complete returns a profile with the checked stacks of p, whose stacks were made of frame pointers,
// and which has no names yet; p itself if nothing changes. chain converts a stack of p, as it is or
// from a replay, to the new profile's locations; it is nil if nothing changes.
func Complete(p *ingest.Profile, opts Options) (q *ingest.Profile,
	chain func([]ingest.LocationID) []ingest.LocationID) {
	w := newWalker(p, opts)
	if w == nil {
		return p, nil
	}
	w.rewrite()
	if !w.changed {
		p.Stats.Callers = w.stats
		return p, nil
	}
	q = merge.Restack(p, w.objects, w.places, w.nodes, w.stacks)
	q.Stats.Callers = w.stats
	return q, w.chain()
}

// place is what is known of a location, as the innermost or as a calling one.
type place struct {
	known    bool
	unmapped bool
	code     *Code
	object   int32
	at       addr.Addr // to look up
	ret      addr.Addr // of a return address: itself
	call     calls.Call
	returns  bool // a call ends at ret
	state    calls.State
	function function // number -1 for none
}

// placeOf returns what is known of a location; exact if it is no return address.
func (w *walker) placeOf(l ingest.LocationID, exact bool) *place {
	list := &w.known[0]
	if exact {
		list = &w.known[1]
	}
	if pl := (*list)[l]; pl != nil {
		return pl
	}
	pl := &place{known: true}
	(*list)[l] = pl
	loc := w.p.Locations[l]
	pl.object = int32(loc.Object)
	pl.unmapped = w.p.Objects[loc.Object].Kind == ingest.Unmapped
	c := w.codeOf(loc.Object)
	if c == nil {
		return pl
	}
	at, ok := c.Addrs.Of(loc.Offset)
	if !ok {
		return pl
	}
	pl.code, pl.at = c, at
	pl.state = c.Calls.State(at)
	pl.function = function{pl.object, int32(c.Calls.Func(at))}
	if !exact {
		pl.ret = at + 1
		pl.call, pl.returns = c.Calls.Before(pl.ret)
		if s := c.Calls.State(pl.ret); !pl.returns && (s == calls.Ends || s == calls.Signal) &&
			pl.state != calls.Signal && pl.state != calls.Ends {
			pl.state = s
		}
	}
	return pl
}

// follows reports whether an address can be behind another in a stack without a gap between them.
func (pl *place) follows() bool {
	return pl.code == nil || pl.returns || pl.state == calls.Ends || pl.state == calls.Signal
}

// step is what holds between a place and the next address of a stack.
type step struct {
	kind   stepKind
	insert []uint32 // places to be inserted, the outermost first
	gaps   int
}

type stepKind uint8

const (
	recorded stepKind = iota
	proven
	restored
	cut
)

// step returns what holds between two locations.
func (w *walker) step(inner, outer ingest.LocationID, exact bool) *step {
	key := stepKey{inner, outer, exact}
	if s := w.steps[key]; s != nil {
		return s
	}
	s := w.newStep(w.placeOf(inner, exact), w.placeOf(outer, false))
	w.steps[key] = s
	return s
}

func (w *walker) newStep(p, r *place) *step {
	if r.unmapped && w.opts.Whole || !r.unmapped && !r.follows() {
		return &step{kind: cut}
	}
	if p.code == nil {
		return &step{}
	}
	switch p.state {
	case calls.Used:
		return &step{kind: cut}
	case calls.Own:
		return &step{kind: proven}
	case calls.Signal:
		return w.gap(nil)
	case calls.Outer:
		if !r.returns || p.function.number < 0 {
			return w.gap(nil)
		}
		return w.outer(p.function, r)
	}
	return &step{}
}

// gap returns a step with a caller that is missing behind some that were restored.
func (w *walker) gap(insert []uint32) *step {
	s := &step{insert: insert, gaps: 1}
	if len(insert) > 0 {
		s.kind = restored
	}
	if w.opts.Gaps {
		s.insert = append([]uint32{w.gapPlace()}, s.insert...)
	}
	return s
}

// maxRestored bounds the callers that are inserted in one place.
const maxRestored = 32

// outer returns the step from a function that runs with the frame pointer of one further out, to the
// address that this one returns to.
func (w *walker) outer(f function, r *place) *step {
	called, known := w.graph.targets(r.object, r.call.Target)
	if !known || w.graph.codes[f.object].Calls.Linker {
		return w.anywhere(f)
	}
	if all, _ := w.graph.tails(called); slices.Contains(all, f) {
		return &step{} // called from there itself: the stack was completed, or a recursion
	}
	reach := w.graph.reachable(called)
	var inner []uint32    // inserted so far, the innermost first
	seen := []function{f} // a recursion has any number of frames
	for range maxRestored {
		edges := reach.edges[f]
		if reach.edges == nil {
			return w.gapAbove(inner, reach, called)
		}
		if reach.open {
			more, closed := w.graph.callersIn(f)
			if !closed {
				return w.gapAbove(inner, reach, called)
			}
			edges = slices.Clone(edges)
			for _, e := range more {
				if e.own = e.own && reach.leaps; e.own || e.passes {
					edges = append(edges, e)
				}
			}
		}
		if len(edges) == 0 {
			return w.gapOrCut(inner, reach, called)
		}
		x, sites, own, passes := distinct(edges)
		if sites == nil {
			return w.gapAbove(inner, reach, called)
		}
		if passes && slices.Contains(seen, x) {
			return w.gapAbove(inner, reach, called)
		}
		inner, seen = append(inner, w.placeAt(x, sites)), append(seen, x)
		switch {
		case own && !passes:
			slices.Reverse(inner)
			return &step{kind: restored, insert: inner}
		case own:
			slices.Reverse(inner)
			return w.gap(inner)
		}
		f = x
	}
	return w.gapAbove(inner, reach, called)
}

// gapOrCut is the step where no path leads to a function: if some places of the way are unknown, the
// step is a gap, otherwise the address is no caller.
func (w *walker) gapOrCut(inner []uint32, reach *reach, called []function) *step {
	if len(inner) == 0 && !reach.open {
		return &step{kind: cut}
	}
	return w.gapAbove(inner, reach, called)
}

// gapAbove returns a step with a gap, above it the function that was called, if it has the frame.
func (w *walker) gapAbove(inner []uint32, reach *reach, called []function) *step {
	slices.Reverse(inner)
	s := w.gap(inner)
	if len(reach.owners) == 1 && !reach.leaps {
		s.insert = append([]uint32{w.placeAt(reach.owners[0], nil)}, s.insert...)
		s.kind = restored
	}
	return s
}

// anywhere returns the step where it is not known which function was called: f's caller is restored if
// there is one in all of its object.
func (w *walker) anywhere(f function) *step {
	edges, closed := w.graph.callersIn(f)
	if !closed {
		return w.gap(nil)
	}
	edges = slices.DeleteFunc(slices.Clone(edges), func(e edge) bool { return !e.own && !e.passes })
	x, sites, own, passes := distinct(edges)
	switch {
	case sites == nil:
		return w.gap(nil)
	case own && !passes:
		return &step{kind: restored, insert: []uint32{w.placeAt(x, sites)}}
	}
	return w.gap([]uint32{w.placeAt(x, sites)})
}

// distinct returns the one caller of edges with the places of its calls, and whose frame the frame
// pointer may be at these; nil for several callers or none.
func distinct(edges []edge) (x function, sites []addr.Addr, own, passes bool) {
	for i, e := range edges {
		if i > 0 && e.caller != edges[0].caller {
			return x, nil, false, false
		}
		x, own, passes = e.caller, own || e.own, passes || e.passes
		if !slices.Contains(sites, e.site) {
			sites = append(sites, e.site)
		}
	}
	return x, sites, own, passes
}
