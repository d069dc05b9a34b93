package dwarf

import (
	"testing"

	"symbolize/fixtures/dwarfbuild"
)

// FuzzWalk mutates the sections of whole files: entries, abbreviations, lists, strings and line
// tables in one.
func FuzzWalk(f *testing.F) {
	for version := uint16(2); version <= 5; version++ {
		s := sample(version)
		f.Add(s.Info, s.Abbrev, s.Line, s.Str, s.Ranges, s.RngLists, s.Addr, false)
	}
	call := abstract("operator()")
	b := one(scoped(LangCpp14, []*die{namespace("n", structure("", call))}, call))
	s := built(b.Sections(), false)
	f.Add(s.Info, s.Abbrev, s.Line, s.Str, s.Ranges, s.RngLists, s.Addr, false)
	f.Fuzz(func(t *testing.T, info, abbrev, line, str, ranges, lists, addrs []byte, big bool) {
		walkAll(t, Sections{Info: info, Abbrev: abbrev, Line: line, LineStr: str, Str: str,
			StrOffsets: addrs, Addr: addrs, Ranges: ranges, RngLists: lists, BigEndian: big})
	})
}

func FuzzAbbrevs(f *testing.F) {
	f.Add(sample(4).Abbrev, uint64(1), uint8(8), false)
	f.Add([]byte{5, 0x2e, 0, 3, 0x21, 0x7f, 0, 0, 0}, uint64(5), uint8(4), true)
	f.Fuzz(func(t *testing.T, sec []byte, code uint64, size uint8, is64 bool) {
		var table abbrevs
		enc := encoding{addrSize: size, is64: is64, refAddr: 4}
		reason := table.parse(sec, 0, enc)
		if n := len(table.steps); n > 3*len(sec) {
			t.Fatalf("%d steps from %d bytes", n, len(sec))
		}
		var one abbrevs
		ab, _ := one.parseOne(sec, 0, code, enc)
		whole := table.lookup(code)
		if reason == "" && (ab == nil) != (whole == nil) && code != 0 {
			t.Fatalf("code %d: alone %v, in the table %v", code, ab, whole)
		}
		var v values
		for i := range table.list {
			r := buf{b: sec}
			table.read(table.list[i].full, &r, enc, &v)
		}
		if got, want := tableLength(sec), plainTableLength(sec); got != want {
			t.Fatalf("table of %d bytes, read number by number %d", got, want)
		}
	})
}

// FuzzLines mutates a line table: header, file tables and program.
func FuzzLines(f *testing.F) {
	for version := uint16(2); version <= 5; version++ {
		f.Add(sample(version).Line, []byte("a\x00b\x00"))
	}
	u := cu(4, secOff(atStmtList, 0))
	s := built(one(u).Sections(), false)
	f.Fuzz(func(t *testing.T, line, strs []byte) {
		cut := s
		cut.Line, cut.LineStr, cut.Str, cut.StrOffsets = line, strs, strs, strs
		walkAll(t, cut)
	})
}

// FuzzRanges mutates range lists of both kinds and the addresses that they index.
func FuzzRanges(f *testing.F) {
	four, five := sample(4), sample(5)
	f.Add(four.Ranges, five.RngLists, five.Addr)
	f.Fuzz(func(t *testing.T, ranges, lists, addrs []byte) {
		a, b := four, five
		a.Ranges, b.RngLists, b.Addr = ranges, lists, addrs
		walkAll(t, a)
		walkAll(t, b)
	})
}

// FuzzStrOffsets mutates string indexes and strings.
func FuzzStrOffsets(f *testing.F) {
	u := cu(5, secOff(atStrOffsetsBase, 8))
	for i, form := range []uint16{formStrx, formStrx1, formStrx2, formStrx3, formStrx4} {
		u.Root.Add(sub(attr{Attr: atName, Form: form, Val: "f"}, low(0x1000+uint64(i)), length(1)))
	}
	s := built(one(u).Sections(), false)
	f.Add(s.StrOffsets, s.Str, uint64(8))
	f.Fuzz(func(t *testing.T, offs, strs []byte, base uint64) {
		cut := s
		cut.StrOffsets, cut.Str = offs, strs
		walkAll(t, cut)
		sc := scope{d: New(cut, Options{}), u: &unit{strBase: base}}
		sc.str(ref{val: 1, form: formStrx})
	})
}

// FuzzPackage mutates the index of a .dwp file and the split units in it.
func FuzzPackage(f *testing.F) {
	for _, version := range []uint16{4, 5} {
		exe, dwo := splitPair(version, 42)
		index := uint32(2)
		if version == 5 {
			index = 5
		}
		p := pack(index, []uint64{42}, dwo.Sections())
		e := built(exe.Sections(), false)
		f.Add(e.Info, e.Abbrev, p.CUIndex, p.Info, p.Abbrev, p.StrOffsets, p.RngLists)
	}
	var strs dwarfbuild.Buf
	strs.Str("main").Str("a.c")
	f.Fuzz(func(t *testing.T, info, abbrev, index, sinfo, sabbrev, offs, lists []byte) {
		p := NewSplit(Sections{Info: sinfo, Abbrev: sabbrev, StrOffsets: offs, RngLists: lists,
			Str: strs.B, CUIndex: index}, Options{})
		d := New(Sections{Info: info, Abbrev: abbrev}, Options{DWP: p})
		if err := d.Walk(t.Context(), 1, func(*Unit) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
}
