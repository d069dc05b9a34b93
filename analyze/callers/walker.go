package callers

import (
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/fold/intern"
	"symbolize/ingest/object/calls"
)

// stepKey identifies a step.
type stepKey struct {
	inner, outer ingest.LocationID
	exact        bool
}

// walker is the state of Complete.
type walker struct {
	p     *ingest.Profile
	opts  Options
	graph *graph
	asked []bool // objects whose code was asked for

	known [2][]*place // by location: as a return address, as an exact one
	steps map[stepKey]*step

	objects []ingest.Object // of the new profile, unordered: first those of p
	places  []intern.Pair   // its locations: first those of p
	numbers map[intern.Pair]uint32
	entries map[ingest.ObjectID]uint32 // objects of functions without a place in them
	unknown uint32                     // the place for callers that are unknown, plus one
	root    uint32                     // its node; 0 before there is one
	cuts    map[uint32]uint32          // nodes below it, by place
	missing uint32                     // of gaps, plus one

	nodes   []intern.Node
	sums    []sums      // by node
	made    [2][]uint32 // by stack of p: its node, as of a return address and exact; 0 for none yet
	stacks  []uint32    // by stack of p with samples: its node
	changed bool
	stats   ingest.CallerStats
}

// sums counts the edges of a stack by kind.
type sums struct {
	edges [4]uint8
	gaps  uint8
}

// newWalker returns the walker of a profile; nil if its stacks are to stay.
func newWalker(p *ingest.Profile, opts Options) *walker {
	if p.Names != nil || len(p.Callers) < 2 {
		return nil
	}
	for i := range p.Objects {
		if p.Objects[i].File.Path == ingest.WakersPath { // with reversed parts
			return nil
		}
	}
	w := &walker{p: p, opts: opts,
		asked: make([]bool, len(p.Objects)), steps: make(map[stepKey]*step),
		graph: &graph{codes: make([]*Code, len(p.Objects)),
			imports: make(map[calls.Symbol][]function), reached: make(map[string]*reach),
			tailsOf: make(map[function]tails)},
		cuts:    make(map[uint32]uint32),
		objects: append([]ingest.Object(nil), p.Objects...), numbers: make(map[intern.Pair]uint32),
		entries: make(map[ingest.ObjectID]uint32),
		nodes:   make([]intern.Node, 1, len(p.Callers)), sums: make([]sums, 1, len(p.Callers)),
		stacks: make([]uint32, len(p.Callers))}
	for i := range w.known {
		w.known[i] = make([]*place, len(p.Locations))
		w.made[i] = make([]uint32, len(p.Callers))
	}
	for _, l := range p.Locations {
		w.places = append(w.places, intern.Pair{Object: uint32(l.Object), Offset: uint64(l.Offset)})
	}
	any := false
	for i := range p.Objects { // imports are looked for in all
		any = w.codeOf(ingest.ObjectID(i)) != nil || any
	}
	if !any {
		return nil
	}
	return w
}

// codeOf returns the code of an object, nil if it is not known.
func (w *walker) codeOf(o ingest.ObjectID) *Code {
	if !w.asked[o] {
		w.asked[o] = true
		if src := &w.p.Objects[o]; src.Kind == ingest.ELF && !src.ID.IsZero() &&
			src.Reason == ingest.ReasonNone {
			w.graph.codes[o] = w.opts.Code(src)
		}
	}
	return w.graph.codes[o]
}

// rewrite makes the new stacks of all samples.
func (w *walker) rewrite() {
	for i := range w.p.Samples {
		s := &w.p.Samples[i]
		if s.Stack == 0 {
			continue
		}
		if w.stacks[s.Stack] == 0 {
			w.stacks[s.Stack] = w.node(s.Stack, true)
		}
		w.count(&w.sums[w.stacks[s.Stack]], s.Count)
	}
}

// count adds the edges of the stack of some samples.
func (w *walker) count(n *sums, samples uint64) {
	st := &w.stats
	st.Proven += uint64(n.edges[proven]) * samples
	st.Restored += uint64(n.edges[restored]) * samples
	st.Recorded += uint64(n.edges[recorded]) * samples
	st.Gaps += uint64(n.gaps) * samples
	st.Cut += uint64(n.edges[cut]) * samples
	st.Samples += samples
	if n.edges[restored] > 0 {
		st.SamplesRestored += samples
	}
	if n.edges[cut] > 0 {
		st.SamplesCut += samples
	}
	if n.gaps > 0 {
		st.SamplesGaps += samples
	}
}

// isUser reports whether a location is code of a process, and of no special kind.
func (w *walker) isUser(l ingest.LocationID) bool {
	o := &w.p.Objects[w.p.Locations[l].Object]
	switch o.Kind {
	case ingest.ELF, ingest.VDSO, ingest.PerfMap, ingest.JITDump, ingest.Anonymous:
		return true
	case ingest.Unmapped:
		return o.Domain() == ingest.UserDomain
	}
	return false
}

