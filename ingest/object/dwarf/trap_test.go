package dwarf

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"symbolize/fixtures/dwarfbuild"
	"symbolize/ingest/addr"
)

// textAt is an object with code at 0x1000 to 0x9000.
var textAt = []addr.Range{{Start: 0x1000, End: 0x9000}}

func one(u ...*dwarfbuild.Unit) *dwarfbuild.Builder { return &dwarfbuild.Builder{Units: u} }

func TestInlineTree(t *testing.T) {
	for _, version := range []uint16{2, 3, 4, 5} {
		for _, big := range []bool{false, true} {
			for _, size := range []int{4, 8} {
				a, c := abstract("a"), abstract("c")
				u := cu(version)
				u.AddrSize = size
				u.Is64 = version > 2 && size == 8
				line := []attr{
					{Attr: atCallLine, Form: formData2, Val: 300},
					{Attr: atCallColumn, Form: formData1, Val: 7},
					{Attr: atGNUDiscriminator, Form: formData1, Val: 4},
				}
				u.Root.Add(a, c, sub(name("main"), low(0x1000), addrAt(atHighPC, 0x1080)).Add(
					inl(a, append(line, low(0x1010), addrAt(atHighPC, 0x1040))...).Add(
						inl(c, low(0x1020), addrAt(atHighPC, 0x1030), udata(atCallLine, 8))),
					inl(c, low(0x1050), addrAt(atHighPC, 0x1060), udata(atCallLine, 9))))
				b := one(u)
				b.Big = big
				if version >= 4 { // high_pc as a length came with DWARF 4
					u.Root.Add(fn("length", 0x2000, 0x10))
				}
				want := `main [{1000 1080}]
					a [{1010 1040}] call ?:300:7/4
					c [{1020 1030}] call ?:8:0
					c [{1050 1060}] call ?:9:0
					`
				if version >= 4 {
					want += "length [{2000 2010}]"
				}
				check(t, b, Options{}, want)
			}
		}
	}
}

// TestHighPCForms: a constant is a length, an address an end, and anything else neither.
func TestHighPCForms(t *testing.T) {
	for _, form := range []uint16{formData1, formData2, formData4, formData8, formUdata, formSdata} {
		u := cu(4)
		u.Root.Add(sub(name("f"), low(0x1000), attr{Attr: atHighPC, Form: form, Val: 16}))
		check(t, one(u), Options{}, `f [{1000 1010}]`)
	}
	u := cu(4)
	u.Root.Add(sub(name("f"), low(0x1000), attr{Attr: atHighPC, Form: formSecOffset, Val: 16}),
		fn("g", 0x2000, 16))
	check(t, one(u), Options{}, `g [{2000 2010}]
		dead 1
		problem .debug_info: offset 0x16: high_pc has the form 0x17`)
}

// A concrete out-of-line instance, a definition outside its class, and gcc's two links in a row:
// instance, abstract instance, declaration in the class.
func TestOriginChains(t *testing.T) {
	decl := sub(name("f"), str(atLinkageName, "_ZN1A1fEv"), udata(atDeclFile, 1),
		udata(atDeclLine, 10), attr{Attr: atDeclaration, Form: formFlagPresent})
	class := dwarfbuild.D(tagClassType, name("A")).Add(decl)
	abs := sub(attr{Attr: atSpecification, Form: formRef4, Val: decl}, udata(atDeclLine, 20),
		attr{Attr: atInline, Form: formData1, Val: 1})
	b := one()
	u := cu(4, secOff(atStmtList, b.Line(dwarfbuild.LineTable{
		Version: 4, Dirs: []string{"inc"}, Files: []dwarfbuild.LineFile{{Name: "a.h", Dir: 1}},
	})))
	b.Units = append(b.Units, u)
	u.Root.Add(class, abs,
		sub(origin(abs), low(0x1000), length(16)),
		sub(attr{Attr: atSpecification, Form: formRef4, Val: decl}, low(0x2000), length(16)),
		sub(origin(abs), low(0x3000), length(16)),
	)
	check(t, b, Options{}, `
		f=_ZN1A1fEv decl /src/inc/a.h:20 [{1000 1010}]
		f=_ZN1A1fEv decl /src/inc/a.h:10 [{2000 2010}]
		f=_ZN1A1fEv decl /src/inc/a.h:20 [{3000 3010}]`)
}

