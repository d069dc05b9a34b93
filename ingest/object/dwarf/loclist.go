package dwarf

// Location list entries of DWARF 5, table 7.10, and of the GNU form of split units in DWARF 4.
const (
	lleEndOfList       = 0
	lleBaseAddressx    = 1
	lleStartxEndx      = 2
	lleStartxLength    = 3
	lleOffsetPair      = 4
	lleDefaultLocation = 5
	lleBaseAddress     = 6
	lleStartEnd        = 7
	lleStartLength     = 8
	lleViewPair        = 9 // GNU: two numbers of views, which refine the next entry
)

// A Location is an expression and the addresses where it holds. A default one (DW_LLE_default_location) holds where no
// other does.
type Location struct {
	Start, End uint64
	Default    bool
	Expr       []byte // must not be changed
}

// locLists is where the location lists of a unit are, and their form.
type locLists struct {
	sec   []byte
	split bool   // of a .dwo or .dwp file
	five  bool   // DWARF 5
	base  uint64 // DW_AT_loclists_base
	bias  *contribution
}

func (c *scope) locLists() locLists {
	l := locLists{sec: c.d.sections().Loc, split: c.d.dwo, five: c.u.version >= 5, base: c.u.locBase, bias: c.u.bias}
	if l.five {
		l.sec = c.d.sections().LocLists
	}
	return l
}

// Locations visits the entries of an attribute's location list, which is of ClassList, or in DWARF 2
// and 3 of ClassConst. Entries for dropped code and empty ones are left out.
func (t *Tree) Locations(e *Entry, attr uint16, visit func(Location)) {
	a := e.attr(attr)
	if a == nil {
		return
	}
	if t.listsLeft < 0 {
		t.Lose(e.Pos, "limit reached: location lists overlap")
		return
	}
	l := locReader{c: &e.Root.c, lists: &e.Root.lists, enc: e.Root.enc, visit: visit}
	l.base, l.dead, l.tombstone = t.enter(e).baseAddress()
	from, ok := l.start(a)
	if !ok {
		t.Lose(e.Pos, "location list index is beyond the table")
		return
	}
	l.r = buf{b: l.lists.sec, big: t.big}
	l.r.seek(from)
	switch {
	case l.lists.five:
		l.list5()
	case l.lists.split:
		l.listGNU()
	default:
		l.list4()
	}
	if l.reason == "" && l.r.failed() {
		l.reason = "location list does not end"
	}
	if l.reason != "" {
		t.lose(".debug_loc", from, l.reason)
	}
	t.listsLeft -= int64(l.r.position()-min(from, l.r.position())) + 1
}

// baseAddress returns the base of the unit's lists, whether its code was dropped, and what tells
// addresses of dropped code.
func (w *walker) baseAddress() (base uint64, dead bool, tombstone text) {
	return w.base, w.baseDead, w.text
}

// locReader reads one location list.
type locReader struct {
	c         *scope
	lists     *locLists
	enc       encoding
	r         buf
	base      uint64
	dead      bool // base belongs to dropped code
	tombstone text
	visit     func(Location)
	reason    string
}

// start returns the offset of a list.
func (l *locReader) start(a *attribute) (uint64, bool) {
	switch {
	case l.lists.five && a.form == formLoclistx:
		off, ok := l.c.indexed(l.lists.sec, l.lists.base, a.val, l.enc.offsetSize())
		return off + l.lists.base, ok
	case l.lists.bias != nil:
		return l.lists.bias.add(colLoc, a.val)
	}
	return a.val, true
}

// add visits an entry unless its code was dropped.
func (l *locReader) add(start, end uint64, expr []byte) {
	if end > start && !l.tombstone.tombstone(start) {
		l.visit(Location{Start: start, End: end, Expr: expr})
	}
}

// list4 reads a list of .debug_loc, section 2.6.2 of DWARF 4.
func (l *locReader) list4() {
	size := l.enc.addrSize
	for {
		start, end := l.r.sized(size), l.r.sized(size)
		switch {
		case l.r.failed(), start == 0 && end == 0:
			return
		case start == l.tombstone.last:
			l.base, l.dead = end, end >= l.tombstone.last-1
			continue
		}
		expr := l.r.bytes(uint64(l.r.u16()))
		if !l.r.failed() && !l.dead && end > start {
			l.add(l.base+start, l.base+end, expr)
		}
	}
}

// listGNU reads a list of .debug_loc.dwo, as in the proposal DebugFission.
func (l *locReader) listGNU() {
	for {
		var start, end uint64
		ok, ok2 := true, true
		switch kind := l.r.u8(); kind {
		case lleEndOfList:
			return
		case lleBaseAddressx:
			l.base, ok = l.c.addrx(l.r.uleb())
			l.dead = !ok || l.tombstone.tombstone(l.base)
			continue
		case lleStartxEndx:
			start, ok = l.c.addrx(l.r.uleb())
			end, ok2 = l.c.addrx(l.r.uleb())
		case lleStartxLength:
			start, ok = l.c.addrx(l.r.uleb())
			end = start + gnuLength(l.r.u32())
		case lleOffsetPair:
			start, end = l.base+uint64(l.r.u32()), l.base+uint64(l.r.u32())
			ok = !l.dead
		default:
			l.reason = "unknown location list entry"
			return
		}
		expr := l.r.bytes(uint64(l.r.u16()))
		if l.r.failed() {
			return
		}
		if ok && ok2 {
			l.add(start, end, expr)
		}
	}
}

// gnuLength returns the length of a range in the GNU form. gcc subtracts a start of the form "label - 1" without
// parentheses, so that ranges that begin within a call instruction are two bytes too short: of 1 byte it writes -1, and
// of 0 bytes -2. The others cannot be told from right ones.
func gnuLength(n uint32) uint64 {
	if n >= 1<<32-2 {
		n += 2
	}
	return uint64(n)
}

// list5 reads a list of .debug_loclists, section 2.6.2 of DWARF 5.
func (l *locReader) list5() {
	size := l.enc.addrSize
	for !l.r.failed() {
		var start, end uint64
		ok, ok2, other := true, true, false
		switch kind := l.r.u8(); kind {
		case lleEndOfList:
			return
		case lleBaseAddressx:
			l.base, ok = l.c.addrx(l.r.uleb())
			l.dead = !ok || l.tombstone.tombstone(l.base)
			continue
		case lleBaseAddress:
			l.base = l.r.sized(size)
			l.dead = l.tombstone.tombstone(l.base)
			continue
		case lleViewPair:
			l.r.uleb()
			l.r.uleb()
			continue
		case lleStartxEndx:
			start, ok = l.c.addrx(l.r.uleb())
			end, ok2 = l.c.addrx(l.r.uleb())
		case lleStartxLength:
			start, ok = l.c.addrx(l.r.uleb())
			end = start + l.r.uleb()
		case lleOffsetPair:
			start, end = l.base+l.r.uleb(), l.base+l.r.uleb()
			ok = !l.dead
		case lleDefaultLocation:
			other = true
		case lleStartEnd:
			start, end = l.r.sized(size), l.r.sized(size)
		case lleStartLength:
			start = l.r.sized(size)
			end = start + l.r.uleb()
		default:
			l.reason = "unknown location list entry"
			return
		}
		expr := l.r.bytes(l.r.uleb())
		switch {
		case l.r.failed():
		case other:
			l.visit(Location{Default: true, Expr: expr})
		case ok && ok2:
			l.add(start, end, expr)
		}
	}
}
