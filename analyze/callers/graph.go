package callers

import (
	"slices"

	"symbolize/analyze/resolve"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/calls"
)

// Code is the code of an object: its calls, and the conversion of its offsets.
type Code struct {
	Calls *calls.Table
	Addrs resolve.Addresses

	// The calls of each function, and the functions that jump to it, by function; see callersIn.
	calls, jumps byTarget
}

// byTarget lists numbers by the function that is called.
type byTarget struct{ from, list []uint32 }

func (b *byTarget) of(f int32) []uint32 { return b.list[b.from[f]:b.from[f+1]] }

// newByTarget lists the numbers of targets that are functions of the object; each visits them.
func newByTarget(t *calls.Table, each func(yield func(n uint32, x calls.Target))) (b byTarget) {
	b.from = make([]uint32, len(t.Funcs)+1)
	local := func(x calls.Target) int {
		if x.Kind != calls.Local {
			return -1
		}
		return t.Func(x.At)
	}
	each(func(_ uint32, x calls.Target) {
		if f := local(x); f >= 0 {
			b.from[f]++
		}
	})
	sum := uint32(0)
	for f := range b.from {
		sum += b.from[f]
		b.from[f] = sum // the end, until the list is filled
	}
	b.list = make([]uint32, sum)
	each(func(n uint32, x calls.Target) {
		if f := local(x); f >= 0 {
			b.from[f]--
			b.list[b.from[f]] = n
		}
	})
	return b
}

// NewCode returns the code of an object; nil if its addresses have no one place in the file, or if it
// has no functions.
func NewCode(t *calls.Table, a resolve.Addresses) *Code {
	if len(t.Funcs) == 0 {
		return nil
	}
	if _, ok := a.Offset(t.Funcs[0].Start); !ok {
		return nil
	}
	return &Code{Calls: t, Addrs: a}
}

// function is a function of one of the objects.
type function struct{ object, number int32 }

// edge is a call by which a function can be reached, perhaps by jumps after it.
type edge struct {
	caller      function
	site        addr.Addr // the address behind the call
	own, passes bool      // whose frame the frame pointer may be at the call
}

// Bounds of one search. Real ones have some hundred functions; a search that reaches a bound finds
// nothing.
const (
	maxTail  = 256
	maxReach = 20_000
	maxEdges = 200_000
)

// graph answers which functions call which, across the objects of a capture. It is for one goroutine.
type graph struct {
	codes   []*Code // by object; nil without
	imports map[calls.Symbol][]function
	reached map[string]*reach
	tailsOf map[function]tails
}

// tails are the functions that a function jumps to, with it.
type tails struct {
	all   []function
	known bool
}

// targets returns the functions that a call or jump in an object goes to; known is false if it may go
// to others.
func (g *graph) targets(object int32, t calls.Target) (list []function, known bool) {
	table := g.codes[object].Calls
	switch t.Kind {
	case calls.Local:
		if i := table.Func(t.At); i >= 0 {
			return []function{{object, int32(i)}}, true
		}
	case calls.Resolved:
		return g.variants(object, t.At)
	case calls.Imported:
		list = g.imported(table.Imports[t.At])
		return list, len(list) > 0
	}
	return nil, false
}

// variants returns the functions that a resolver may return.
func (g *graph) variants(object int32, resolver addr.Addr) (list []function, known bool) {
	table := g.codes[object].Calls
	for _, a := range table.Variants(resolver) {
		i := table.Func(a)
		if i < 0 {
			return nil, false
		}
		list = append(list, function{object, int32(i)})
	}
	return list, len(list) > 0
}

// imported returns the functions that a symbol is bound to: of the one object that exports it with
// that version; none if there are several.
func (g *graph) imported(s calls.Symbol) []function {
	list, ok := g.imports[s]
	if ok {
		return list
	}
	found, several := function{-1, -1}, false
	var export calls.Export
	for o, c := range g.codes {
		if c == nil {
			continue
		}
		for _, e := range c.Calls.Named(s.Name) {
			fits := e.Version == s.Version || e.Version == ""
			if s.Version == "" {
				fits = !e.Hidden
			}
			i := c.Calls.Func(e.At)
			f := function{int32(o), int32(i)}
			switch {
			case !fits:
			case i < 0 || found.object >= 0 && (f != found || e.Resolver != export.Resolver):
				several = true
			default:
				found, export = f, e
			}
		}
	}
	switch {
	case several || found.object < 0:
	case export.Resolver:
		list, _ = g.variants(found.object, export.At)
	default:
		list = []function{found}
	}
	g.imports[s] = list
	return list
}

