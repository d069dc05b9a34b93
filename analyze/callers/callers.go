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
	"symbolize/ingest/input/merge"
	"symbolize/ingest/object/calls"
	"symbolize/store/calltab"
)

// Options are for Complete.
type Options struct {
	// Code returns the code of an object, nil if it is not known. It is called once per object.
	Code func(*ingest.Object) *Code
	// Damaged gets the errors of tables that could not be read, as of code that is not known.
	Damaged func(error)
	// Gaps inserts a frame where a caller is missing.
	Gaps bool
	// Likely inserts callers where a call or jump in the way may hide others, each behind a frame that
	// marks it. They count as missing.
	Likely bool
	// Optional leaves stacks as they are, and uncounted, if the code of no object is known.
	Optional bool
	// Whole is set if all mappings are known: an address outside of them is no caller.
	Whole bool
}

// Complete returns a profile with the checked stacks of p, whose stacks were made of frame pointers,
// and which has no names yet; p itself if nothing changes. chain converts a stack of p, as it is or
// from a replay, to the new profile's locations; it is nil if nothing changes.
func Complete(p *ingest.Profile, opts Options) (q *ingest.Profile,
	chain func([]ingest.LocationID) []ingest.LocationID) {
	codes := codesOf(p, &opts)
	var w *walker
	for again := codes != nil; again; {
		w, again = newWalker(p, opts, codes), false
		w.rewrite()
		for i, c := range codes {
			if c != nil && c.Calls.Err() != nil {
				opts.Damaged(c.Calls.Err())
				codes[i], again = nil, true
			}
		}
	}
	if w == nil {
		return p, nil
	}
	if !w.changed {
		p.Stats.Callers = w.stats
		return p, nil
	}
	w.sums, w.reasons, w.called, w.graph = nil, nil, nil, nil // no more of use, and large
	q, locations := merge.Restack(p, w.objects, w.places, w.nodes, w.stacks)
	q.Stats.Callers = w.stats
	return q, w.chain(locations)
}

// place is what is known of a location.
type place struct {
	object, function int32          // number -1 for none
	call             calltab.Target // of the call before it, as a return address
	state            calls.State    // of the frame pointer
	behind           calls.State    // at the return address itself
	user             bool           // code of a process
	code             bool           // its code is known
	returns          bool           // a call ends at the return address
	unknown          bool           // a call may end there
	unmapped         bool
}

// placeOf finds what is known of a location.
func (w *walker) placeOf(l ingest.LocationID) place {
	loc := w.p.Locations[l]
	o := &w.p.Objects[loc.Object]
	pl := place{object: int32(loc.Object), function: -1, user: isUser(o), unmapped: o.Kind == ingest.Unmapped}
	c := w.graph.codes[loc.Object]
	if c == nil {
		return pl
	}
	at, ok := c.Addrs.Of(loc.Offset)
	if !ok {
		return pl
	}
	x := c.Calls.At(at)
	pl.code, pl.state, pl.function, pl.unknown = true, x.State, x.Func, x.Unknown
	if pl.call, pl.returns = x.Call, x.Returns; !x.Returns {
		pl.behind = c.Calls.At(at + 1).State
	}
	return pl
}

// stateOf returns the state at a place; exact if it is no return address.
func (pl *place) stateOf(exact bool) calls.State {
	special := func(s calls.State) bool { return s == calls.Ends || s == calls.Signal }
	if !exact && !pl.returns && special(pl.behind) && !special(pl.state) {
		return pl.behind
	}
	return pl.state
}

// follows reports whether an address can be behind another in a stack without a gap between them.
func (pl *place) follows() bool {
	s := pl.stateOf(false)
	return !pl.code || pl.returns || pl.unknown || s == calls.Ends || s == calls.Signal
}

// step is what holds between a place and the next address of a stack.
type step struct {
	kind   stepKind
	gaps   uint8
	insert []uint32 // places to be inserted, the outermost first
	likely bool     // some of them are
}

type stepKind uint8

const (
	recorded stepKind = iota
	proven
	restored
	cut
	unchecked // a pair that is not of two functions of the process
)

// stepKey identifies the step from a function without a frame to a return address.
type stepKey struct {
	inner function
	outer ingest.LocationID
}

// reason returns why a step from a place does not prove its caller.
func (pl *place) reason(st *step, exact bool) ingest.CallerReason {
	switch {
	case st.gaps > 0:
		return ingest.CallerSkipped
	case st.kind == cut && pl.code && pl.stateOf(exact) == calls.Used:
		return ingest.RegisterUsed
	case st.kind == cut:
		return ingest.CalledNothing
	case st.kind != recorded:
		return ingest.NoCallReason
	case !pl.code:
		return ingest.CallsUnknown
	case pl.stateOf(exact) == calls.Outer:
		return ingest.CallsAmbiguous
	}
	return ingest.RuleUnknown
}

