package dwarf

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"symbolize/fixtures/dwarfbuild"
	"symbolize/fixtures/sweep"
)

func TestOriginCircles(t *testing.T) {
	u := cu(4)
	a, c := sub(name("")), sub()
	a.Attrs = []attr{origin(c)}
	c.Attrs = []attr{origin(a)}
	self := sub(low(0x2000), length(4))
	self.Attrs = append(self.Attrs, origin(self))
	u.Root.Add(a, c, sub(origin(a), low(0x1000), length(4)), self)
	d := New(built(one(u).Sections(), false), Options{})
	got := dump(t, d)
	if !strings.Contains(got, "? [{1000 1004}]\n? [{2000 2004}]") ||
		strings.Count(got, "abstract origins go round in a circle") != 2 {
		t.Errorf("got %s", got)
	}
}

// A sibling that points backward must not lead round in a circle.
func TestSiblingsBackward(t *testing.T) {
	for _, to := range []uint64{0, 11, 12, 1 << 31} {
		u := cu(4)
		u.Root.Add(fn("f", 0x1000, 4), dwarfbuild.D(tagStructureType,
			attr{Attr: atSibling, Form: formRef4, Val: to}).Add(fn("g", 0x2000, 4)),
			fn("h", 0x3000, 4))
		d := New(built(one(u).Sections(), false), Options{})
		got := dump(t, d)
		if !strings.Contains(got, "f [{1000 1004}]") ||
			!strings.Contains(got, "sibling lies outside the unit or behind") {
			t.Errorf("sibling %d: got %s", to, got)
		}
	}
}

func TestDepth(t *testing.T) {
	u := cu(4)
	u.Root.Add(fn("f", 0x1000, 4))
	at := u.Root
	for range maxDepth + 1 {
		kid := dwarfbuild.D(tagLexicalBlock)
		at.Add(kid)
		at = kid
	}
	d := New(built(one(u).Sections(), false), Options{})
	if got := dump(t, d); !strings.Contains(got, "f [{1000 1004}]") ||
		!strings.Contains(got, "nested too deep") {
		t.Errorf("got %s", got)
	}
}

