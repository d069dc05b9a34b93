package dwarf

// signature returns the position of the type of a type unit. They are found by their headers when
// the first one is asked for: in .debug_info of DWARF 5 and in .debug_types of DWARF 4.
func (t *Tree) signature(sig uint64) (Pos, bool) {
	if t.types == nil {
		t.types = make(map[uint64]Pos)
		t.typeUnitsOf(t.d)
		t.typeUnitsOf(t.d.opts.DWP)
	}
	for ; t.typed < len(t.splits); t.typed++ {
		t.typeUnitsOf(t.splits[t.typed])
	}
	p, ok := t.types[sig]
	return p, ok
}

// typeUnitsOf lists the type units of a file, which can be nil.
func (t *Tree) typeUnitsOf(d *Data) {
	for range 2 {
		if d == nil {
			return
		}
		t.typeUnits(d)
		d = d.typesData()
	}
}

// typesData is the Data of .debug_types, nil if there is none.
func (d *Data) typesData() *Data {
	if len(d.sec.Types) == 0 {
		return nil
	}
	s := d.sec
	s.Info, s.Types, s.Growth, s.CUIndex = s.Types, nil, nil, nil
	return newData(s, Options{Name: d.opts.Name, Alt: d.opts.Alt}, d.dwo)
}

// typeUnits lists the type units of a section.
func (t *Tree) typeUnits(d *Data) {
	sec := d.sections()
	s := scanner{d: d, tables: make(map[uint64]struct{}), info: sec.Info, types: true,
		abbrevLeft: sharedBudgetFactor*int64(len(sec.Abbrev)) + sharedBudgetFloor}
	biases := d.typeBiases()
	for off := uint64(0); off < uint64(len(sec.Info)) && len(t.types) < treeTypesBudget; {
		u, reason := s.header(off)
		if reason != "" {
			t.lose(".debug_types", off, reason)
			return
		}
		off = u.end
		if sig, at, ok := s.typeUnit(&u, biases); ok {
			if _, dup := t.types[sig]; !dup {
				t.types[sig] = Pos{t.root(d.scope(&u)), at}
			}
		}
	}
}

// typeUnit completes a unit, and returns the signature and the position of its type.
func (s *scanner) typeUnit(u *unit, biases map[uint64]*contribution) (sig, at uint64, ok bool) {
	if u.die == 0 || u.typeOff == 0 || u.damage != "" {
		return 0, 0, false
	}
	u.bias = biases[u.off]
	if s.table(u) != "" || s.rootEntry(u) != "" || u.typeOff >= u.end-u.off {
		return 0, 0, false
	}
	if u.kind == utCompile {
		u.kind = utType // of .debug_types
	}
	return u.sig, u.off + u.typeOff, true
}
