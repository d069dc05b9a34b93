// Package addr holds the three kinds of address, as types so that they cannot be confused.
// It is a leaf.
package addr

import (
	"cmp"
	"slices"
)

// PC is an address of the recording host as it was sampled, at run time.
type PC uint64

// Offset is a position in an object, independent of its load address. Its definition depends on the
// kind of the object: a file offset for ELF files and vdsos; ip − reference symbol for the kernel;
// ip − load address for modules; ip − start for JITed functions; the address itself for perf maps.
type Offset uint64

// Addr is an address in an object's own tables: the ELF virtual address (st_value) of ELF files and
// vdsos; address − `_text` for the kernel; the loader's section layout for modules; the Offset
// itself for all others.
type Addr uint64

// Range is the half-open interval [Start, End) of table addresses.
type Range struct{ Start, End Addr }

// Contains reports whether a is in r.
func (r Range) Contains(a Addr) bool { return a >= r.Start && a < r.End }

// AppendUnion appends ranges in ascending order, without empty ones; adjacent and overlapping
// ranges are united.
func AppendUnion(dst, ranges []Range) []Range {
	from := len(dst)
	sorted := true
	for _, r := range ranges {
		if r.End <= r.Start {
			continue
		}
		sorted = sorted && (len(dst) == from || dst[len(dst)-1].End < r.Start)
		dst = append(dst, r)
	}
	if sorted {
		return dst
	}
	slices.SortFunc(dst[from:], func(a, b Range) int { return cmp.Compare(a.Start, b.Start) })
	n := from
	for _, r := range dst[from+1:] {
		if r.Start <= dst[n].End {
			dst[n].End = max(dst[n].End, r.End)
			continue
		}
		n++
		dst[n] = r
	}
	return dst[:n+1]
}
