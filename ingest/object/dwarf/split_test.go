package dwarf

import (
	"errors"
	"testing"

	"symbolize/fixtures/dwarfbuild"
)

// splitPair builds an executable with one skeleton unit and the .dwo that completes it: a function
// by address index with an inlined call by range list, on the skeleton's base.
func splitPair(version uint16, id uint64) (exe, dwo *dwarfbuild.Builder) {
	exe = one()
	addrs := exe.Section(".debug_addr")
	line := exe.Line(dwarfbuild.LineTable{Version: version, Dirs: []string{"/src"},
		Files:   []dwarfbuild.LineFile{{Name: "zero.c"}, {Name: "one.c"}},
		Program: func(p *dwarfbuild.Prog) { p.Set(0x1000).Row(0, 0).End(64) }})
	abs := abstract("inlined")
	dwo = one()
	if version == 5 {
		addrs.U32(0).U16(5).U8(8, 0)
		lists := dwo.Section(".debug_rnglists")
		lists.U32(0).U16(5).U8(8, 0).U32(1).U32(4).U8(rleOffsetPair).ULEB(0x10, 0x20).U8(0)
		exe.Units = []*dwarfbuild.Unit{{Version: 5, Kind: utSkeleton, ID: id, Root: dwarfbuild.D(
			tagSkeletonUnit, str(atDWOName, "a.dwo"), str(atCompDir, "/src"),
			addrAt(atLowPC, 0x1000), secOff(atStmtList, line), secOff(atAddrBase, 8))}}
		root := dwarfbuild.D(tagCompileUnit, attr{Attr: atName, Form: formStrx, Val: "a.c"},
			udata(atLanguage, LangC11))
		dwo.Units = []*dwarfbuild.Unit{{Version: 5, Kind: utSplitCompile, ID: id, Root: root}}
		root.Add(abs, sub(attr{Attr: atName, Form: formStrx1, Val: "main"},
			attr{Attr: atLowPC, Form: formAddrx, Val: 1}, length(64)).Add(
			inl(abs, attr{Attr: atRanges, Form: formRnglistx, Val: 0}, udata(atCallFile, 1))))
	} else {
		exe.Section(".debug_ranges").U64(0xbad).U64(0xbae).
			U64(0x10).U64(0x20).U64(0).U64(0)
		exe.Units = []*dwarfbuild.Unit{{Version: 4, Root: dwarfbuild.D(tagCompileUnit,
			str(atGNUDWOName, "a.dwo"), str(atCompDir, "/src"), addrAt(atLowPC, 0x1000),
			attr{Attr: atGNUDWOID, Form: formData8, Val: id}, secOff(atStmtList, line),
			secOff(atGNUAddrBase, 0), secOff(atGNURangesBase, 16))}}
		root := dwarfbuild.D(tagCompileUnit, attr{Attr: atName, Form: formGNUStrIndex, Val: "a.c"},
			attr{Attr: atGNUDWOID, Form: formData8, Val: id}, udata(atLanguage, LangC11))
		dwo.Units = []*dwarfbuild.Unit{{Version: 4, Root: root}}
		root.Add(abs, sub(attr{Attr: atName, Form: formGNUStrIndex, Val: "main"},
			attr{Attr: atLowPC, Form: formGNUAddrIndex, Val: 1}, length(64)).Add(
			inl(abs, secOff(atRanges, 0), udata(atCallFile, 2))))
	}
	addrs.U64(0xbad).U64(0x1000)
	return exe, dwo
}

const splitWant = `
	main [{1000 1040}]
	inlined [{1010 1020}] call /src/one.c:0:0
	seq {1000 1040} 1000=`

func splitFirst(version uint16) string {
	if version == 5 {
		return splitWant + "/src/one.c:1:0"
	}
	return splitWant + "/src/zero.c:1:0" // file 1 is the first there
}

func TestSplitUnits(t *testing.T) {
	for _, version := range []uint16{4, 5} {
		exe, dwo := splitPair(version, 42)
		closed := 0
		secs := built(dwo.Sections(), false)
		opts := Options{DWO: func(name, dir string, id uint64) (*Data, error) {
			if name != "a.dwo" || dir != "/src" || id != 42 {
				t.Errorf("asked for %q %q %d", name, dir, id)
			}
			return NewSplit(secs, Options{Close: func() error { closed++; return nil }}), nil
		}}
		check(t, exe, opts, splitFirst(version))
		if closed != 1 {
			t.Errorf("closed %d times", closed)
		}
	}
}

