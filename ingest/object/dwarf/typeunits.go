package dwarf

// signature returns the position of the type of a type unit. They are found by their headers when
// the first one is asked for: in .debug_info of DWARF 5 and in .debug_types of DWARF 4.
func (t *Tree) signature(sig uint64) (Pos, bool) {
	if t.types == nil {
		t.types = make(map[uint64]Pos)
		t.typeUnits(t.d, t.d.sec.Info)
		for _, d := range []*Data{t.d.typesData(), t.d.opts.DWP} {
			if d != nil {
				t.typeUnits(d, d.sec.Info)
			}
		}
	}
	for len(t.splitsSeen()) > 0 {
		d := t.splits[t.typed]
		t.typed++
		t.typeUnits(d, d.sec.Info)
		if td := d.typesData(); td != nil {
			t.typeUnits(td, td.sec.Info)
		}
	}
	p, ok := t.types[sig]
	return p, ok
}

// splitsSeen lists the .dwo files with type units that have not been listed yet.
func (t *Tree) splitsSeen() []*Data { return t.splits[t.typed:] }

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
func (t *Tree) typeUnits(d *Data, info []byte) {
	s := scanner{d: d, tables: make(map[uint64]struct{}), info: info, types: true,
		abbrevLeft: sharedBudgetFactor*int64(len(d.sec.Abbrev)) + sharedBudgetFloor}
	biases := d.typeBiases()
	for off := uint64(0); off < uint64(len(info)) && len(t.types) < treeTypesBudget; {
		u, reason := s.header(off)
		if reason != "" {
			t.lose(".debug_types", off, reason)
			return
		}
		off = u.end
		if u.die == 0 || u.typeOff == 0 || u.damage != "" {
			continue
		}
		u.bias = biases[u.off]
		if s.table(&u) != "" || s.rootEntry(&u) != "" || u.typeOff >= u.end-u.off {
			continue
		}
		if u.kind == utCompile {
			u.kind = utType // of .debug_types
		}
		listed := &u
		c := d.scope(listed)
		if _, dup := t.types[u.sig]; !dup {
			t.types[u.sig] = Pos{t.root(c), u.off + u.typeOff}
		}
	}
}