func TestOriginInOtherUnit(t *testing.T) {
	b := one()
	partial := &dwarfbuild.Unit{Version: 4, Root: dwarfbuild.D(tagPartialUnit,
		str(atCompDir, "/other"), secOff(atStmtList, b.Line(dwarfbuild.LineTable{
			Version: 4, Files: []dwarfbuild.LineFile{{Name: "p.h"}}})))}
	abs := abstract("shared")
	abs.Attrs = append(abs.Attrs, udata(atDeclFile, 1), udata(atDeclLine, 3))
	partial.Root.Add(abs)
	u := cu(4, secOff(atStmtList, b.Line(dwarfbuild.LineTable{
		Version: 4, Files: []dwarfbuild.LineFile{{Name: "a.c"}}})))
	far := attr{Attr: atAbstractOrigin, Form: formRefAddr, Val: abs}
	u.Root.Add(fn("main", 0x1000, 64).Add(
		dwarfbuild.D(tagInlinedSubroutine, far, low(0x1010), length(8), udata(atCallFile, 1))))
	// The partial unit comes behind the one that needs it.
	b.Units = []*dwarfbuild.Unit{u, partial}
	check(t, b, Options{}, `
		main [{1000 1040}]
		shared decl /other/p.h:3 [{1010 1018}] call /src/a.c:0:0`)
}

// In DWARF 2 a reference to another unit is as long as an address, later as an offset.
func TestOriginInOtherUnitDWARF2(t *testing.T) {
	for _, version := range []uint16{2, 3} {
		for _, size := range []int{4, 8} {
			partial, u := cu(version), cu(version)
			partial.Root.Tag = tagPartialUnit
			partial.AddrSize, u.AddrSize = size, size
			abs := abstract("shared")
			partial.Root.Add(abs)
			far := attr{Attr: atAbstractOrigin, Form: formRefAddr, Val: abs}
			u.Root.Add(sub(far, low(0x1000), addrAt(atHighPC, 0x1010)))
			check(t, one(partial, u), Options{}, "shared [{1000 1010}]")
		}
	}
}

// Blocks are not calls: their content belongs to the function or call around them, and is skipped
// with all siblings after it only if none of it can be of interest.
func TestBlocks(t *testing.T) {
	a := abstract("a")
	block := func(kids ...*die) *die {
		return dwarfbuild.D(tagLexicalBlock, low(0x1000), udata(atCallLine, 1)).Add(kids...)
	}
	u := cu(4)
	u.Root.Add(a, fn("main", 0x1000, 64).Add(
		block(inl(a, low(0x1010), length(16)).Add(
			block(block(inl(a, low(0x1014), length(4)))), block()),
			inl(a, low(0x1020), length(4))),
		inl(a, low(0x1030), length(4))))
	check(t, one(u), Options{}, `
		main [{1000 1040}]
		a [{1010 1020}] call ?:0:0
		a [{1014 1018}] call ?:0:0
		a [{1020 1024}] call ?:0:0
		a [{1030 1034}] call ?:0:0`)
}

// References into a file that dwz made, in the forms of GNU and of DWARF 5.
func TestSupplementaryFile(t *testing.T) {
	for _, version := range []uint16{4, 5} {
		alt := one()
		alt.Str(".debug_str", "padding")
		abs := sub(attr{Attr: atName, Form: formStrp, Val: "from_alt"},
			attr{Attr: atInline, Form: formData1, Val: 1})
		alt.Units = []*dwarfbuild.Unit{{Version: version, Kind: utPartial,
			Root: dwarfbuild.D(tagPartialUnit, str(atCompDir, "/alt")).Add(abs)}}
		ad := New(built(alt.Sections(), false), Options{})
		refForm, strForm := uint16(formGNURefAlt), uint16(formGNUStrpAlt)
		if version == 5 {
			refForm, strForm = formRefSup4, formStrpSup
		}
		u := cu(version)
		u.Root.Add(
			sub(attr{Attr: atName, Form: strForm, Val: alt.Str(".debug_str", "padding")},
				low(0x1000), length(64)).Add(
				dwarfbuild.D(tagInlinedSubroutine, low(0x1010), length(8),
					attr{Attr: atAbstractOrigin, Form: refForm, Val: abs.Offset})))
		want := "padding [{1000 1040}]\nfrom_alt [{1010 1018}] call ?:0:0"
		check(t, one(u), Options{Alt: ad}, want)
	}
}