// TestSplitBudget reads the entries of a .dwo file often: its size counts, not only that of the executable.
func TestSplitBudget(t *testing.T) {
	exe, dwo := splitPair(5, 42)
	for range 1 << 14 {
		dwo.Units[0].Root.Add(dwarfbuild.D(tagStructureType, udata(atLanguage, 0)))
	}
	opts := Options{DWO: func(string, string, uint64) (*Data, error) {
		return NewSplit(built(dwo.Sections(), false), Options{}), nil
	}}
	tree := New(built(exe.Sections(), false), opts).Tree()
	defer tree.Close()
	tree.Roots(false, func(r *Root) bool {
		var e Entry
		for range 80 {
			n := 0
			if tree.Read(r.First(), &e) {
				tree.Kids(&e, func(*Entry, int) Step { n++; return Over }, nil)
			}
			if n < 1<<14 {
				t.Fatalf("%d entries, %v", n, tree.Problems)
			}
		}
		return true
	})
}

func TestSplitUnitMissing(t *testing.T) {
	line := "seq {1000 1040} 1000=/src/one.c:1:0\nproblem .debug_info: offset 0x0: "
	exe, _ := splitPair(5, 42)
	check(t, exe, Options{}, line+"split unit a.dwo was not looked for")
	exe, _ = splitPair(5, 42)
	check(t, exe, Options{DWO: func(string, string, uint64) (*Data, error) {
		return nil, errors.New("no such file")
	}}, line+"split unit a.dwo: no such file")
	exe, _ = splitPair(5, 42)
	_, other := splitPair(5, 43)
	check(t, exe, Options{DWO: func(string, string, uint64) (*Data, error) {
		return NewSplit(built(other.Sections(), false), Options{}), nil
	}}, line+"file a.dwo has another split unit")
}

// pack puts .dwo files into a package, the second behind the first in each section.
func pack(version uint32, ids []uint64, dwos ...map[string][]byte) Sections {
	names := map[int]string{1: ".debug_info", 3: ".debug_abbrev", 6: ".debug_str_offsets",
		8: ".debug_rnglists"}
	cols := []int{1, 3, 6}
	if version == 5 {
		cols = append(cols, 8)
	}
	all := make(map[string][]byte)
	var offs, sizes dwarfbuild.Buf
	for _, dwo := range dwos {
		base := len(all[".debug_str"])
		all[".debug_str"] = append(all[".debug_str"], dwo[".debug_str"]...)
		for _, c := range cols {
			sec := append([]byte(nil), dwo[names[c]]...)
			offs.U32(uint32(len(all[names[c]])))
			sizes.U32(uint32(len(sec)))
			if c == 6 {
				moveOffsets(sec, base, version)
			}
			all[names[c]] = append(all[names[c]], sec...)
		}
	}
	var index dwarfbuild.Buf
	if version == 5 {
		index.U16(5).U16(0)
	} else {
		index.U32(2)
	}
	const slots = 4
	index.U32(uint32(len(cols))).U32(uint32(len(dwos))).U32(slots)
	var rows dwarfbuild.Buf
	for i := range slots {
		id, row := uint64(0), uint32(0)
		if i < len(ids) {
			id, row = ids[i], uint32(i+1)
		}
		index.U64(id)
		rows.U32(row)
	}
	index.B = append(index.B, rows.B...)
	for _, c := range cols {
		index.U32(uint32(c))
	}
	index.B = append(append(index.B, offs.B...), sizes.B...)
	all[".debug_cu_index"] = index.B
	return built(all, false)
}

// moveOffsets adds base to all offsets in .debug_str_offsets, as dwp does.
func moveOffsets(sec []byte, base int, version uint32) {
	from := 0
	if version == 5 {
		from = 8
	}
	r := buf{b: sec, off: from}
	for i := from; i < len(sec); i += 4 {
		var b dwarfbuild.Buf
		b.U32(r.u32() + uint32(base))
		copy(sec[i:], b.B)
	}
}

func TestPackages(t *testing.T) {
	for _, version := range []uint16{4, 5} {
		_, first := splitPair(version, 41)
		first.Str(".debug_str", "something in front")
		exe, dwo := splitPair(version, 42)
		index := uint32(2)
		if version == 5 {
			index = 5
		}
		p := pack(index, []uint64{41, 42}, first.Sections(), dwo.Sections())
		opts := Options{DWP: NewSplit(p, Options{})}
		check(t, exe, opts, splitFirst(version))
	}
}

func TestPackageIndexDamage(t *testing.T) {
	_, a := splitPair(5, 41)
	p := pack(5, []uint64{41}, a.Sections())
	for n := 1; n < len(p.CUIndex); n++ {
		if idx, bad := parseIndex(p.CUIndex[:n], false); bad.reason == "" {
			t.Errorf("cut at %d: index of %d units and no reason", n, len(idx))
		}
	}
	var b dwarfbuild.Buf
	b.U16(5).U16(0).U32(4).U32(1 << 30).U32(1 << 31)
	if _, bad := parseIndex(b.B, false); bad.reason == "" {
		t.Error("no reason for an index that cannot fit")
	}
	b = dwarfbuild.Buf{}
	b.U32(3).U32(0).U32(0).U32(0)
	if _, bad := parseIndex(b.B, false); bad.reason == "" {
		t.Error("no reason for an unknown version")
	}
}