// step returns what holds between two locations; exact if the inner one is no return address. next is
// set if the outer one is none.
func (w *walker) step(inner, outer ingest.LocationID, exact bool) (s step, next bool) {
	p, r := &w.known[inner], &w.known[outer]
	if !p.user || !r.user {
		return step{kind: unchecked}, !p.user
	}
	return w.userStep(p, r, outer, exact), false
}

func (w *walker) userStep(p, r *place, outer ingest.LocationID, exact bool) step {
	if r.unmapped && w.opts.Whole || !r.unmapped && !r.follows() {
		return step{kind: cut}
	}
	if !p.code {
		return step{}
	}
	switch p.stateOf(exact) {
	case calls.Used:
		return step{kind: cut}
	case calls.Own:
		return step{kind: proven}
	case calls.Signal:
		return w.gap(nil)
	case calls.Outer:
		if !r.returns || p.function < 0 {
			return w.gap(nil)
		}
		key := stepKey{function{p.object, p.function}, outer}
		s, ok := w.steps[key]
		if !ok {
			s = w.outer(key.inner, r)
			w.steps[key] = s
		}
		return s
	}
	return step{}
}

// gap returns a step with a caller that is missing behind some that were restored.
func (w *walker) gap(insert []uint32) step {
	s := step{insert: insert, gaps: 1}
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
func (w *walker) outer(f function, r *place) step {
	called := w.graph.called(r.object, r.call)
	if len(called.all) == 0 || w.graph.codes[f.object].Calls.Linker() {
		return w.anywhere(f)
	}
	// A function that is only jumped to has the frame of one that called another.
	if direct, _ := w.graph.targets(r.object, r.call); slices.Contains(direct, f) {
		return step{} // called from there itself: the stack was completed, or a recursion
	}
	var inner []uint32 // inserted so far, the innermost first
	likely := false
	seen := []function{f} // a recursion has any number of frames
	for range maxRestored {
		edges, ok := w.callers(f, called)
		if ok && len(edges) == 0 {
			return step{kind: cut}
		}
		if !ok && w.opts.Likely {
			edges = w.graph.reachable(called).edges[f]
		}
		x, sites, own, passes := distinct(edges)
		if sites == nil || passes && slices.Contains(seen, x) {
			break
		}
		if !ok {
			inner, likely = append(inner, w.likelyPlace()), true
		}
		inner, seen = append(inner, w.placeAt(x, sites)), append(seen, x)
		if own {
			slices.Reverse(inner)
			s := step{kind: restored, insert: inner}
			if passes {
				s = w.gap(inner)
			}
			if s.likely = likely; likely {
				s.gaps = 1
			}
			return s
		}
		f = x
	}
	s := w.gapAbove(inner, called)
	s.likely = likely
	return s
}

// callers returns the calls by which a function can be reached from others with their frames: those of
// its few callers, else those that a search finds; false if there may be others.
func (w *walker) callers(f function, owners tails) (list []edge, ok bool) {
	if list, ok = w.graph.callersIn(f); ok {
		few := list[:0]
		for _, e := range list {
			if e.own = e.own && (!owners.known || slices.Contains(owners.all, e.caller)); e.own || e.passes {
				few = append(few, e)
			}
		}
		if list = few; len(list) == 0 || !slices.ContainsFunc(list, func(e edge) bool { return e.caller != list[0].caller }) {
			return list, true
		}
	}
	if r := w.graph.reachable(owners); !r.open {
		return r.edges[f], true
	}
	return nil, false
}

// gapAbove returns a step with a gap, above it the function that was called, if it has the frame.
func (w *walker) gapAbove(inner []uint32, called tails) step {
	slices.Reverse(inner)
	s := w.gap(inner)
	if len(called.all) == 1 && called.known {
		s.insert = append([]uint32{w.placeAt(called.all[0], nil)}, s.insert...)
	}
	return s
}

// anywhere returns the step where it is not known which function was called: f's caller is restored if
// there is one in all of its object.
func (w *walker) anywhere(f function) step {
	edges, _ := w.graph.callersIn(f)
	x, sites, own, passes := distinct(edges)
	switch {
	case sites == nil:
		return w.gap(nil)
	case own && !passes:
		return step{kind: restored, insert: []uint32{w.placeAt(x, sites)}}
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
