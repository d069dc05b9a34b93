package callers

import (
	"context"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/intern"
	"symbolize/store/calltab"
)

// walker is the state of Complete.
type walker struct {
	p     *ingest.Profile
	opts  Options
	graph *graph

	known []place // by location
	steps map[stepKey]step

	objects []ingest.Object // of the new profile, unordered: first those of p
	places  []intern.Pair   // its locations: first those of p
	numbers map[intern.Pair]uint32
	entries map[ingest.ObjectID]uint32 // objects of functions without a place in them
	unknown uint32                     // the place for callers that are unknown, plus one
	root    uint32                     // its node; 0 before there is one
	cuts    map[uint32]uint32          // nodes below it, by place
	missing uint32                     // of gaps, plus one
	likely  uint32                     // of marks of likely callers, plus one

	nodes   []intern.Node
	sums    []sums                // by node
	reasons []ingest.CallerReason // by node: why its caller is not proven
	called  []uint32              // by stack of p: its node, as of a return address; 0 for none yet
	stacks  []uint32              // the same as of an exact address, as samples have
	changed bool
	stats   ingest.CallerStats
}

// sums counts the edges of a stack by kind.
type sums struct {
	edges [5]uint8
	gaps  uint8
}

// codesOf returns the code of a profile's objects, nil if its stacks are to stay: then they are not
// counted, either.
func codesOf(p *ingest.Profile, opts *Options) (codes []*Code) {
	if p.Names != nil || len(p.Callers) < 2 {
		return nil
	}
	codes, known := make([]*Code, len(p.Objects)), false
	for i := range p.Objects { // imports are looked for in all
		o := &p.Objects[i]
		if o.File.Path == ingest.WakersPath { // with reversed parts
			return nil
		}
		if o.Kind != ingest.ELF || o.ID.IsZero() || o.Reason != ingest.ReasonNone {
			continue
		}
		codes[i] = opts.Code(o)
		known = known || codes[i] != nil
	}
	if opts.Optional && !known {
		return nil
	}
	return codes
}

func newWalker(p *ingest.Profile, opts Options, codes []*Code) *walker {
	size := len(p.Callers) + len(p.Callers)/16 // some are inserted
	w := &walker{p: p, opts: opts,
		steps: make(map[stepKey]step), known: make([]place, len(p.Locations)),
		graph: &graph{codes: codes, likely: opts.Likely,
			imports: make(map[calltab.Symbol][]function), reached: make(map[string]*reach),
			tailsOf: make(map[target]tails)},
		cuts:    make(map[uint32]uint32),
		objects: append([]ingest.Object(nil), p.Objects...), numbers: make(map[intern.Pair]uint32),
		entries: make(map[ingest.ObjectID]uint32),
		nodes:   make([]intern.Node, 1, size), sums: make([]sums, 1, size), reasons: make([]ingest.CallerReason, 1, size),
		stacks: make([]uint32, len(p.Callers)), called: make([]uint32, len(p.Callers))}
	for _, l := range p.Locations {
		w.places = append(w.places, intern.Pair{Object: uint32(l.Object), Offset: uint64(l.Offset)})
	}
	return w
}

// rewrite makes the new stacks of all samples.
func (w *walker) rewrite() {
	var objects [][2]int // where the locations of each object begin and end: tables are for one goroutine
	for l := range w.known {
		if l == 0 || w.p.Locations[l].Object != w.p.Locations[l-1].Object {
			objects = append(objects, [2]int{l, l})
		}
		objects[len(objects)-1][1] = l + 1
	}
	_ = files.Each(context.Background(), 0, len(objects), func(_ context.Context, i int) error {
		for l := objects[i][0]; l < objects[i][1]; l++ {
			w.known[l] = w.placeOf(ingest.LocationID(l))
		}
		return nil
	})
	for i := range w.p.Samples {
		s := &w.p.Samples[i]
		if s.Stack != 0 {
			w.count(&w.sums[w.node(s.Stack, true)], s.Count)
		}
	}
	w.countUnproven()
}

// countUnproven counts the callers that are not proven by object and reason.
func (w *walker) countUnproven() {
	counts := make([]uint64, len(w.nodes)) // of samples with the node in their stacks
	for i := range w.p.Samples {
		s := &w.p.Samples[i]
		counts[w.stacks[s.Stack]] += s.Count
	}
	type key struct {
		object uint32
		reason ingest.CallerReason
	}
	sums := make(map[key]uint64)
	for n := len(w.nodes) - 1; n > 0; n-- { // callees come after their callers
		counts[w.nodes[n].Parent] += counts[n]
		if r := w.reasons[n]; r != ingest.NoCallReason && counts[n] > 0 {
			sums[key{w.places[w.nodes[n].Value].Object, r}] += counts[n]
		}
	}
	list := make([]ingest.UnprovenCallers, 0, len(sums))
	for k, pairs := range sums {
		o := &w.objects[k.object]
		list = append(list, ingest.UnprovenCallers{Kind: o.Kind, ID: o.ID, Path: o.File.Path, Reason: k.reason,
			Pairs: pairs})
	}
	w.stats.AddUnproven(list)
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
	if n.edges[recorded] > 0 {
		st.SamplesRecorded += samples
	}
	if n.edges[proven]|n.edges[restored] != 0 && n.edges[recorded]|n.edges[cut]|n.gaps == 0 {
		st.SamplesProven += samples
	}
}

