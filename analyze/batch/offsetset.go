package batch

import (
	"slices"

	"symbolize/ingest/addr"
)

// offsetSet is the union of lists of offsets, which are best ascending. Captures have most of
// theirs in common: known ones are skipped in one walk, and only new ones are sorted, whenever they
// are half as many as the known ones.
type offsetSet struct {
	sorted  []addr.Offset // without duplicates
	pending []addr.Offset // in any order, with all that is not in sorted
}

// leastPending is how many offsets are pending before they are sorted.
const leastPending = 1024

// add adds a list.
func (s *offsetSet) add(list []addr.Offset) {
	rest := s.sorted
	for _, off := range list {
		n := 0
		if len(rest) > 8*len(list) {
			n, _ = slices.BinarySearch(rest, off)
		} else {
			for n < len(rest) && rest[n] < off {
				n++
			}
		}
		if rest = rest[n:]; len(rest) == 0 || rest[0] != off {
			s.pending = append(s.pending, off)
		}
	}
	if len(s.pending) > leastPending+len(s.sorted)/2 {
		s.all()
	}
}

// all returns the offsets, ascending, each once.
func (s *offsetSet) all() []addr.Offset {
	if len(s.pending) > 0 {
		s.sorted = sortedUnion(s.sorted, s.pending)
		s.pending = s.pending[:0]
	}
	return s.sorted
}
