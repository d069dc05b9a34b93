package stackmap

import "symbolize/ingest/fold/intern"

// Totals are sums over a Set.
type Totals struct {
	// Frames of distinct stacks, by their kind.
	Valid, Addresses, Named int
	// Samples that have no such part.
	NoKernel, NoUser uint64
	// Samples with a lost part, each by one cause.
	Lost map[Cause]uint64
}

// Totals returns the sums over the samples read.
func (s *Set) Totals() *Totals {
	if s.totals != nil {
		return s.totals
	}
	t := &Totals{Lost: make(map[Cause]uint64)}
	for n := range s.NumStacks() {
		for _, number := range s.Numbers(uint32(n)) {
			switch s.frames[number].Status {
			case Valid:
				t.Valid++
			case Named:
				t.Named++
			default:
				t.Addresses++
			}
		}
	}
	for i := range s.Samples {
		sm := &s.Samples[i]
		if sm.Kernel.Cause == Absent {
			t.NoKernel += sm.Count
		}
		if sm.User.Cause == Absent {
			t.NoUser += sm.Count
		}
		if worst := max(sm.Kernel.Cause, sm.User.Cause); worst.Lost() {
			t.Lost[worst] += sm.Count
		}
	}
	s.totals = t
	return t
}

// Discard releases stacks and samples, which are most of a Set. Totals and all else that
// describes them stay.
func (s *Set) Discard() {
	s.Totals()
	s.Samples, s.frames, s.addresses, s.stacks = nil, nil, nil, intern.NewListSet()
}
