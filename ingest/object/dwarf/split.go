package dwarf

// Columns of a .dwp index that are used here.
const (
	colInfo = iota
	colAbbrev
	colLine
	colStrOffsets
	colRngLists
	colLoc
	numCols
)

// A contribution is the part of each section of a .dwp file that came from one .dwo
// file.
type contribution struct {
	off, size [numCols]uint64
}

// add turns an offset in a unit's own section into one of the whole section. A nil
// contribution is the whole section.
func (c *contribution) add(col int, off uint64) (uint64, bool) {
	if c == nil {
		return off, true
	}
	return c.off[col] + off, off <= c.size[col]
}

// column maps a DW_SECT_ number to a column; ok is false for sections of no use.
func column(id uint32, version uint32) (col int, ok bool) {
	switch id {
	case 1:
		return colInfo, true
	case 3:
		return colAbbrev, true
	case 4:
		return colLine, true
	case 6:
		return colStrOffsets, true
	case 5: // version 2: DW_SECT_LOC
		return colLoc, true
	case 8: // version 2: DW_SECT_MACRO
		return colRngLists, version == 5
	}
	return 0, false
}

// parseIndex reads the .debug_cu_index of a .dwp file: version 5 as in DWARF 5 section 7.3.5,
// version 2 as in the GNU proposal before it.
func parseIndex(sec []byte, big bool) (map[uint64]*contribution, trouble) {
	bad := func(off int, reason string) (map[uint64]*contribution, trouble) {
		return nil, trouble{".debug_cu_index", uint64(off), reason}
	}
	r := buf{b: sec, big: big}
	version := r.u32()
	if version != 2 {
		r.off = 0
		version = uint32(r.u16())
		r.u16()
	}
	cols, units, slots := r.u32(), r.u32(), r.u32()
	if r.bad || version != 2 && version != 5 {
		return bad(0, "unknown version of the index")
	}
	need := 12*uint64(slots) + 4*uint64(cols) + 8*uint64(units)*uint64(cols)
	if cols > maxDWPColumns || units > maxDWPUnits || units > slots ||
		need > uint64(r.left()) {
		return bad(r.off, "index is longer than its section")
	}
	ids := buf{b: sec, off: r.off, big: big}
	rows := buf{b: sec, off: r.off + 8*int(slots), big: big}
	head := rows.off + 4*int(slots)
	table := make([]contribution, units)
	for c := range cols {
		heads := buf{b: sec, off: head + 4*int(c), big: big}
		col, ok := column(heads.u32(), version)
		if !ok {
			continue
		}
		for i := range table {
			at := head + 4*int(cols)*(i+1) + 4*int(c)
			offs := buf{b: sec, off: at, big: big}
			sizes := buf{b: sec, off: at + 4*int(cols)*int(units), big: big}
			table[i].off[col], table[i].size[col] = uint64(offs.u32()), uint64(sizes.u32())
		}
	}
	index := make(map[uint64]*contribution, units)
	for range slots {
		id, row := ids.u64(), rows.u32()
		if row == 0 {
			continue
		}
		if row > units {
			return bad(rows.off-4, "row is beyond the index")
		}
		index[id] = &table[row-1]
	}
	return index, trouble{}
}

// typeBiases returns the contributions of type units of a .dwp file by where they begin.
func (d *Data) typeBiases() map[uint64]*contribution {
	if d.sec.TUIndex == nil {
		return nil
	}
	index, _ := parseIndex(d.sec.TUIndex, d.sec.BigEndian)
	m := make(map[uint64]*contribution, len(index))
	for _, c := range index {
		m[c.off[colInfo]] = c
	}
	return m
}

// biases returns the contributions of a .dwp file by where their units begin.
func (d *Data) biases() map[uint64]*contribution {
	if d.index == nil {
		return nil
	}
	m := make(map[uint64]*contribution, len(d.index))
	for _, c := range d.index {
		m[c.off[colInfo]] = c
	}
	return m
}

// splitBases sets where the tables of a unit begin that has no attributes for it: in split units,
// after the header of the only (or, in a .dwp file, its own) contribution. Version 4 has no
// headers.
func (s *scanner) splitBases(u *unit) {
	if u.version < 5 {
		if s.d.dwo {
			u.strBase, _ = u.bias.add(colStrOffsets, 0)
		}
		return
	}
	header := uint64(8)
	if u.enc.is64 {
		header = 16
	}
	if u.addrBase == 0 {
		u.addrBase = header
	}
	if s.d.dwo || u.strBase == 0 {
		u.strBase, _ = u.bias.add(colStrOffsets, header)
	}
	if s.d.dwo {
		u.rngBase, _ = u.bias.add(colRngLists, header+4)
		u.locBase, _ = u.bias.add(colLoc, header+4)
	}
}

// splitUnit finds the unit with this id: the one that completes a skeleton. A .dwo file with one
// unit without an id counts as the right one.
func (d *Data) splitUnit(id uint64) *unit {
	d.scan()
	var only *unit
	n := 0
	for i := 0; ; i++ {
		u := d.units.at(i)
		if u == nil {
			break
		}
		if u.kind == utPartial {
			continue
		}
		if u.id == id {
			return u
		}
		only = u
		n++
	}
	if n == 1 && (only.id == 0 || id == 0) {
		return only
	}
	return nil
}

// packaged finds the unit with this id in a .dwp file.
func (d *Data) packaged(id uint64) *unit {
	d.scan()
	c, ok := d.index[id]
	if !ok {
		return nil
	}
	return d.units.around(c.off[colInfo])
}
