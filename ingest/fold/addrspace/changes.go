package addrspace

import (
	"cmp"
	"iter"
	"slices"

	"symbolize/ingest/addr"
)

// change is a change of the kernel's mappings in a range from a Version on.
type change struct {
	addrRange
	version Version
}

// groupChanges returns the ranges with changes, sorted, adjacent ones joined, and the
// changes in each.
func groupChanges(changed []change) (ranges []addrRange, groups [][]change) {
	if len(changed) == 0 {
		return nil, nil
	}
	all := make([]addrRange, len(changed))
	for i := range changed {
		all[i] = changed[i].addrRange
	}
	ranges = joinRanges(all)
	groups = make([][]change, len(ranges))
	for _, c := range changed {
		i, _ := findRange(ranges, c.start, c.start)
		groups[i] = append(groups[i], c)
	}
	return ranges, groups
}

// findRange finds the first of sorted ranges that has an address from first to last.
func findRange(ranges []addrRange, first, last addr.PC) (i int, ok bool) {
	return slices.BinarySearchFunc(ranges, first, func(r addrRange, first addr.PC) int {
		switch {
		case r.end <= first:
			return -1
		case r.start > last:
			return 1
		}
		return 0
	})
}

// Steady reports whether InKernel has the same result for pc in every Version.
func (m *Map) Steady(pc addr.PC) bool {
	_, found := findRange(m.changing, pc, pc)
	return !found
}

// KernelVersions returns Versions of the kernel, in their order, that have all results of
// InKernel for the addresses from first to last.
func (m *Map) KernelVersions(first, last addr.PC) iter.Seq[Version] {
	return func(yield func(Version) bool) {
		previous := m.Kernel(0).Version()
		if !yield(previous) {
			return
		}
		i, ok := findRange(m.changing, first, last)
		if !ok {
			return
		}
		for k := range m.changes[i] {
			c := &m.changes[i][k]
			if c.version == previous || c.end <= first || c.start > last {
				continue
			}
			if previous = c.version; !yield(previous) {
				return
			}
		}
	}
}

// joinRanges sorts ranges and joins those that touch.
func joinRanges(ranges []addrRange) []addrRange {
	slices.SortFunc(ranges, func(a, b addrRange) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && r.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, r.end)
			continue
		}
		out = append(out, r)
	}
	return slices.Clip(out)
}
