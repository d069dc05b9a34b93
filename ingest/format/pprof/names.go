package pprof

import (
	"math"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/fold/intern"

	"github.com/google/pprof/profile"
)

// readNames makes Names of the lines of the places.
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
		} else {
			r.p.Stats.NoStarts = true
		}
	}
	n.Functions = ingest.SortFunctions(funcs, n.Frames)
	r.p.Names = n
}

func clampLine(v int64) int32 { return int32(min(max(v, 0), math.MaxInt32)) }

// stackBuilder interns stacks of a profile whose Locations are final, and sorts stacks, comms and
// samples at the end.
type stackBuilder struct {
	p      *ingest.Profile
	stacks *intern.ListSet
}

func newStackBuilder(p *ingest.Profile) *stackBuilder {
	return &stackBuilder{p: p, stacks: intern.NewListSet()}
}

// stack interns a list of locations, leaf first, at most intern.MaxList.
func (b *stackBuilder) stack(locs []uint32) ingest.StackID {
	id, _ := b.stacks.Add(locs)
	return ingest.StackID(id)
}

func (b *stackBuilder) add(s ingest.Sample) { b.p.Samples = append(b.p.Samples, s) }

// finish sorts and renumbers stacks, strings and samples; equal samples become one.
func (b *stackBuilder) finish() {
	p := b.p
	b.stacks.Forget()
	stacks := b.sortStacks()
	strings := sortStrings(p)
	for i := range p.Samples {
		s := &p.Samples[i]
		s.Stack, s.Comm, s.Tags = stacks[s.Stack], strings[s.Comm], strings[s.Tags]
	}
	slices.SortFunc(p.Samples, ingest.CompareSamples)
	p.Samples = mergeSamples(p.Samples)
}

// sortStacks sorts the stacks, and returns the new number of each.
func (b *stackBuilder) sortStacks() []ingest.StackID {
	order := make([]uint32, b.stacks.Len())
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int {
		return slices.Compare(b.stacks.At(x), b.stacks.At(y))
	})
	number := make([]ingest.StackID, len(order))
	b.p.StackEnds = make([]uint32, 0, len(order))
	b.p.StackLocs = make([]ingest.LocationID, 0, b.stacks.Words())
	for to, from := range order {
		number[from] = ingest.StackID(to)
		for _, l := range b.stacks.At(from) {
			b.p.StackLocs = append(b.p.StackLocs, ingest.LocationID(l))
		}
		b.p.StackEnds = append(b.p.StackEnds, uint32(len(b.p.StackLocs)))
	}
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

// mergeSamples adds up adjacent samples that differ in their values only.
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
