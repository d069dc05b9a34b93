package ingest

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/pprof/profile"
)

// readNames makes Names of the lines that the places bring.
func (r *pprofReader) readNames(places []place) {
	n := &Names{
		FrameEnds: make([]uint32, len(places)),
		Reasons:   make([]Reason, len(places)),
		SymOff:    make([]uint64, len(places)),
	}
	type key struct {
		object ObjectID
		f      *profile.Function
	}
	index := make(map[key]FuncID)
	var funcs []Function
	for i := range places {
		pl := &places[i]
		for k, ln := range pl.lines {
			id, ok := index[key{pl.object, ln.Function}]
			if !ok {
				id = FuncID(len(funcs))
				index[key{pl.object, ln.Function}] = id
				funcs = append(funcs, Function{Object: pl.object,
					SystemName: systemName(ln.Function),
					File:       ln.Function.Filename, StartLine: clampLine(ln.Function.StartLine)})
			}
			n.Frames = append(n.Frames, Frame{Func: id, Line: clampLine(ln.Line),
				Column: clampLine(ln.Column), Inlined: k < len(pl.lines)-1})
		}
		n.FrameEnds[i] = uint32(len(n.Frames))
		if len(pl.lines) == 0 || unresolvedLine(&pl.lines[0]) {
			n.Reasons[i] = pl.reason
		}
	}
	n.Functions = SortFunctions(funcs, n.Frames)
	r.p.Names = n
}

func clampLine(v int64) int32 { return int32(min(max(v, 0), math.MaxInt32)) }

// SortFunctions puts functions into the order of Names.Functions, each once, and
// renumbers the frames that refer to them.
func SortFunctions(funcs []Function, frames []Frame) []Function {
	order := make([]FuncID, len(funcs))
	for i := range order {
		order[i] = FuncID(i)
	}
	slices.SortFunc(order, func(a, b FuncID) int { return compareFunctions(&funcs[a], &funcs[b]) })
	number := make([]FuncID, len(funcs))
	sorted := make([]Function, 0, len(funcs))
	for _, from := range order {
		if n := len(sorted); n == 0 || sorted[n-1] != funcs[from] {
			sorted = append(sorted, funcs[from])
		}
		number[from] = FuncID(len(sorted) - 1)
	}
	for i := range frames {
		frames[i].Func = number[frames[i].Func]
	}
	return sorted
}

func compareFunctions(a, b *Function) int {
	if c := cmp.Compare(a.Object, b.Object); c != 0 {
		return c
	}
	if c := cmp.Compare(a.SystemName, b.SystemName); c != 0 {
		return c
	}
	if c := cmp.Compare(a.File, b.File); c != 0 {
		return c
	}
	return cmp.Compare(a.StartLine, b.StartLine)
}

// stackBuilder interns stacks of a profile whose Locations are final, and sorts
// stacks, comms and samples at the end.
type stackBuilder struct {
	p     *Profile
	index map[string]StackID
	key   []byte
}

func newStackBuilder(p *Profile) *stackBuilder {
	return &stackBuilder{p: p, index: make(map[string]StackID)}
}

// stack interns a list of locations, leaf first.
func (b *stackBuilder) stack(locs []LocationID) StackID {
	b.key = b.key[:0]
	for _, l := range locs {
		b.key = append(b.key, byte(l>>24), byte(l>>16), byte(l>>8), byte(l))
	}
	if id, ok := b.index[string(b.key)]; ok {
		return id
	}
	id := StackID(len(b.p.StackEnds))
	b.index[string(b.key)] = id
	b.p.StackLocs = append(b.p.StackLocs, locs...)
	b.p.StackEnds = append(b.p.StackEnds, uint32(len(b.p.StackLocs)))
	return id
}

func (b *stackBuilder) add(s Sample) { b.p.Samples = append(b.p.Samples, s) }

// finish sorts and renumbers stacks, strings and samples; equal samples become one.
func (b *stackBuilder) finish() {
	p := b.p
	b.index = nil
	stacks := sortStacks(p)
	strings := sortStrings(p)
	for i := range p.Samples {
		s := &p.Samples[i]
		s.Stack, s.Comm = stacks[s.Stack], strings[s.Comm]
	}
	slices.SortFunc(p.Samples, compareSamples)
	p.Samples = mergeSamples(p.Samples)
}

func sortStacks(p *Profile) []StackID {
	order := make([]StackID, len(p.StackEnds))
	for i := range order {
		order[i] = StackID(i)
	}
	slices.SortFunc(order, func(a, b StackID) int { return slices.Compare(p.Stack(a), p.Stack(b)) })
	number := make([]StackID, len(order))
	ends := make([]uint32, 0, len(order))
	locs := make([]LocationID, 0, len(p.StackLocs))
	for to, from := range order {
		number[from] = StackID(to)
		locs = append(locs, p.Stack(from)...)
		ends = append(ends, uint32(len(locs)))
	}
	p.StackEnds, p.StackLocs = ends, locs
	return number
}

func sortStrings(p *Profile) []StringID {
	old := p.Strings
	p.Strings = slices.Clone(old)
	slices.Sort(p.Strings)
	number := make([]StringID, len(old))
	for i, s := range old {
		at, _ := slices.BinarySearch(p.Strings, s)
		number[i] = StringID(at)
	}
	return number
}

func compareSamples(a, b Sample) int {
	if c := cmp.Compare(a.Event, b.Event); c != 0 {
		return c
	}
	if c := compareLabels(&a, &b); c != 0 {
		return c
	}
	return cmp.Compare(a.Stack, b.Stack)
}

// mergeSamples adds up neighbours that differ in their values only.
func mergeSamples(samples []Sample) []Sample {
	out := samples[:0]
	for _, s := range samples {
		if n := len(out); n > 0 && compareSamples(out[n-1], s) == 0 {
			out[n-1].Count += s.Count
			out[n-1].Weight += s.Weight
			continue
		}
		out = append(out, s)
	}
	return out
}