func TestMissingSupplementaryFile(t *testing.T) {
	u := cu(4)
	u.Root.Add(sub(low(0x1000), length(16),
		attr{Attr: atAbstractOrigin, Form: formGNURefAlt, Val: 77}))
	check(t, one(u), Options{}, `? [{1000 1010}]
		problem .debug_info: offset 0x16: reference leads out of the file`)
}

// A signature names a type unit. No compiler makes a function's origin one; it is a loss
// with a name of its own, and the function's own name stays.
func TestOriginInTypeUnit(t *testing.T) {
	u := cu(4)
	signature := attr{Attr: atAbstractOrigin, Form: formRefSig8, Val: 77}
	u.Root.Add(sub(low(0x1000), length(16), signature),
		sub(name("own"), low(0x2000), length(16), signature))
	check(t, one(u), Options{}, `? [{1000 1010}]
		own [{2000 2010}]
		problem .debug_info: offset 0x16: function in a type unit, which are not read
		problem .debug_info: offset 0x2b: function in a type unit, which are not read`)
}

// Code that the linker dropped, in all the ways linkers mark it.
func TestTombstones(t *testing.T) {
	const top = 1<<64 - 1
	b := func() *dwarfbuild.Builder {
		u := cu(4)
		u.Root.Add(
			fn("zero", 0, 64), fn("one", 1, 64), fn("minus1", top, 64), fn("minus2", top-1, 64),
			fn("empty", 0x1000, 0), sub(name("backward"), low(0x1000), addrAt(atHighPC, 0xf00)),
			fn("alive", 0x2000, 4), fn("addend", 0x40, 8), fn("endless", 0x8000, 0x2000),
			fn("does not reach the end", top-1, 1))
		return one(u)
	}
	check(t, b(), Options{}, `
		alive [{2000 2004}]
		addend [{40 48}]
		endless [{8000 a000}]
		dead 7`)
	check(t, b(), Options{Text: textAt}, "alive [{2000 2004}]\ndead 9")

	// Where code does begin at 0, as in modules, only -1 and -2 are dropped.
	check(t, b(), Options{Text: []addr.Range{{Start: 0, End: 0x9000}}}, `
		zero [{0 40}]
		one [{1 41}]
		alive [{2000 2004}]
		addend [{40 48}]
		dead 6`)
}

func TestTombstonesIn32Bit(t *testing.T) {
	u := cu(4)
	u.AddrSize = 4
	u.Root.Add(fn("dropped", 0xffffffff, 64), fn("alive", 0x2000, 4),
		fn("does not reach the end", 0xfffffffe, 1))
	check(t, one(u), Options{}, "alive [{2000 2004}]\ndead 2")
}

// In a unit that is dropped as a whole, range lists are relative to its tombstone: their ranges
// are not addresses.
func TestRangesOfDroppedUnits(t *testing.T) {
	for _, base := range []uint64{0, 1, 1<<64 - 1, 1<<64 - 2} {
		b := one()
		b.Section(".debug_ranges").U64(0x40).U64(0x50).U64(0).U64(0)
		lists := b.Section(".debug_rnglists")
		lists.U32(0).U16(5).U8(8, 0).U32(0)
		lists.U8(rleOffsetPair).ULEB(0x40, 0x50).U8(rleBaseAddress).U64(base).
			U8(rleOffsetPair).ULEB(0x60, 0x70).U8(rleEndOfList)
		old, now := cu(4, low(base), length(0x100)), cu(5, low(base), length(0x100))
		old.Root.Add(sub(name("old"), secOff(atRanges, 0)))
		now.Root.Add(sub(name("now"), secOff(atRanges, 12)))
		b.Units = []*dwarfbuild.Unit{old, now}
		check(t, b, Options{}, "dead 1\ndead 1")
	}
}

