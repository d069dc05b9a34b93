package dwarf

// finish cuts the flat storage of a unit into the slices of its functions and
// sequences, now that it no longer moves.
func (res *result) finish() {
	if res.nested {
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

// groupInlines brings the inlined calls of each function together: those of a
// function within another stand amid the other's.
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
