package dwarf

import (
	"fmt"

	"slices"

	"symbolize/ingest/addr"
)

// rangeSlab hands out slices of ranges that stay where they are.
type rangeSlab struct {
	slabs [][]addr.Range
	cur   int
}

const slabRanges = 4096

func (s *rangeSlab) reset() {
	for i := range s.slabs {
		s.slabs[i] = s.slabs[i][:0]
	}
	s.cur = 0
}

// keep copies ranges into the slab.
func (s *rangeSlab) keep(rs []addr.Range) []addr.Range {
	if len(rs) == 0 {
		return nil
	}
	for s.cur < len(s.slabs) && cap(s.slabs[s.cur])-len(s.slabs[s.cur]) < len(rs) {
		s.cur++
	}
	if s.cur == len(s.slabs) {
		s.slabs = append(s.slabs, make([]addr.Range, 0, max(slabRanges, len(rs))))
	}
	slab := s.slabs[s.cur]
	n := len(slab)
	slab = append(slab, rs...)
	s.slabs[s.cur] = slab
	return slab[n:len(slab):len(slab)]
}

// text separates addresses of code from addresses of code that the linker dropped, where
// relocations were resolved to a tombstone: 0 (GNU ld, also plus an addend), 1 (GNU ld in
// .debug_ranges, where 0 would end the list), −1 and −2 (lld).
type text struct {
	ranges []addr.Range // sorted, disjoint; nil if not known
	last   uint64       // the highest address of the unit's size
}

func newText(ranges []addr.Range) []addr.Range {
	s := slices.Clone(ranges) // of nil: nil
	slices.SortFunc(s, func(a, b addr.Range) int {
		if a.Start < b.Start {
			return -1
		}
		return 1
	})
	return s
}

// tombstone reports whether a marks dropped code.
func (t *text) tombstone(a uint64) bool {
	return a >= t.last-1 || t.ranges == nil && a <= 1
}

