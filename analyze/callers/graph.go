package callers

import (
	"slices"

	"symbolize/analyze/resolve"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/calls"
	"symbolize/store/calltab"
)

// Code is the code of an object: its calls, and the conversion of its offsets.
type Code struct {
	Calls *calltab.Table
	Addrs resolve.Addresses
}

// NewCode returns the code of an object; nil if its addresses have no one place in the file.
func NewCode(t *calltab.Table, a resolve.Addresses) *Code {
	if _, ok := a.Offset(t.Start()); !ok {
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
	likely  bool    // searches go on behind calls that may go anywhere
	imports map[calltab.Symbol][]function
	reached map[string]*reach
	tailsOf map[target]tails
}

// target is where a call or jump in an object goes.
type target struct {
	object int32
	kind   calls.TargetKind
	n      int32
}

// tails are the functions that some functions jump to, with them.
type tails struct {
	all   []function
	known bool // there are no others
}

// targets returns the functions that a call or jump in an object goes to; known is false if it may go
// to others.
func (g *graph) targets(object int32, x calltab.Target) (list []function, known bool) {
	switch x.Kind {
	case calls.Local:
		return []function{{object, x.N}}, true
	case calls.Resolved:
		return g.variants(object, x.N)
	case calls.Imported:
		if s, ok := g.codes[object].Calls.Import(x.N); ok {
			list = g.imported(s)
			return list, len(list) > 0
		}
	}
	return nil, false
}

// variants returns the functions that a resolver may return.
func (g *graph) variants(object, resolver int32) (list []function, known bool) {
	for _, n := range g.codes[object].Calls.Variants(resolver) {
		list = append(list, function{object, n})
	}
	return list, len(list) > 0
}

// imported returns the functions that a symbol is bound to: of the one object that exports it with
// that version; none if there are several.
func (g *graph) imported(s calltab.Symbol) []function {
	list, ok := g.imports[s]
	if ok {
		return list
	}
	var found *calltab.Export
	object, several := int32(0), false
	for o, c := range g.codes {
		if c == nil {
			continue
		}
		for _, e := range c.Calls.Exports(s.Name) {
			fits := e.Version == s.Version || e.Version == ""
			if s.Version == "" {
				fits = !e.Hidden
			}
			switch {
			case !fits:
			case e.N < 0 || found != nil && (object != int32(o) || e.N != found.N || e.Resolver != found.Resolver):
				several = true
			default:
				object, found = int32(o), &e
			}
		}
	}
	switch {
	case several || found == nil:
	case found.Resolver:
		list, _ = g.variants(object, found.N)
	default:
		list = []function{{object, found.N}}
	}
	g.imports[s] = list
	return list
}

// called returns the functions that a call or jump in an object may lead to.
func (g *graph) called(object int32, x calltab.Target) tails {
	if x.Kind == calls.Indirect {
		return tails{}
	}
	key := target{object, x.Kind, x.N}
	t, ok := g.tailsOf[key]
	if !ok {
		list, known := g.targets(object, x)
		t = g.tails(list)
		t.known = t.known && known
		g.tailsOf[key] = t
	}
	return t
}

// tails adds to functions those that they jump to.
func (g *graph) tails(list []function) tails {
	t := tails{all: list, known: true}
	for i := 0; i < len(t.all); i++ {
		object := t.all[i].object
		f, ok := g.codes[object].Calls.Func(t.all[i].number)
		if !ok {
			t.known = false
			continue
		}
		t.known = t.known && !f.Escapes()
		for _, x := range f.Jumps() {
			to, ok := g.targets(object, x)
			t.known = t.known && ok
			for _, x := range to {
				if !slices.Contains(t.all, x) {
					t.all = append(slices.Clip(t.all), x)
				}
			}
		}
		if len(t.all) > maxTail {
			t.known = false
			break
		}
	}
	return t
}

// reach has the functions that can run while the frame pointer belongs to one of some functions.
type reach struct {
	edges map[function][]edge // calls of each function that was found
	open  bool                // others may be reached, too: edges are not complete, or nil
}

// reachable finds what runs below the owners of a frame: by calls of these functions, then by calls at
// which the frame pointer may be unchanged. It ends where anything may be called, but for likely callers.
func (g *graph) reachable(owners tails) *reach {
	key := keyOf(owners.all)
	if r := g.reached[key]; r != nil {
		return r
	}
	r := &reach{edges: make(map[function][]edge), open: !owners.known}
	g.reached[key] = r
	todo := slices.Clone(owners.all)
	seen, edges, bounded := make(map[function]bool), 0, false
	for n := 0; n < len(todo) && !bounded && (!r.open || g.likely); n++ {
		f := todo[n]
		owner := n < len(owners.all)
		code, ok := g.codes[f.object].Calls.Func(f.number)
		if !ok {
			r.open = true
			continue
		}
		list := code.Calls()
		for i := range list {
			c := &list[i]
			e := edge{f, c.Return, owner && c.Own, !owner && c.Passes}
			if !e.own && !e.passes {
				continue
			}
			to := g.called(f.object, c.Target)
			edges += len(to.all)
			bounded = edges > maxEdges || len(seen) > maxReach
			if r.open = r.open || !to.known || bounded; bounded || r.open && !g.likely {
				break
			}
			for _, x := range to.all {
				r.edges[x] = append(r.edges[x], e)
				if !seen[x] {
					seen[x] = true
					todo = append(todo, x)
				}
			}
		}
	}
	if r.open && (bounded || !g.likely) {
		r.edges = nil
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

// callersIn returns all calls by which a function can be reached, if nobody outside of its object knows
// its address and they are few; otherwise false.
func (g *graph) callersIn(f function) (list []edge, ok bool) {
	table := g.codes[f.object].Calls
	code, ok := table.Func(f.number)
	if !ok {
		return nil, false
	}
	callers, closed := code.Callers()
	if !closed {
		return nil, false
	}
	for _, n := range callers {
		x, ok := table.Func(n)
		if !ok {
			return nil, false
		}
		all := x.Calls()
		for i := range all {
			if c := &all[i]; (c.Own || c.Passes) && slices.Contains(g.called(f.object, c.Target).all, f) {
				list = append(list, edge{function{f.object, n}, c.Return, c.Own, c.Passes})
			}
		}
	}
	return list, true
}
