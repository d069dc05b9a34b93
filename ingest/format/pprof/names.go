package pprof

import (
	"math"
	"slices"

	"symbolize/ingest"

	"github.com/google/pprof/profile"
)

// readNames makes Names of the lines that the places bring.
func (r *reader) readNames(places []place) {
	n := &ingest.Names{
		FrameEnds: make([]uint32, len(places)),
		Reasons:   make([]ingest.Reason, len(places)),
		SymOff:    make([]uint64, len(places)),
	}
	type key struct {
		object ingest.ObjectID
		f      *profile.Function
	}
	index := make(map[key]ingest.FuncID)
	var funcs []ingest.Function
	for i := range places {
		pl := &places[i]
		for k, ln := range pl.lines {
			id, ok := index[key{pl.object, ln.Function}]
			if !ok {
				id = ingest.FuncID(len(funcs))
				index[key{pl.object, ln.Function}] = id
				funcs = append(funcs, ingest.Function{Object: pl.object,
					SystemName: systemName(ln.Function),
					File:       ln.Function.Filename, StartLine: clampLine(ln.Function.StartLine)})
			}
			n.Frames = append(n.Frames, ingest.Frame{Func: id, Line: clampLine(ln.Line),
				Column: clampLine(ln.Column), Inlined: k < len(pl.lines)-1})
		}
		n.FrameEnds[i] = uint32(len(n.Frames))
		if len(pl.lines) == 0 || unresolvedLine(&pl.lines[0]) {
			n.Reasons[i] = pl.reason
		}
	}
	n.Functions = ingest.SortFunctions(funcs, n.Frames)
	r.p.Names = n
}

func clampLine(v int64) int32 { return int32(min(max(v, 0), math.MaxInt32)) }

// stackBuilder interns stacks of a profile whose Locations are final, and sorts
// stacks, comms and samples at the end.
type stackBuilder struct {
	p     *ingest.Profile
	index map[string]ingest.StackID
	key   []byte
}

func newStackBuilder(p *ingest.Profile) *stackBuilder {
	return &stackBuilder{p: p, index: make(map[string]ingest.StackID)}
}

// stack interns a list of locations, leaf first.
func (b *stackBuilder) stack(locs []ingest.LocationID) ingest.StackID {
	b.key = b.key[:0]
	for _, l := range locs {
		b.key = append(b.key, byte(l>>24), byte(l>>16), byte(l>>8), byte(l))
	}
	if id, ok := b.index[string(b.key)]; ok {
		return id
	}
	id := ingest.StackID(len(b.p.StackEnds))
	b.index[string(b.key)] = id
	b.p.StackLocs = append(b.p.StackLocs, locs...)
	b.p.StackEnds = append(b.p.StackEnds, uint32(len(b.p.StackLocs)))
	return id
}

func (b *stackBuilder) add(s ingest.Sample) { b.p.Samples = append(b.p.Samples, s) }

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
	slices.SortFunc(p.Samples, ingest.CompareSamples)
	p.Samples = mergeSamples(p.Samples)
}

func sortStacks(p *ingest.Profile) []ingest.StackID {
	order := make([]ingest.StackID, len(p.StackEnds))
	for i := range order {
		order[i] = ingest.StackID(i)
	}
	slices.SortFunc(order, func(a, b ingest.StackID) int {
		return slices.Compare(p.Stack(a), p.Stack(b))
	})
	number := make([]ingest.StackID, len(order))
	ends := make([]uint32, 0, len(order))
	locs := make([]ingest.LocationID, 0, len(p.StackLocs))
	for to, from := range order {
		number[from] = ingest.StackID(to)
		locs = append(locs, p.Stack(from)...)
		ends = append(ends, uint32(len(locs)))
	}
	p.StackEnds, p.StackLocs = ends, locs
	return number
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

// mergeSamples adds up neighbours that differ in their values only.
func mergeSamples(samples []ingest.Sample) []ingest.Sample {
	out := samples[:0]
	for _, s := range samples {
		if n := len(out); n > 0 && ingest.CompareSamples(out[n-1], s) == 0 {
			out[n-1].Count += s.Count
			out[n-1].Weight += s.Weight
			continue
		}
		out = append(out, s)
	}
	return out
}
