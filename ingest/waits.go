package ingest

import (
	"slices"

	"symbolize/ingest/pair"
)

// TrimWaits removes the scheduler's functions from the inner end of the stacks of waits, which have
// a StateTag: a stack begins at the function that waited. It needs names, and does nothing to
// stacks of nothing but the scheduler.
func (p *Profile) TrimWaits() {
	waits := make([]int8, len(p.Strings)) // by tags: 1 of a wait, -1 not
	trimmed := false
	for i := range p.Samples {
		s := &p.Samples[i]
		if waits[s.Tags] == 0 {
			waits[s.Tags] = -1
			if state := p.Tag(s, StateTag); state != "" && state != RunningState {
				waits[s.Tags] = 1
			}
		}
		if waits[s.Tags] < 0 {
			continue
		}
		if to := p.waiter(s.Stack); to != s.Stack {
			s.Stack, trimmed = to, true
		}
	}
	if trimmed {
		p.mergeSamples()
	}
}

// waiter returns the stack of the innermost function that is not the scheduler's.
func (p *Profile) waiter(stack StackID) StackID {
	for at := stack; at != 0; at = p.Callers[at] {
		if !p.IsScheduler(p.Leaves[at]) {
			return at
		}
	}
	return stack
}

// IsScheduler reports whether a location is in a function of the kernel's scheduler; false without
// names.
func (p *Profile) IsScheduler(l LocationID) bool {
	if p.Names == nil {
		return false
	}
	if k := p.Objects[p.Locations[l].Object].Kind; k != Kernel {
		return false
	}
	frames := p.Names.At(l)
	return len(frames) > 0 &&
		pair.IsScheduler(p.Names.Functions[frames[len(frames)-1].Func].SystemName)
}

// mergeSamples sorts the samples, and adds up equal ones.
func (p *Profile) mergeSamples() {
	slices.SortFunc(p.Samples, CompareSamples)
	out := p.Samples[:0]
	for _, s := range p.Samples {
		if n := len(out); n > 0 && CompareSamples(out[n-1], s) == 0 {
			out[n-1].Count += s.Count
			out[n-1].Weight += s.Weight
			continue
		}
		out = append(out, s)
	}
	p.Samples = out
}