// isUser reports whether an object is code of a process, and of no special kind.
func isUser(o *ingest.Object) bool {
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
	made := w.called
	if exact {
		made = w.stacks
	}
	if made[s] == 0 {
		made[s] = w.newNode(s, exact)
	}
	return made[s]
}

func (w *walker) newNode(s ingest.StackID, exact bool) uint32 {
	leaf, caller := w.p.Leaves[s], w.p.Callers[s]
	if caller == 0 {
		return w.add(0, uint32(leaf), recorded, 0)
	}
	st, next := w.step(leaf, w.p.Leaves[caller], exact)
	reason := w.known[leaf].reason(&st, exact)
	if st.kind == cut {
		w.changed = true
		if w.root == 0 {
			w.root = w.add(0, w.unknownPlace(), recorded, 0)
		}
		n, ok := w.cuts[uint32(leaf)]
		if !ok {
			n = w.add(w.root, uint32(leaf), cut, 0)
			w.cuts[uint32(leaf)], w.reasons[n] = n, reason
		}
		return n
	}
	base, kind := w.node(caller, next), st.kind
	for _, pl := range st.insert {
		inserted := w.insertedKind(pl)
		if st.likely {
			inserted = unchecked
		}
		base = w.add(base, pl, inserted, 0)
		w.changed = true
	}
	switch {
	case st.likely:
		kind = unchecked
	case kind == restored:
		kind = proven // the call of the function that was inserted
	case st.gaps > 0:
		kind = unchecked // not a pair
	}
	n := w.add(base, uint32(leaf), kind, st.gaps)
	w.reasons[n] = reason
	return n
}

// insertedKind returns the kind of a place that is inserted: a function, or the mark of a gap.
func (w *walker) insertedKind(place uint32) stepKind {
	if w.missing > 0 && place == w.missing-1 {
		return unchecked
	}
	return restored
}

// add adds a node.
func (w *walker) add(parent, place uint32, kind stepKind, gaps uint8) uint32 {
	n := w.sums[parent]
	if parent > 0 {
		n.edges[kind] = min(n.edges[kind], 254) + 1
	}
	n.gaps = min(n.gaps+gaps, 255)
	w.nodes, w.sums = append(w.nodes, intern.Node{Parent: parent, Value: place}), append(w.sums, n)
	w.reasons = append(w.reasons, ingest.NoCallReason)
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
	var off addr.Offset
	if code, ok := c.Calls.Func(f.number); ok {
		off, _ = c.Addrs.Offset(code.Start())
	}
	return w.placeNumber(intern.Pair{Object: o, Offset: uint64(off)})
}

// unknownPlace returns the place for callers that are unknown.
func (w *walker) unknownPlace() uint32 { return w.special(&w.unknown, ingest.CallersUnknown) }

func (w *walker) gapPlace() uint32 { return w.special(&w.missing, ingest.CallersMissing) }

func (w *walker) likelyPlace() uint32 { return w.special(&w.likely, ingest.CallersLikely) }

func (w *walker) special(number *uint32, why ingest.Reason) uint32 {
	if *number == 0 {
		w.objects = append(w.objects, ingest.Object{Kind: ingest.NoStack, Reason: why,
			File: ingest.FileRef{Path: "[" + why.String() + "]"}, Kernel: ingest.NoObject})
		*number = 1 + w.placeNumber(intern.Pair{Object: uint32(len(w.objects) - 1)})
	}
	return *number - 1
}

// chain returns the conversion of stacks of p to those of the new profile, of which locations has the
// locations by place. It keeps what is known of locations and steps.
func (w *walker) chain(locations []ingest.LocationID) func([]ingest.LocationID) []ingest.LocationID {
	kept := &walker{known: w.known, steps: w.steps, opts: w.opts, missing: w.missing, likely: w.likely}
	unknown := w.unknown
	return func(list []ingest.LocationID) (out []ingest.LocationID) {
		exact := true
		for i, l := range list {
			out = append(out, locations[l])
			if i+1 == len(list) {
				break
			}
			var st step
			st, exact = kept.step(l, list[i+1], exact)
			for k := len(st.insert) - 1; k >= 0; k-- {
				out = append(out, locations[st.insert[k]])
			}
			if st.kind == cut {
				return append(out, locations[unknown-1])
			}
		}
		return out
	}
}
