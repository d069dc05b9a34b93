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

// Locations visits the entries of an attribute's location list, which is of ClassList, or in DWARF 2
// and 3 of ClassConst. Entries for dropped code and empty ones are left out.
func (t *Tree) Locations(e *Entry, attr uint16, visit func(Location)) {
	a := e.attr(attr)
	if a == nil {
		return
	}
	w := t.enter(e)
	l := locReader{t: t, w: w, c: &e.Root.c, visit: visit, base: w.base, dead: w.baseDead}
	off, ok := l.start(a)
	if !ok {
		t.Lose(e.Pos, "location list index is beyond the table")
		return
	}
	if t.listsLeft < 0 {
		t.Lose(e.Pos, "limit reached: location lists overlap")
		return
	}
	from := off
	switch {
	case l.c.u.version >= 5:
		l.r = buf{b: l.c.d.sec.LocLists, big: t.BigEndian()}
		l.r.seek(off)
		l.list5()
	case l.c.d.dwo:
		l.r = buf{b: l.c.d.sec.Loc, big: t.BigEndian()}
		l.r.seek(off)
		l.listGNU()
	default:
		l.r = buf{b: l.c.d.sec.Loc, big: t.BigEndian()}
		l.r.seek(off)
		l.list4()
	}
	if l.r.bad || l.reason != "" {
		if l.reason == "" {
			l.reason = "location list does not end"
		}
		t.lose(".debug_loc", from, l.reason)
	}
	t.listsLeft -= int64(uint64(l.r.off)-min(from, uint64(l.r.off))) + 1
}

// locReader reads one location list.
type locReader struct {
	t      *Tree
	w      *walker
	c      *scope
	r      buf
	base   uint64
	dead   bool // base is of dropped code
	visit  func(Location)
	reason string
}

// start returns the offset of a list.
func (l *locReader) start(a *attribute) (uint64, bool) {
	c := l.c
	switch {
	case c.u.version >= 5 && a.form == formLoclistx:
		base := c.u.locBase
		off, ok := c.indexed(c.d.sec.LocLists, base, a.val, c.u.enc.offsetSize())
		return off + base, ok
	case c.u.bias != nil:
		return c.u.bias.add(colLoc, a.val)
	}
	return a.val, true
}

// add visits an entry unless its code was dropped.
func (l *locReader) add(start, end uint64, expr []byte) {
	if end > start && !l.w.text.tombstone(start) {
		l.visit(Location{Start: start, End: end, Expr: expr})
	}
}

// list4 reads a list of .debug_loc, section 2.6.2 of DWARF 4.
func (l *locReader) list4() {
	size := l.c.u.enc.addrSize
	for {
		start, end := l.r.sized(size), l.r.sized(size)
		switch {
		case l.r.bad, start == 0 && end == 0:
			return
		case start == l.w.text.last:
			l.base, l.dead = end, end >= l.w.text.last-1
			continue
		}
		expr := l.r.bytes(uint64(l.r.u16()))
		if !l.r.bad && !l.dead && end > start {
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
			l.dead = !ok || l.w.text.tombstone(l.base)
			continue
		case lleStartxEndx:
			start, ok = l.c.addrx(l.r.uleb())
			end, ok2 = l.c.addrx(l.r.uleb())
		case lleStartxLength:
			start, ok = l.c.addrx(l.r.uleb())
			end = start + uint64(l.r.u32())
		case lleOffsetPair:
			start, end = l.base+uint64(l.r.u32()), l.base+uint64(l.r.u32())
			ok = !l.dead
		default:
			l.reason = "unknown location list entry"
			return
		}
		expr := l.r.bytes(uint64(l.r.u16()))
		if l.r.bad {
			return
		}
		if ok && ok2 {
			l.add(start, end, expr)
		}
	}
}

// list5 reads a list of .debug_loclists, section 2.6.2 of DWARF 5.
func (l *locReader) list5() {
	size := l.c.u.enc.addrSize
	for !l.r.bad {
		var start, end uint64
		ok, ok2, other := true, true, false
		switch kind := l.r.u8(); kind {
		case lleEndOfList:
			return
		case lleBaseAddressx:
			l.base, ok = l.c.addrx(l.r.uleb())
			l.dead = !ok || l.w.text.tombstone(l.base)
			continue
		case lleBaseAddress:
			l.base = l.r.sized(size)
			l.dead = l.w.text.tombstone(l.base)
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
		case l.r.bad:
		case other:
			l.visit(Location{Default: true, Expr: expr})
		case ok && ok2:
			l.add(start, end, expr)
		}
	}
}