// A function with a cold part has several ranges, as lists of .debug_ranges: with the unit's base,
// with a base of their own, with GNU ld's marks of dropped code.
func TestRanges4(t *testing.T) {
	const top = 1<<64 - 1
	b := one()
	lists := b.Section(".debug_ranges")
	u := cu(4, addrAt(atLowPC, 0x1000))
	list := func(name string, words ...uint64) {
		u.Root.Add(sub(str(atName, name), secOff(atRanges, uint64(len(lists.B)))))
		for _, w := range append(words, 0, 0) {
			lists.U64(w)
		}
	}
	list("cold", 0x10, 0x20, 0x2000, 0x2010)
	list("based", top, 0x4000, 0, 8, 0x10, 0x18)
	list("absolute", top, 0, 0x5000, 0x5008)
	list("gone", top, top-1, 4, 8)
	list("empty", 4, 4, 0x30, 0x38)
	list("none")
	b.Units = []*dwarfbuild.Unit{u}
	check(t, b, Options{}, `
		cold [{1010 1020} {3000 3010}]
		based [{4000 4008} {4010 4018}]
		absolute [{5000 5008}]
		empty [{1030 1038}]
		dead 2`)
}

func TestRanges5(t *testing.T) {
	b := one()
	lists := b.Section(".debug_rnglists")
	lists.U32(0).U16(5).U8(8, 0).U32(2)
	const base = 12
	lists.U32(8).U32(8 + 4) // offsets of two lists from base
	lists.U8(rleOffsetPair).ULEB(0x10, 0x20).U8(rleEndOfList)
	lists.U8(rleBaseAddressx).ULEB(1).U8(rleOffsetPair).ULEB(0, 8)
	lists.U8(rleStartxEndx).ULEB(0, 1)
	lists.U8(rleStartxLength).ULEB(1, 0x20)
	lists.U8(rleBaseAddress).U64(0x6000).U8(rleOffsetPair).ULEB(1, 2)
	lists.U8(rleStartEnd).U64(0x7000).U64(0x7004)
	lists.U8(rleStartLength).U64(0x7100).ULEB(0x10)
	lists.U8(rleBaseAddressx).ULEB(2).U8(rleOffsetPair).ULEB(0x40, 0x80) // dropped
	lists.U8(rleEndOfList)
	addrs := b.Section(".debug_addr")
	addrs.U32(0).U16(5).U8(8, 0).U64(0x3000).U64(0x3100).U64(0)
	u := cu(5, addrAt(atLowPC, 0x1000), secOff(atAddrBase, 8), secOff(atRnglistsBase, base))
	u.Root.Add(
		sub(name("first"), attr{Attr: atRanges, Form: formRnglistx, Val: 0}),
		sub(name("second"), attr{Attr: atRanges, Form: formRnglistx, Val: 1}),
		sub(name("direct"), secOff(atRanges, base+8)),
		sub(name("beyond"), attr{Attr: atRanges, Form: formRnglistx, Val: 1 << 30}),
		sub(name("indexed"), attr{Attr: atLowPC, Form: formAddrx, Val: 1}, length(4)),
		sub(name("indexed1"), attr{Attr: atLowPC, Form: formAddrx1, Val: 0},
			attr{Attr: atHighPC, Form: formAddrx, Val: 1}),
	)
	b.Units = []*dwarfbuild.Unit{u}
	check(t, b, Options{}, `
		first [{1010 1020}]
		second [{3100 3108} {3000 3100} {3100 3120} {6001 6002} {7000 7004} {7100 7110}]
		direct [{1010 1020}]
		indexed [{3100 3104}]
		indexed1 [{3000 3100}]
		dead 1
		problem .debug_rnglists: offset 0x40000000: range list index is beyond the table`)
}

