package flow

import (
	"slices"
	"testing"

	"symbolize/ingest/object/btf"
)

// shelfTypes has in another blob than testTypes
//
//	struct shelf { long size; struct pair pairs[4]; struct pair *first; int count; char pool[64];
//		union { struct pair one; long number; } u; };
//
// with the struct pair of testTypes, an array of shelves, and another struct pair.
func shelfTypes(t *testing.T) (l *Layouts, shelf, shelves, other btf.ID) {
	t.Helper()
	b := btf.NewBuilder(false, 8)
	ids := b.Add([]btf.Def{
		{Kind: btf.KindInt, Name: "long int", Size: 8, Int: btf.Int{Bits: 64, Signed: true}},
		{Kind: btf.KindStruct, Name: "pair", Size: 24, Items: []btf.DefItem{{Name: "key", Ref: 1},
			{Name: "item", Ref: 3, Value: 64}, {Name: "more", Ref: 1, Value: 128}}},
		{Kind: btf.KindPtr},
		{Kind: btf.KindArray, Ref: 2, Len: 4},
		{Kind: btf.KindInt, Name: "int", Size: 4, Int: btf.Int{Bits: 32, Signed: true}},
		{Kind: btf.KindInt, Name: "char", Size: 1, Int: btf.Int{Bits: 8, Char: true}},
		{Kind: btf.KindArray, Ref: 6, Len: 64},
		{Kind: btf.KindUnion, Size: 24, Items: []btf.DefItem{{Name: "one", Ref: 2}, {Name: "number", Ref: 1}}},
		{Kind: btf.KindStruct, Name: "shelf", Size: 208, Items: []btf.DefItem{{Name: "size", Ref: 1}, {Name: "pairs", Ref: 4, Value: 64},
			{Name: "first", Ref: 3, Value: 832}, {Name: "count", Ref: 5, Value: 896}, {Name: "pool", Ref: 7, Value: 960},
			{Name: "u", Ref: 8, Value: 1472}}},
		{Kind: btf.KindArray, Ref: 9, Len: 3},
		{Kind: btf.KindStruct, Name: "pair", Size: 8, Items: []btf.DefItem{{Name: "key", Ref: 1}}},
	})
	types, final, err := b.Types("shelf")
	if err != nil {
		t.Fatal(err)
	}
	return NewLayouts(types), final(ids[9]), final(ids[10]), final(ids[11])
}

// TestCompatible compares accesses with the variables that have the recorded addresses.
func TestCompatible(t *testing.T) {
	types, id := testTypes(t)
	of := NewLayouts(types)
	l, shelf, shelves, other := shelfTypes(t)
	for _, c := range []struct {
		name     string
		access   Access
		variable btf.ID
		at       int64
		want     bool
	}{
		{name: "a member of an element", access: Access{Type: id(tPair), Offset: 8, Size: 8}, variable: shelf, at: 8 + 2*24 + 8, want: true},
		{name: "another member", access: Access{Type: id(tPair), Offset: 8, Size: 8}, variable: shelf, at: 8 + 2*24 + 16},
		{name: "an array of the variable", access: Access{Type: id(tPair), Offset: 0, Size: 8}, variable: shelves, at: 208 + 8, want: true},
		{name: "the first member of all has no such type", access: Access{Type: id(tPair), Offset: 0, Size: 8}, variable: shelf, at: 0},
		{name: "another type", access: Access{Type: id(tItem), Offset: 8, Size: 8}, variable: shelf, at: 16},
		{name: "memory for anything", access: Access{Type: id(tItem), Offset: 8, Size: 8}, variable: shelf, at: 130, want: true},
		{name: "a member of a union", access: Access{Type: id(tPair), Offset: 16, Size: 8}, variable: shelf, at: 184 + 16, want: true},
		{name: "the other member", access: Access{Type: id(tLong), Size: 8}, variable: shelf, at: 184, want: true},
		{name: "a number of another size", access: Access{Type: id(tInt), Size: 4}, variable: shelf, at: 0},
		{name: "a number", access: Access{Type: id(tInt), Size: 4}, variable: shelf, at: 112, want: true},
		{name: "a type of the same name", access: Access{Type: id(tPair), Offset: 0, Size: 8}, variable: other, at: 0},
		{name: "another element of an array within", access: Access{Type: id(tItem), Offset: 16, Size: 4}, variable: shelf, at: 112},
		{name: "the pair of two members", access: Access{Type: id(tPair), Offset: 0, Size: 16, Pair: true}, variable: shelf, at: 8, want: true},
	} {
		if got := l.Compatible(c.variable, c.at, &c.access, of); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	deep := btf.NewBuilder(false, 8) // a structure of structures: bounded
	defs := []btf.Def{{Kind: btf.KindInt, Name: "long int", Size: 8, Int: btf.Int{Bits: 64}}}
	for range 64 {
		u := btf.Def{Kind: btf.KindUnion, Size: 8}
		for range 64 {
			u.Items = append(u.Items, btf.DefItem{Ref: len(defs)})
		}
		defs = append(defs, u)
	}
	ids := deep.Add(defs)
	wide, final, err := deep.Types("deep")
	if err != nil {
		t.Fatal(err)
	}
	if !NewLayouts(wide).Compatible(final(ids[len(defs)]), 0, &Access{Type: id(tPair), Size: 8}, of) {
		t.Error("what is too large to compare is refuted")
	}
}

// TestOfVariable finds the members at addresses, where the size of the access is not known.
func TestOfVariable(t *testing.T) {
	l, shelf, shelves, _ := shelfTypes(t)
	for _, c := range []struct {
		name     string
		variable btf.ID
		at       int64
		of       string
		want     []string
	}{
		{name: "a member", variable: shelf, at: 0, of: "struct shelf", want: []string{"size"}},
		{name: "within a member", variable: shelf, at: 3, of: "struct shelf", want: []string{"size"}},
		{name: "of an element", variable: shelves, at: 2*208 + 8 + 24 + 8, of: "struct shelf", want: []string{"pairs[].item"}},
		{name: "a union", variable: shelf, at: 184, of: "struct shelf", want: []string{"u.one.key", "u.number"}},
		{name: "a hole", variable: shelf, at: 116, of: "struct shelf"},
	} {
		a := l.OfVariable(c.variable, c.at)
		var got []string
		for _, leaf := range l.Leaves(&a) {
			got = append(got, leaf.Path)
		}
		if name := l.types.TypeName(a.Type); name != c.of || !slices.Equal(got, c.want) {
			t.Errorf("%s: %s %q, want %s %q", c.name, name, got, c.of, c.want)
		}
	}
}
