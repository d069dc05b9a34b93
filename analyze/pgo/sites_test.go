package pgo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
)

// TestDiscriminators: the parts of clang's discriminators, against encodings by LLVM 22
// (DILocation::encodeDiscriminator).
func TestDiscriminators(t *testing.T) {
	for _, tt := range []struct {
		coding        Discriminators
		raw           uint32
		block, copies uint32
	}{
		{Packed, 0, 0, 1},
		{Packed, 2, 1, 1},
		{Packed, 772, 2, 3}, // unrolled three times
		{Packed, 774, 3, 3},
		{Packed, 776, 4, 3},
		{Packed, 13, 0, 3},
		{Packed, 1<<1 | 0x20<<1 | 1<<7, 33, 1}, // 14 bits: above 31
		{Plain, 772, 772, 1},
	} {
		if got := tt.coding.line(line{1<<16 + 5, tt.raw}); got != (line{5, tt.block}) || tt.coding.copies(tt.raw) != tt.copies {
			t.Errorf("%d of coding %d: %+v, %d copies, want block %d, %d copies", tt.raw, tt.coding, got,
				tt.coding.copies(tt.raw), tt.block, tt.copies)
		}
	}
}

// testUnit is a unit with the function f at 0x1000 in two parts, with inlined calls of g, and in it of h,
// and a function without a linkage name.
func testUnit() *dwarf.Unit {
	r := func(from, to addr.Addr) addr.Range { return addr.Range{Start: from, End: to} }
	return &dwarf.Unit{
		Subs: []dwarf.Sub{{Name: []byte("f"), DeclLine: 10}, {Name: []byte("g"), Linkage: []byte("_g"), DeclLine: 100},
			{Name: []byte("h"), DeclLine: 200}, {Name: []byte("a::b")}},
		Functions: []dwarf.Function{
			{Sub: 0, Ranges: []addr.Range{r(0x1000, 0x1020), r(0x2000, 0x2008)}, Inlines: []dwarf.Inline{
				{Sub: 1, Parent: dwarf.NoParent, CallLine: 12, CallDiscriminator: 2, Ranges: []addr.Range{r(0x1008, 0x1018)}},
				{Sub: 2, Parent: 0, Depth: 1, CallLine: 105, Ranges: []addr.Range{r(0x100c, 0x1010)}}}},
			{Sub: 3, Ranges: []addr.Range{r(0x3000, 0x3010)}}},
		Sequences: []dwarf.Sequence{
			{Range: r(0x2000, 0x2008), Rows: []dwarf.Row{{Addr: 0x2000, Line: 19}}},
			{Range: r(0x3000, 0x3010), Rows: []dwarf.Row{{Addr: 0x3000, Line: 1}}},
			{Range: r(0x1000, 0x1020), Rows: []dwarf.Row{{Addr: 0x1000, Line: 11}, {Addr: 0x1004, Line: 12, Discriminator: 4},
				{Addr: 0x1008, Line: 101}, {Addr: 0x100c, Line: 203}, {Addr: 0x1014, Line: 0}, {Addr: 0x1018, Line: 9}}}},
	}
}

func TestPieces(t *testing.T) {
	u := testUnit()
	var got []string
	for _, p := range newUnitCode(u).pieces(&u.Functions[0]) {
		var b strings.Builder
		for _, f := range p.site.frames {
			b.WriteString(f.call.String() + " " + f.name + " ")
		}
		got = append(got, fmt.Sprintf("%#x-%#x %s%s", p.Start, p.End, &b, p.site.line))
	}
	want := []string{"0x1000-0x1004 0 f 1", "0x1004-0x1008 0 f 2.4", "0x1008-0x100c 0 f 2.2 _g 1",
		"0x100c-0x1010 0 f 2.2 _g 5 h 3", "0x1010-0x1014 0 f 2.2 _g 103", "0x1018-0x1020 0 f 4294967295", "0x2000-0x2008 0 f 9"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLLVM: samples and branches by line.
func TestLLVM(t *testing.T) {
	trace := branch(ingest.BranchTrace, false)
	for _, tt := range []struct {
		name string
		rows []row
		want string
		lost uint64
	}{
		{name: "samples: of a line the instruction with most", rows: []row{{count: 3, stack: []ingest.LocationID{a10}},
			{count: 4, stack: []ingest.LocationID{a12}}, {count: 9, stack: []ingest.LocationID{a20}}},
			want: "f:7:1\n 1: 0\n 2.2: 0\n 9: 0\n 65535: 0\n 2.1: _g:7\n  1: 0\n  103: 4\n  5: h:0\n   3: 0\n", lost: 9},
		{name: "branches: how often the code ran", rows: []row{{trace, 3, []ingest.LocationID{a12, a00, a12}},
			{trace, 2, []ingest.LocationID{a10, a00, a20}}},
			lost: 2, want: "f:25:5\n 1: 5\n 2.2: 5\n 9: 0\n 65535: 0\n 2.1: _g:15\n  1: 5\n  103: 5 f:3\n  5: h:5\n   3: 5\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, v := testProfile(t, tt.rows...)
			sites := New(p, v, 0).sites(0, Packed)
			sites.unit(testUnit())
			var b strings.Builder
			err := sites.writeLLVM(&b)
			var lines []string
			for l := range strings.Lines(b.String()) {
				if !strings.HasPrefix(l, "#") {
					lines = append(lines, l)
				}
			}
			if got := strings.Join(lines, ""); err != nil || got != tt.want || sites.counts.stats.NoLine != tt.lost {
				t.Errorf("%v, %d without a line:\n%s\nwant %d:\n%s", err, sites.counts.stats.NoLine, got, tt.lost, tt.want)
			}
		})
	}
}