// Call sites in every form that producers use, and DWARF 2 without any.
func TestCallSiteForms(t *testing.T) {
	b := one()
	u := cu(5, secOff(atStmtList, b.Line(dwarfbuild.LineTable{
		Version: 5, Dirs: []string{"/src"},
		Files: []dwarfbuild.LineFile{{Name: "zero.c"}, {Name: "one.c"}},
	})))
	a := abstract("a")
	f := fn("main", 0x1000, 0x100)
	for i, form := range []uint16{formImplicitConst, formData1, formData2, formData4, formUdata,
		formSdata} {
		f.Add(inl(a, low(0x1000+uint64(i)), length(1), attr{Attr: atCallFile, Form: form, Val: 1},
			attr{Attr: atCallLine, Form: form, Val: 5 + i}))
	}
	f.Add(inl(a, low(0x1010), length(1)))
	f.Add(inl(a, low(0x1011), length(1), udata(atCallFile, 99), udata(atCallLine, 1<<40)))
	f.Add(inl(a, low(0x1012), length(1), udata(atCallFile, 0),
		attr{Attr: atCallLine, Form: formIndirect,
			Val: dwarfbuild.Indirect{Form: formData2, Val: 77}}))
	u.Root.Add(a, f)
	b.Units = []*dwarfbuild.Unit{u}
	check(t, b, Options{}, `
		main [{1000 1100}]
		a [{1000 1001}] call /src/one.c:5:0
		a [{1001 1002}] call /src/one.c:6:0
		a [{1002 1003}] call /src/one.c:7:0
		a [{1003 1004}] call /src/one.c:8:0
		a [{1004 1005}] call /src/one.c:9:0
		a [{1005 1006}] call /src/one.c:10:0
		a [{1010 1011}] call ?:0:0
		a [{1011 1012}] call ?:0:0
		a [{1012 1013}] call /src/zero.c:77:0`)
}

// Calls that kept no code of their own are listed only for the calls within them.
func TestInlinedCallsWithoutCode(t *testing.T) {
	a, c := abstract("a"), abstract("c")
	block := func(kids ...*die) *die { return dwarfbuild.D(tagLexicalBlock).Add(kids...) }
	u := cu(4)
	u.Root.Add(a, c, fn("main", 0x1000, 64).Add(
		inl(a),
		inl(a).Add(block(inl(c))),
		inl(a).Add(block(inl(c), block()), inl(c, low(0x1010), length(4))),
		inl(c, low(0x1020), length(4))))
	check(t, one(u), Options{}, `
		main [{1000 1040}]
		a [] call ?:0:0
		c [{1010 1014}] call ?:0:0
		c [{1020 1024}] call ?:0:0`)
}

// Functions hide in namespaces, in local types (gcc puts lambdas there), in functions (GNU C, Ada,
// Go's closures not), and in any type where a language does so. Each keeps its own inlined calls.
func TestWhereFunctionsHide(t *testing.T) {
	sib := attr{Attr: atSibling, Form: formRef4, Val: dwarfbuild.Sibling{}}
	a := abstract("a")
	at := uint64(0x1000)
	f := func(n string, kids ...*die) *die {
		at += 0x100
		return fn(n, at, 0x10).Add(append(kids, inl(a, low(at), length(1)))...)
	}
	class := func(kids ...*die) *die { return dwarfbuild.D(tagStructureType, sib).Add(kids...) }
	for _, lang := range []uint64{LangCpp14, LangRust} {
		at = 0x1000
		u := cu(4)
		u.Root.Attrs[2].Val = lang
		local := abstract("local")
		local.Attrs = append(local.Attrs, sib)
		u.Root.Add(a, class(f("in_type")),
			dwarfbuild.D(tagNamespace, sib).Add(f("in_namespace")),
			local.Add(class(f("in_abstract"))),
			f("outer", class(f("lambda")), f("nested"), inl(a, low(0x1801), length(1))))
		// The arguments of outer were placed before it: its own address is the last.
		want := `
			(anonymous namespace)::in_namespace [{1200 1210}]
			a [{1200 1201}] call ?:0:0
			local()::(anonymous struct)::in_abstract [{1300 1310}]
			a [{1300 1301}] call ?:0:0
			outer [{1600 1610}]
			a [{1801 1802}] call ?:0:0
			a [{1600 1601}] call ?:0:0
			outer()::(anonymous struct)::lambda [{1400 1410}]
			a [{1400 1401}] call ?:0:0
			outer()::nested [{1500 1510}]
			a [{1500 1501}] call ?:0:0`
		if lang == LangRust {
			want = "(anonymous struct)::in_type [{1100 1110}]\na [{1100 1101}] call ?:0:0" + want
		}
		check(t, one(u), Options{}, want)
	}
}

