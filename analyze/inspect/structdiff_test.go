package inspect

import (
	"maps"
	"strings"
	"testing"

	"symbolize/ingest/object/btf"
)

// built makes BTF with types; the first has a name.
func built(t *testing.T, defs ...btf.Def) *btf.Types {
	t.Helper()
	b := btf.NewBuilder(false, 8)
	b.Add(defs)
	types, _, err := b.Types("test")
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func TestDiffStructs(t *testing.T) {
	integer := btf.Def{Kind: btf.KindInt, Name: "int", Size: 4, Int: btf.Int{Bits: 32, Signed: true}}
	long := btf.Def{Kind: btf.KindInt, Name: "long", Size: 8, Int: btf.Int{Bits: 64, Signed: true}}
	inner := func(ref int) btf.Def {
		return btf.Def{Kind: btf.KindUnion, Size: 8, Items: []btf.DefItem{{Name: "x", Ref: ref}, {Name: "y", Ref: ref}}}
	}
	base := built(t, btf.Def{Kind: btf.KindStruct, Name: "s", Size: 24, Items: []btf.DefItem{
		{Name: "id", Ref: 2}, {Name: "gone", Ref: 2, Value: 32}, {Ref: 3, Value: 64},
		{Name: "low", Ref: 2, Value: 128, Bits: 3}}}, integer, inner(2))
	now := built(t, btf.Def{Kind: btf.KindStruct, Name: "s", Size: 32, Items: []btf.DefItem{
		{Name: "id", Ref: 4}, {Ref: 3, Value: 64}, {Name: "added", Ref: 2, Value: 128},
		{Name: "low", Ref: 2, Value: 160, Bits: 4}}}, integer, inner(2), long)
	var sides []StructOf
	for _, types := range []*btf.Types{base, now} {
		s, ok := FindStruct("a.o", []BTF{{".BTF", types}}, "struct s")
		if !ok {
			t.Fatal("no structure")
		}
		sides = append(sides, s)
	}
	var b strings.Builder
	if err := DiffStructs(sides[0], sides[1]).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `struct s
  base a.o
  new  a.o

  size               24     32  +8
  cachelines          1      1
  members             5      5
  holes               2      2
  bytes in holes     11     15  +4

      base   size      new   size               member
         0      4        0      8  size, type   int → long id
         4      4        –      –  removed      int gone
         8      4        8      4               int x
         8      4        8      4               int y
         –      –       16      4  added        int added
      16:0 3 bits     20:0 4 bits  moved, size  int low
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	d := DiffStructs(sides[0], sides[1])
	d.AddSamples("cycles", []MemberSamples{{Name: "id", Of: 24, Samples: 3, Share: 30}, {Name: "id", Of: 32, Samples: 1, Share: 10},
		{Name: "gone", Of: 24, Samples: 1, Share: 10},
		{Name: "value", Offset: 16, Of: 32, Samples: 2, Share: 20},  // of a base class at "added"
		{Name: "value", Offset: 16, Of: 40, Samples: 2, Share: 20}}) // of a third build: its place says nothing
	got := map[string]float64{}
	for _, m := range d.Members {
		if m.Samples > 0 {
			got[m.Name] = m.Share
		}
	}
	if shares := map[string]float64{"id": 40, "gone": 10, "added": 20}; !maps.Equal(got, shares) {
		t.Errorf("samples: %v, want %v", got, shares)
	}
	if _, ok := FindStruct("a.o", []BTF{{".BTF", base}}, "union s"); ok {
		t.Error("a structure is found as a union")
	}
}

func TestSelectTypes(t *testing.T) {
	for _, c := range []struct {
		name string
		all  bool
		want string
	}{
		{"point", false, "point"}, {"struct point", false, "point"}, {"std::vector<int, a<b> >", false, "std::vector<int, a<b> >"},
		{"func main", true, "func main"}, {"#12", true, "#12"},
	} {
		if o := selectTypes([]string{c.name}); o.All != c.all || len(o.Types) != 1 || o.Types[0] != c.want {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
}
