package symtab

import (
	"slices"

	"symbolize/ingest/addr"
)

// Only limits the table to the functions at these addresses, ascending, until Reset: all
// look-ups of them have the results of the whole table, which is made for one run. nil is no limit.
func (b *Builder) Only(addrs []addr.Addr) { b.only = addrs }

// Wants reports whether a range has an address of Only.
func (b *Builder) Wants(r addr.Range) bool {
	if b.only == nil {
		return true
	}
	i, _ := slices.BinarySearch(b.only, r.Start)
	return i < len(b.only) && b.only[i] < r.End
}

// WantsAny reports whether one of the ranges has an address of Only. If none has, a caller need not
// add their function: the ranges are added to Passed.
func (b *Builder) WantsAny(ranges []addr.Range) bool {
	if b.only == nil || slices.ContainsFunc(ranges, b.Wants) {
		return true
	}
	b.passed = append(b.passed, ranges...)
	return false
}

// Passed returns the ranges of functions, except unsized symbols, that the table lacks because of
// Only, unsorted. They are valid until Reset.
func (b *Builder) Passed() []addr.Range { return b.passed }

// wanted calls emit with those pieces that have an address of Only.
func (b *Builder) wanted(emit func(start, end uint64, c *candidate)) func(
	uint64, uint64, *candidate) {
	if b.only == nil {
		return emit
	}
	return func(start, end uint64, c *candidate) {
		r := addr.Range{Start: addr.Addr(start), End: addr.Addr(end)}
		switch {
		case b.Wants(r):
			emit(start, end, c)
		case c.flags&Unsized == 0:
			b.passed = append(b.passed, r)
		}
	}
}

// wantedPieces returns the pieces that contain an address of Only.
func (b *Builder) wantedPieces(pieces []piece) []piece {
	if b.only == nil {
		return pieces
	}
	kept := pieces[:0]
	for _, p := range pieces {
		b.wanted(func(uint64, uint64, *candidate) { kept = append(kept, p) })(p.start, p.end, p.c)
	}
	return kept
}
