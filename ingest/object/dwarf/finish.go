package dwarf

import (
	"cmp"
	"slices"
	"sort"

	"symbolize/ingest/addr"
)

// finish cuts the flat storage of a unit into the slices of its functions and
// sequences, now that it no longer moves.
func (res *result) finish() {
	if res.mixed {
		res.groupInlines()
	}
	for i := range res.Functions {
		f := &res.Functions[i]
		end := len(res.inlines)
		if i+1 < len(res.Functions) {
			end = res.Functions[i+1].first
		}
		f.Inlines = res.inlines[f.first:end:end]
		for j := range f.Inlines {
			if f.Inlines[j].Parent >= 0 {
				f.Inlines[j].Parent -= int32(f.first)
			}
		}
	}
	for i := range res.Sequences {
		s := &res.Sequences[i]
		s.Rows = res.rows[s.lo:s.hi:s.hi]
	}
}

// endSequences gives sequences without an end the end of the function of their last row.
// Outside of all functions the last row is dropped.
func (res *result) endSequences() {
	if !slices.ContainsFunc(res.Sequences, func(s Sequence) bool { return s.endless }) {
		return
	}
	own := res.ownRanges()
	kept := res.Sequences[:0]
	for _, s := range res.Sequences {
		if s.endless {
			last := s.End
			if s.End = endOf(own, last); s.End == last {
				s.hi--
			}
			if s.hi == s.lo {
				res.Dead++
				continue
			}
		}
		kept = append(kept, s)
	}
	res.Sequences = kept
}

// endOf returns the end of the last of sorted ranges that begins at or before an address, if it
// contains it, else the address.
func endOf(ranges []addr.Range, a addr.Addr) addr.Addr {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].Start > a })
	if i == 0 {
		return a
	}
	return max(a, ranges[i-1].End)
}

// ownRanges returns the code of all functions, by address.
func (res *result) ownRanges() []addr.Range {
	var own []addr.Range
	for i := range res.Functions {
		own = append(own, res.Functions[i].Ranges...)
	}
	slices.SortFunc(own, func(a, b addr.Range) int { return cmp.Compare(a.Start, b.Start) })
	return own
}

// keepOwnSequences drops the sequences in which no function of the unit has code.
func (res *result) keepOwnSequences() {
	own := res.ownRanges()
	end := addr.Addr(0)
	for i := range own { // ends ascend too: a search by them must find the first
		end = max(end, own[i].End)
		own[i].End = end
	}
	res.Sequences = slices.DeleteFunc(res.Sequences, func(s Sequence) bool {
		i := sort.Search(len(own), func(i int) bool { return own[i].End > s.Start })
		return i == len(own) || own[i].Start >= s.End
	})
}

// groupInlines makes the inlined calls of each function contiguous: calls of a function within
// another are mixed with the other's.
func (res *result) groupInlines() {
	next := make([]int32, len(res.Functions)+1)
	for i := range res.inlines {
		next[res.inlines[i].fn+1]++
	}
	for i := range res.Functions {
		res.Functions[i].first = int(next[i])
		next[i+1] += next[i]
	}
	moved := make([]int32, len(res.inlines))
	sorted := make([]Inline, len(res.inlines))
	for i, in := range res.inlines {
		to := next[in.fn]
		next[in.fn]++
		moved[i] = to
		if in.Parent >= 0 {
			in.Parent = moved[in.Parent]
		}
		sorted[to] = in
	}
	res.inlines = sorted
}