// A damaged unit loses the entries after the damage; other units lose nothing.
func TestDamagedUnitAlone(t *testing.T) {
	build := func() (*dwarfbuild.Builder, *die) {
		u, v, x := cu(4), cu(4), cu(4)
		bad := dwarfbuild.D(tagLexicalBlock, attr{Attr: 0x77, Form: formBlock4, Val: []byte("x")})
		u.Root.Add(fn("a", 0x1000, 4))
		v.Root.Add(fn("b", 0x2000, 4), bad, fn("lost", 0x2100, 4))
		x.Root.Add(fn("c", 0x3000, 4))
		return one(u, v, x), bad
	}
	b, bad := build()
	secs := b.Sections()
	copy(secs[".debug_info"][bad.Offset+1:], "\xff\xff\xff\x7f")
	got := dump(t, New(built(secs, false), Options{}))
	for _, want := range []string{"a [", "b [", "c [", "entry does not end"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	b, bad = build()
	secs = b.Sections()
	secs[".debug_info"][bad.Offset] = 0x55
	got = dump(t, New(built(secs, false), Options{}))
	for _, want := range []string{"a [", "b [", "c [", "entry without abbreviation"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

// Many small units that refer to one long range list would cost quadratic time.
func TestRangeListsOverlap(t *testing.T) {
	b := one()
	lists := b.Section(".debug_ranges")
	for i := range uint64(50_000) {
		lists.U64(0x1000 + 2*i).U64(0x1001 + 2*i)
	}
	lists.U64(0).U64(0)
	shared := &dwarfbuild.Abbrevs{}
	for range 50 {
		u := cu(4)
		u.Abbrevs = shared
		u.Root.Add(sub(secOff(atRanges, 0)))
		b.Units = append(b.Units, u)
	}
	total := 0
	d := New(built(b.Sections(), false), Options{})
	if err := d.Walk(t.Context(), 1, func(u *Unit) error {
		if u.Lost == 0 {
			t.Error("no problem in a unit")
		}
		for _, f := range u.Functions {
			total += len(f.Ranges)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if most := 50 * (rangeBudgetFloor + 200*rangeBudgetFactor) / 16; total > most {
		t.Errorf("%d ranges kept, at most %d expected", total, most)
	}
}

// So would names that are suffixes of one long string.
func TestStringsOverlap(t *testing.T) {
	b := one()
	b.Section(".debug_str").Str(strings.Repeat("x", 200_000))
	u := cu(4)
	for i := range uint64(1000) {
		u.Root.Add(sub(attr{Attr: atName, Form: formStrp, Val: i}, low(0x1000+i), length(1)))
	}
	b.Units = append(b.Units, u)
	d := New(built(b.Sections(), false), Options{})
	if err := d.Walk(t.Context(), 1, func(u *Unit) error {
		total := 0
		for _, s := range u.Subs {
			total += len(s.Name)
		}
		if total > 4<<20 || u.Lost == 0 || len(u.Problems) != maxProblems {
			t.Errorf("%d bytes of names, %d problems", total, u.Lost)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// And abbreviation tables that begin within each other.
func TestAbbrevTablesOverlap(t *testing.T) {
	var abbrev, info dwarfbuild.Buf
	const n = 20_000
	for range n {
		abbrev.ULEB(1, tagSubprogram).U8(0).ULEB(0, 0)
	}
	for i := range uint32(n) {
		info.U32(8).U16(4).U32(5 * i).U8(8).U8(1)
	}
	d := New(Sections{Info: info.B, Abbrev: abbrev.B}, Options{})
	overlap := 0
	if err := d.Walk(t.Context(), 1, func(u *Unit) error {
		for _, p := range u.Problems {
			if strings.Contains(p.Reason, "overlap") {
				overlap++
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if overlap < n-10 {
		t.Errorf("%d units refused, want nearly all of %d", overlap, n)
	}
}

// sample is a small file with a bit of everything, for sweeps and as a fuzz seed.
func sample(version uint16) Sections {
	b := one()
	line := dwarfbuild.LineTable{Version: version, Dirs: []string{"/src", "inc"}, Files: twoFiles,
		Program: func(p *dwarfbuild.Prog) {
			p.Set(0x1000).Row(0, 9).Row(4, 1).File(1).Row(4, -3).End(8).
				Set(0x1800).U8(13+5+14*2+1, 8, 9).U16(0x100)
			p.End(4)
		}}
	u := cu(version, secOff(atStmtList, b.Line(line)), secOff(atStrOffsetsBase, 8),
		secOff(atAddrBase, 8), secOff(atRnglistsBase, 12), addrAt(atLowPC, 0x1000))
	ranges := secOff(atRanges, 0)
	if version >= 5 {
		ranges = attr{Attr: atRanges, Form: formRnglistx, Val: 0}
		b.Section(".debug_rnglists").U32(0).U16(5).U8(8, 0).U32(1).U32(4).
			U8(rleOffsetPair).ULEB(0, 0x20).U8(rleStartxLength).ULEB(0, 4).U8(0)
		b.Section(".debug_addr").U32(0).U16(5).U8(8, 0).U64(0x3000).U64(0x3100)
	} else {
		b.Section(".debug_ranges").U64(0).U64(0x20).U64(0x2000).U64(0x2004).U64(0).U64(0)
	}
	decl := sub(name("f"), attr{Attr: atLinkageName, Form: formStrp, Val: "_ZN1A1fEv"},
		udata(atDeclFile, 1), attr{Attr: atDeclaration, Form: formFlagPresent})
	abs := sub(attr{Attr: atSpecification, Form: formRef4, Val: decl}, udata(atDeclLine, 20))
	u.Root.Add(dwarfbuild.D(tagClassType, name("A"),
		attr{Attr: atSibling, Form: formRef4, Val: dwarfbuild.Sibling{}}).Add(decl), abs,
		sub(name("main"), ranges).Add(dwarfbuild.D(tagLexicalBlock).Add(
			inl(abs, low(0x1004), length(8), udata(atCallLine, 3), udata(atCallFile, 1)))))
	v := cu(version)
	v.Root.Add(sub(attr{Attr: atAbstractOrigin, Form: formRefAddr, Val: abs}, low(0x2000),
		length(4)))
	b.Units = []*dwarfbuild.Unit{u, v}
	return built(b.Sections(), false)
}

// walkAll decodes everything and follows every reference in the result.
func walkAll(t testing.TB, s Sections) {
	t.Helper()
	d := New(s, Options{})
	size := 0
	for _, b := range s.wanted(true) {
		size += len(*b)
	}
	var out bytes.Buffer
	err := d.Walk(t.Context(), 2, func(u *Unit) error {
		kept := 0
		for _, f := range u.Functions {
			kept += len(f.Ranges)
			for i, in := range f.Inlines {
				kept += len(in.Ranges)
				if in.Parent >= int32(i) || in.Sub >= int32(len(u.Subs)) {
					t.Fatalf("inlined call %d has parent %d, sub %d", i, in.Parent, in.Sub)
				}
			}
		}
		if limit := rangeBudgetFloor + rangeBudgetFactor*size; kept > limit {
			t.Fatalf("%d ranges kept from %d bytes", kept, size)
		}
		for _, s := range u.Sequences {
			if len(s.Rows) == 0 || s.Rows[0].Addr != s.Start ||
				s.End <= s.Rows[len(s.Rows)-1].Addr {
				t.Fatalf("sequence %x of rows %v", s.Range, s.Rows)
			}
			for i, r := range s.Rows {
				if i > 0 && r.Addr <= s.Rows[i-1].Addr {
					t.Fatalf("rows go down: %v", s.Rows)
				}
			}
		}
		var b strings.Builder
		dumpUnit(&b, u)
		out.WriteString(b.String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTruncationSweep(t *testing.T) {
	for version := uint16(2); version <= 5; version++ {
		whole := sample(version)
		for name := range whole.wanted(true) {
			for n := range len(*whole.wanted(true)[name]) {
				cut := whole
				sec := cut.wanted(true)[name]
				*sec = (*sec)[:n:n]
				walkAll(t, cut)
			}
		}
	}
}

func TestBitFlipSweep(t *testing.T) {
	rnd := sweep.Rand(t)
	for version := uint16(2); version <= 5; version++ {
		whole := sample(version)
		for name := range whole.wanted(true) {
			sec := *whole.wanted(true)[name]
			for i := range sweep.Of(rnd, 8*len(sec), 200) {
				sec[i/8] ^= 1 << (i % 8)
				walkAll(t, whole)
				sec[i/8] ^= 1 << (i % 8)
			}
		}
	}
}

func TestWalkStops(t *testing.T) {
	u, v, x := cu(4), cu(4), cu(4)
	s := built(one(u, v, x).Sections(), false)
	stop := errors.New("enough")
	for _, workers := range []int{1, 2} {
		n := 0
		err := New(s, Options{}).Walk(t.Context(), workers, func(*Unit) error {
			n++
			return stop
		})
		if !errors.Is(err, stop) || n != 1 {
			t.Errorf("%d workers: %v after %d units", workers, err, n)
		}
	}
}

func TestTrailingGarbage(t *testing.T) {
	u := cu(4)
	u.Root.Add(fn("f", 0x1000, 4))
	s := built(one(u).Sections(), false)
	s.Info = append(s.Info, 0, 0, 0, 0, 0xff, 0, 0, 0, 1)
	checkData(t, New(s, Options{}), `f [{1000 1004}]
		problem .debug_info: offset 0x2a: unit is longer than the section`)
}