// node returns the node of a stack; exact if its innermost address is none of a return.
func (w *walker) node(s ingest.StackID, exact bool) uint32 {
	made := &w.made[0]
	if exact {
		made = &w.made[1]
	}
	if n := (*made)[s]; n != 0 {
		return n
	}
	leaf, caller := w.p.Leaves[s], w.p.Callers[s]
	base, kind, gaps := uint32(0), recorded, 0
	switch {
	case caller == 0:
	case !w.isUser(leaf) || !w.isUser(w.p.Leaves[caller]):
		base = w.node(caller, !w.isUser(leaf))
	default:
		st := w.step(leaf, w.p.Leaves[caller], exact)
		kind, gaps = st.kind, st.gaps
		if kind == cut {
			if w.root == 0 {
				w.root = w.add(0, w.unknownPlace(), recorded, 0)
			}
			w.changed = true
			n, ok := w.cuts[uint32(leaf)]
			if !ok {
				n = w.add(w.root, uint32(leaf), cut, gaps)
				w.cuts[uint32(leaf)] = n
			}
			(*made)[s] = n
			return n
		}
		base = w.node(caller, false)
		for _, pl := range st.insert {
			base = w.add(base, pl, restored, 0)
			w.changed = true
		}
		if kind == restored {
			kind = proven // the call of the function that was inserted
		}
	}
	n := w.add(base, uint32(leaf), kind, gaps)
	(*made)[s] = n
	return n
}

// add adds a node.
func (w *walker) add(parent, place uint32, kind stepKind, gaps int) uint32 {
	n := w.sums[parent]
	if parent > 0 {
		n.edges[kind] = min(n.edges[kind], 254) + 1
	}
	n.gaps = min(n.gaps+uint8(gaps), 255)
	w.nodes, w.sums = append(w.nodes, intern.Node{Parent: parent, Value: place}), append(w.sums, n)
	return uint32(len(w.nodes) - 1)
}

// placeNumber returns the number of a place of the new profile.
func (w *walker) placeNumber(p intern.Pair) uint32 {
	n, ok := w.numbers[p]
	if !ok {
		n = uint32(len(w.places))
		w.places = append(w.places, p)
		w.numbers[p] = n
	}
	return n
}

// placeAt returns the place of a restored caller: of its call, if there is one, else the function
// itself, of which no line is known.
func (w *walker) placeAt(f function, sites []addr.Addr) uint32 {
	c := w.graph.codes[f.object]
	if len(sites) == 1 {
		if off, ok := c.Addrs.Offset(sites[0] - 1); ok {
			return w.placeNumber(intern.Pair{Object: uint32(f.object), Offset: uint64(off)})
		}
	}
	o, ok := w.entries[ingest.ObjectID(f.object)]
	if !ok {
		o = uint32(len(w.objects))
		entry := w.p.Objects[f.object]
		entry.Entry = true
		w.objects = append(w.objects, entry)
		w.entries[ingest.ObjectID(f.object)] = o
	}
	off, _ := c.Addrs.Offset(c.Calls.Funcs[f.number].Start)
	return w.placeNumber(intern.Pair{Object: o, Offset: uint64(off)})
}

// unknownPlace returns the place for callers that are unknown.
func (w *walker) unknownPlace() uint32 { return w.special(&w.unknown, ingest.CallersUnknown) }

func (w *walker) gapPlace() uint32 { return w.special(&w.missing, ingest.CallersMissing) }

func (w *walker) special(number *uint32, why ingest.Reason) uint32 {
	if *number == 0 {
		w.objects = append(w.objects, ingest.Object{Kind: ingest.NoStack, Reason: why,
			File: ingest.FileRef{Path: "[" + why.String() + "]"}, Kernel: ingest.NoObject})
		*number = 1 + w.placeNumber(intern.Pair{Object: uint32(len(w.objects) - 1)})
	}
	return *number - 1
}

// chain returns the conversion of stacks of p to stacks of the new profile.
func (w *walker) chain() func([]ingest.LocationID) []ingest.LocationID {
	p, nodes, stacks := w.p, w.nodes, w.stacks
	type child struct {
		caller ingest.StackID
		leaf   ingest.LocationID
	}
	var children map[child]ingest.StackID
	return func(list []ingest.LocationID) (out []ingest.LocationID) {
		if children == nil {
			children = make(map[child]ingest.StackID, len(p.Callers))
			for s := 1; s < len(p.Callers); s++ {
				children[child{p.Callers[s], p.Leaves[s]}] = ingest.StackID(s)
			}
		}
		stack := ingest.StackID(0)
		for i := len(list) - 1; i >= 0; i-- {
			stack = children[child{stack, list[i]}]
		}
		for n := stacks[stack]; n != 0; n = nodes[n].Parent {
			out = append(out, ingest.LocationID(nodes[n].Value))
		}
		return out
	}
}