// tails adds to functions those that they jump to; known is false if there may be others.
func (g *graph) tails(list []function) (all []function, known bool) {
	if len(list) != 1 {
		return g.newTails(list)
	}
	t, ok := g.tailsOf[list[0]]
	if !ok {
		t.all, t.known = g.newTails(list)
		g.tailsOf[list[0]] = t
	}
	return t.all, t.known
}

func (g *graph) newTails(list []function) (all []function, known bool) {
	known = true
	all = slices.Clone(list)
	for i := 0; i < len(all); i++ {
		f := all[i]
		table := g.codes[f.object].Calls
		if fn := &table.Funcs[f.number]; fn.Leaps || fn.Unknown {
			known = false
		}
		for _, t := range table.JumpsOf(int(f.number)) {
			to, ok := g.targets(f.object, t)
			known = known && ok
			for _, x := range to {
				if !slices.Contains(all, x) {
					all = append(all, x)
				}
			}
		}
		if len(all) > maxTail {
			return all, false
		}
	}
	return all, known
}

// reach has the functions that can run while the frame pointer belongs to one of some functions.
type reach struct {
	owners []function          // that have the frame
	edges  map[function][]edge // calls of each function that was found
	open   bool                // others may be reached, too
	leaps  bool                // others may have the frame, too
}

// reachable finds what runs below functions that were called, with one of their frames: by calls of
// these functions, then by calls at which the frame pointer may be unchanged.
func (g *graph) reachable(called []function) *reach {
	key := keyOf(called)
	if r := g.reached[key]; r != nil {
		return r
	}
	owners, known := g.tails(called)
	r := &reach{owners: owners, edges: make(map[function][]edge), open: !known, leaps: !known}
	g.reached[key] = r
	seen := make(map[function]bool)
	edges := 0
	visit := func(f function, owner bool) (next []function) {
		table := g.codes[f.object].Calls
		for _, c := range table.CallsOf(int(f.number)) {
			e := edge{caller: f, site: c.Return}
			e.own, e.passes = table.FrameAt(int(f.number), c)
			e.own, e.passes = owner && e.own, !owner && e.passes
			if !e.own && !e.passes {
				continue
			}
			to, ok := g.targets(f.object, c.Target)
			if ok {
				to, ok = g.tails(to)
			}
			r.open = r.open || !ok
			for _, x := range to {
				edges++
				r.edges[x] = append(r.edges[x], e)
				if !seen[x] {
					seen[x] = true
					next = append(next, x)
				}
			}
		}
		return next
	}
	var todo []function
	for _, f := range owners {
		todo = append(todo, visit(f, true)...)
	}
	for len(todo) > 0 {
		f := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], visit(f, false)...)
		if len(seen) > maxReach || edges > maxEdges {
			r.edges, r.open = nil, true
			return r
		}
	}
	return r
}

func keyOf(list []function) string {
	var b []byte
	for _, f := range list {
		for _, n := range []int32{f.object, f.number} {
			b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
		}
	}
	return string(b)
}

// callersIn returns all calls of a function, of which nobody outside of its object knows the address;
// false if somebody may.
func (g *graph) callersIn(f function) ([]edge, bool) {
	c := g.codes[f.object]
	table := c.Calls
	if c.calls.from == nil {
		c.index()
	}
	var list []edge
	all := []int32{f.number}
	for i := 0; i < len(all); i++ {
		if table.Funcs[all[i]].Open || len(all) > maxTail {
			return nil, false
		}
		for _, n := range c.calls.of(all[i]) {
			x := table.Calls[n]
			if from := table.Func(x.Return - 1); from >= 0 {
				own, passes := table.FrameAt(from, x)
				list = append(list, edge{function{f.object, int32(from)}, x.Return, own, passes})
			}
		}
		for _, j := range c.jumps.of(all[i]) {
			if !slices.Contains(all, int32(j)) {
				all = append(all, int32(j))
			}
		}
		if len(list) > maxEdges {
			return nil, false
		}
	}
	return list, true
}

// index lists the calls and jumps of the object by their targets.
func (c *Code) index() {
	t := c.Calls
	c.calls = newByTarget(t, func(yield func(uint32, calls.Target)) {
		for n := range t.Calls {
			yield(uint32(n), t.Calls[n].Target)
		}
	})
	c.jumps = newByTarget(t, func(yield func(uint32, calls.Target)) {
		for f := range t.Funcs {
			for _, x := range t.JumpsOf(f) {
				yield(uint32(f), x)
			}
		}
	})
}