// Inlined calls keep their function where another one begins between them: a direct child, as of
// OpenMP by gcc, GNU C and Ada, or one within a block, an inlined call or a type.
func TestInlinesBehindNestedFunctions(t *testing.T) {
	a, b := abstract("a"), abstract("b")
	tag := func(tag uint16, kids ...*die) *die { return dwarfbuild.D(tag).Add(kids...) }
	in := func(a *die, at uint64) *die { return inl(a, low(at), length(4)) }
	for _, c := range []struct {
		name  string
		kids  func() []*die // of outer, which has code from 1000 to 1100
		outer string        // its inlined calls
		rest  string        // the functions within, with theirs
	}{
		{"direct child", func() []*die {
			return []*die{fn("f", 0x2000, 16), in(a, 0x1000)}
		}, "a [{1000 1004}] call ?:0:0", "f [{2000 2010}]"},
		{"before and behind", func() []*die {
			return []*die{in(b, 0x1020), fn("f", 0x2000, 16).Add(in(b, 0x2000)), in(a, 0x1000)}
		}, "b [{1020 1024}] call ?:0:0\na [{1000 1004}] call ?:0:0",
			"f [{2000 2010}]\nb [{2000 2004}] call ?:0:0"},
		{"in a block", func() []*die {
			return []*die{tag(tagLexicalBlock, fn("f", 0x2000, 16), in(b, 0x1020)), in(a, 0x1000)}
		}, "b [{1020 1024}] call ?:0:0\na [{1000 1004}] call ?:0:0", "f [{2000 2010}]"},
		{"in an inlined call", func() []*die {
			return []*die{in(a, 0x1000).Add(fn("f", 0x2000, 16), in(b, 0x1002))}
		}, "a [{1000 1004}] call ?:0:0\nb [{1002 1006}] call ?:0:0", "f [{2000 2010}]"},
		{"in a call without code", func() []*die {
			return []*die{inl(a).Add(fn("f", 0x2000, 16), in(b, 0x1002))}
		}, "a [] call ?:0:0\nb [{1002 1006}] call ?:0:0", "f [{2000 2010}]"},
		{"in a type", func() []*die {
			return []*die{tag(tagStructureType, fn("f", 0x2000, 16)), in(a, 0x1000)}
		}, "a [{1000 1004}] call ?:0:0", "f [{2000 2010}]"},
		{"two deep", func() []*die {
			return []*die{
				fn("f", 0x2000, 16).Add(fn("g", 0x3000, 16), in(b, 0x2000)), in(a, 0x1000),
			}
		}, "a [{1000 1004}] call ?:0:0", "f [{2000 2010}]\nb [{2000 2004}] call ?:0:0\ng [{3000 3010}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := cu(4)
			u.Root.Add(a, b, fn("outer", 0x1000, 0x100).Add(c.kids()...), fn("last", 0x4000, 16))
			check(t, one(u), Options{},
				"outer [{1000 1100}]\n"+c.outer+"\n"+c.rest+"\nlast [{4000 4010}]")
		})
	}
}

// GHC describes functions of Haskell as their entries, and the rest of their code as blocks, which lie
// outside of them. In other languages they do not.
func TestBlocksOfHaskell(t *testing.T) {
	block := func(at, size uint64, kids ...*die) *die {
		return dwarfbuild.D(tagLexicalBlock, low(at), length(size)).Add(kids...)
	}
	for lang, want := range map[uint64]string{
		LangHaskell: "f [{1000 1009} {1009 1020} {1030 1040} {900 910}]\ng [{2000 2010}]",
		LangC:       "f [{1000 1009}]\ng [{2000 2010}]",
	} {
		u := cu(4)
		u.Root.Attrs = append(u.Root.Attrs, attr{Attr: atLanguage, Form: formData1, Val: lang})
		u.Root.Add(block(0x3000, 4), fn("f", 0x1000, 9).Add(block(0x1009, 0x17, block(0x1030, 0x10)), block(0x1001, 2),
			block(0x900, 0x10)), fn("g", 0x2000, 0x10))
		check(t, one(u), Options{}, want)
	}
}