// alive reports whether [start, end) is not empty and is in one section of code.
func (t *text) alive(start, end uint64) bool {
	if end <= start || t.tombstone(start) || end-1 > t.last {
		return false
	}
	if t.ranges == nil {
		return true
	}
	lo, hi := 0, len(t.ranges)
	for lo < hi {
		mid := (lo + hi) / 2
		if uint64(t.ranges[mid].End) <= start {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(t.ranges) && start >= uint64(t.ranges[lo].Start) &&
		end <= uint64(t.ranges[lo].End)
}

func (w *walker) addRange(start, end uint64) {
	if w.text.alive(start, end) {
		w.ranges = append(w.ranges, addr.Range{Start: addr.Addr(start), End: addr.Addr(end)})
	}
}

// entryRanges puts the addresses of the entry in v into w.ranges: from its range list, else
// low_pc to high_pc.
func (w *walker) entryRanges(v *values) {
	w.ranges = w.ranges[:0]
	if v.has(slotRanges) {
		w.rangeList(v.ref(slotRanges))
		return
	}
	if !v.has(slotLowPC) || !v.has(slotHighPC) {
		return
	}
	low, ok := w.cur.address(v.ref(slotLowPC))
	if !ok {
		w.lose(".debug_addr", w.entry, "low_pc has no address")
		return
	}
	high := v.val[slotHighPC]
	switch form := v.form[slotHighPC]; form {
	case formAddr, formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		if high, ok = w.cur.address(v.ref(slotHighPC)); !ok {
			w.lose(".debug_addr", w.entry, "high_pc has no address")
			return
		}
	case formData1, formData2, formData4, formData8, formSdata, formUdata, formImplicitConst:
		high += low
	default: // an address or a length: nobody can tell
		w.lose(".debug_info", w.entry, fmt.Sprintf("high_pc has the form %#x", form))
		return
	}
	w.addRange(low, high)
}

// rangeList reads the list that DW_AT_ranges points to.
func (w *walker) rangeList(v ref) {
	c := &w.cur
	if w.rangeLeft < 0 {
		w.lose(".debug_info", w.entry, "limit reached: range lists of the unit overlap")
		return
	}
	if c.u.version < 5 {
		off := v.val
		if c.d != c.main {
			off += c.skel.rngBase
		}
		w.ranges4(off)
		return
	}
	off, ok := v.val, true
	if v.form == formRnglistx {
		off, ok = c.indexed(c.d.sec.RngLists, c.u.rngBase, v.val, c.u.enc.offsetSize())
		off += c.u.rngBase
	} else if c.u.bias != nil {
		off, ok = c.u.bias.add(colRngLists, off)
	}
	if !ok {
		w.lose(".debug_rnglists", v.val, "range list index is beyond the table")
		return
	}
	w.ranges5(off)
}

// charge subtracts the cost of a range list from the unit's budget. A list beyond the budget is
// dropped as a whole.
func (w *walker) charge(r *buf, section string, from uint64) {
	cost := int64(uint64(r.off) - min(from, uint64(r.off)))
	if w.rangeLeft -= cost; w.rangeLeft < 0 {
		w.lose(section, from, "limit reached: range lists of the unit overlap")
		w.ranges = w.ranges[:0]
		return
	}
	if w.res.split == nil || section == ".debug_ranges" { // a .dwo file has its own lists
		w.res.rangeBytes += cost
	}
	if r.bad {
		w.lose(section, from, "range list does not end")
	}
}

// budgeted returns a reader at off that ends where the section or the unit's budget does.
func (w *walker) budgeted(sec []byte, off uint64) buf {
	r := buf{b: sec, big: w.cur.d.sec.BigEndian}
	r.seek(off)
	if w.rangeLeft >= 0 && int64(r.left()) > w.rangeLeft+32 {
		r.b = r.b[:r.off+int(w.rangeLeft)+32]
	}
	return r
}

// ranges4 reads a list of .debug_ranges, section 2.17.3 of DWARF 4.
func (w *walker) ranges4(off uint64) {
	r := w.budgeted(w.cur.main.sec.Ranges, off)
	base, dead := w.base, w.baseDead
	size := w.cur.u.enc.addrSize
	for {
		start, end := r.sized(size), r.sized(size)
		switch {
		case r.bad, start == 0 && end == 0:
			w.charge(&r, ".debug_ranges", off)
			return
		case start == w.text.last:
			// LLVM goes back to absolute addresses with a base of 0, which is therefore no
			// tombstone here.
			base, dead = end, end >= w.text.last-1
		case !dead:
			w.addRange(base+start, base+end)
		}
	}
}

// ranges5 reads a list of .debug_rnglists, section 2.17.3 of DWARF 5.
func (w *walker) ranges5(off uint64) {
	r := w.budgeted(w.cur.d.sec.RngLists, off)
	base, dead := w.base, w.baseDead
	size := w.cur.u.enc.addrSize
	for {
		var start, end uint64
		ok := true
		kind := r.u8()
		if r.bad || kind == rleEndOfList {
			w.charge(&r, ".debug_rnglists", off)
			return
		}
		switch kind {
		case rleBaseAddressx:
			base, ok = w.cur.addrx(r.uleb())
			dead = !ok || w.text.tombstone(base)
		case rleBaseAddress:
			base = r.sized(size)
			dead = w.text.tombstone(base)
		case rleOffsetPair:
			start, end = r.uleb(), r.uleb()
			if !dead {
				w.addRange(base+start, base+end)
			}
		case rleStartxEndx:
			var ok2 bool
			start, ok = w.cur.addrx(r.uleb())
			end, ok2 = w.cur.addrx(r.uleb())
			ok = ok && ok2
		case rleStartxLength:
			start, ok = w.cur.addrx(r.uleb())
			end = start + r.uleb()
		case rleStartEnd:
			start, end = r.sized(size), r.sized(size)
		case rleStartLength:
			start = r.sized(size)
			end = start + r.uleb()
		default:
			w.lose(".debug_rnglists", uint64(r.off-1), "unknown range list entry")
			return
		}
		if !ok {
			w.lose(".debug_addr", off, "range has no address")
		} else if kind != rleOffsetPair && kind != rleBaseAddress && kind != rleBaseAddressx {
			w.addRange(start, end)
		}
	}
}