// Duplicates that COMDAT folding leaves are visible, each with its own offset.
func TestCOMDATDuplicates(t *testing.T) {
	u, v := cu(4), cu(4)
	u.Root.Add(fn("f", 0x1000, 16))
	v.Root.Add(fn("f", 0x1000, 16))
	b := one(u, v)
	d := New(built(b.Sections(), false), Options{})
	seen := make(map[uint64]bool)
	if err := d.Walk(t.Context(), 2, func(u *Unit) error {
		for _, f := range u.Functions {
			seen[f.Offset] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 {
		t.Errorf("%d functions seen, want 2", len(seen))
	}
}

// Codes of abbreviations need not be numbered from 1, tables may be shared, and strings come in
// many forms.
func TestAbbrevsAndStrings(t *testing.T) {
	shared := &dwarfbuild.Abbrevs{Gap: 1000}
	u, v := cu(5, secOff(atStrOffsetsBase, 8)), cu(5, secOff(atStrOffsetsBase, 8))
	u.Abbrevs, v.Abbrevs = shared, shared
	at := uint64(0x1000)
	for _, form := range []uint16{formString, formStrp, formLineStrp, formStrx, formStrx1,
		formStrx2, formStrx3, formStrx4} {
		at += 16
		v.Root.Add(sub(attr{Attr: atName, Form: form, Val: "f"}, low(at), length(4),
			attr{Attr: 0x77, Form: formBlock1, Val: []byte("xx")},
			attr{Attr: 0x78, Form: formExprloc, Val: []byte("xyz")},
			attr{Attr: 0x79, Form: formData16, Val: 5},
			attr{Attr: atMIPSLinkageName, Form: form, Val: "_f"}))
	}
	check(t, one(u, v), Options{}, `
		f=_f [{1010 1014}]
		f=_f [{1020 1024}]
		f=_f [{1030 1034}]
		f=_f [{1040 1044}]
		f=_f [{1050 1054}]
		f=_f [{1060 1064}]
		f=_f [{1070 1074}]
		f=_f [{1080 1084}]`)
}

// Type units are passed over: they hold no code.
func TestTypeUnits(t *testing.T) {
	b := one()
	typ := cu(5)
	typ.Kind, typ.ID = utSplitType, 7
	typ.Root.Add(fn("none", 0x1000, 4))
	u := cu(5)
	u.Root.Add(fn("f", 0x2000, 4))
	b.Units = append(b.Units, typ, u)
	d := New(built(b.Sections(), false), Options{})
	checkData(t, d, "f [{2000 2004}]")
	if len(d.units.list) != 1 {
		t.Errorf("%d units kept", len(d.units.list))
	}
}

// perf inject --jit ends the entries of a unit by the unit's end, without the entry of code 0. A list
// of entries further inside, or an entry that is cut, is damage.
func TestUnendedEntries(t *testing.T) {
	b := one()
	u := cu(2)
	u.Root.Add(sub(name("f"), addrAt(atLowPC, 0x1000), addrAt(atHighPC, 0x1010)))
	inner := sub(name("g"), addrAt(atLowPC, 0x1010), addrAt(atHighPC, 0x1020))
	inner.Add(dwarfbuild.D(tagLexicalBlock, addrAt(atLowPC, 0x1012), addrAt(atHighPC, 0x1014)))
	u.Root.Add(inner)
	b.Units = []*dwarfbuild.Unit{u}
	whole := b.Sections()
	for _, tt := range []struct {
		name string
		cut  int // bytes at the end of the unit
		want string
	}{
		{name: "ended"},
		{name: "the unit's list", cut: 1},
		{name: "the function's list", cut: 2, want: "problem .debug_info: offset 0x4d: entries of the unit do not end"},
		{name: "an entry", cut: 3, want: "problem .debug_info: offset 0x3c: entry does not end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			info := slices.Clone(whole[".debug_info"])
			info = info[:len(info)-tt.cut]
			binary.LittleEndian.PutUint32(info, uint32(len(info)-4))
			secs := maps.Clone(whole)
			secs[".debug_info"] = info
			checkData(t, New(built(secs, false), Options{}),
				"f [{1000 1010}]\ng [{1010 1020}]\n"+tt.want)
		})
	}
}
