package btf

import (
	"slices"
	"testing"
)

// listDefs are struct list { struct list *next; int value; } and struct other *.
func listDefs(more ...Def) []Def {
	return append([]Def{
		{Kind: KindInt, Name: "int", Size: 4, Int: Int{Bits: 32, Signed: true}},                                                  // 1
		{Kind: KindStruct, Name: "list", Size: 16, Items: []DefItem{{Name: "next", Ref: 3}, {Name: "value", Ref: 1, Value: 64}}}, // 2
		{Kind: KindPtr, Ref: 2},        // 3
		{Kind: KindPtr, Ref: 5},        // 4
		{Kind: KindFwd, Name: "other"}, // 5
	}, more...)
}

func declared(t *testing.T, types *Types, id ID) string {
	t.Helper()
	b, err := types.AppendC(nil, id, &COptions{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Types of a second unit that are equal are those of the first one; a declared structure is the
// defined one of another unit.
func TestBuilderJoins(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := NewBuilder(big, 8)
		first := b.Add(listDefs())
		second := b.Add(listDefs())
		if !slices.Equal(first, second) {
			t.Errorf("equal units got the IDs %v and %v", first, second)
		}
		third := b.Add([]Def{
			{Kind: KindStruct, Name: "other", Size: 8, Items: []DefItem{{Name: "l", Ref: 2}}},
			{Kind: KindPtr, Ref: 3},
			{Kind: KindStruct, Name: "list", Size: 16, Items: []DefItem{{Name: "next", Ref: 2}, {Name: "value", Ref: 4, Value: 64}}},
			{Kind: KindInt, Name: "int", Size: 4, Int: Int{Bits: 32, Signed: true}},
			{Kind: KindPtr, Ref: 1},
		})
		types, final, err := b.Types("test")
		if err != nil {
			t.Fatal(err)
		}
		if final(third[3]) != final(first[2]) || final(third[5]) != final(first[4]) {
			t.Errorf("big %v: list %d and %d, other* %d and %d", big, final(third[3]), final(first[2]), final(third[5]), final(first[4]))
		}
		if _, ok := types.ByName(KindFwd, "other"); ok {
			t.Error("a declaration is left")
		}
		if got, want := declared(t, types, final(first[2])), "struct list {\n\tstruct list *next;\n\tint value;\n};\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if types.Len() != 7 { // void, index, int, list, list*, other, other*
			t.Errorf("%d types", types.Len())
		}
	}
}

// Types of one name that differ, directly or in what they refer to, are all kept, each with its own.
func TestBuilderKeepsApart(t *testing.T) {
	unit := func(member string) []Def {
		return []Def{
			{Kind: KindStruct, Name: "outer", Size: 8, Items: []DefItem{{Name: "in", Ref: 2}}},
			{Kind: KindPtr, Ref: 3},
			{Kind: KindStruct, Name: "inner", Size: 8, Items: []DefItem{{Name: member, Ref: 4}}},
			{Kind: KindPtr, Ref: 1},
		}
	}
	b := NewBuilder(false, 8)
	one, two, again := b.Add(unit("a")), b.Add(unit("b")), b.Add(unit("b"))
	fwd := b.Add([]Def{{Kind: KindFwd, Name: "inner"}})
	if !slices.Equal(two, again) {
		t.Errorf("IDs %v and %v", two, again)
	}
	types, final, err := b.Types("test")
	if err != nil {
		t.Fatal(err)
	}
	for i, ids := range [][]ID{one, two} {
		in := types.Strip(types.Ref(member(types, final(ids[1]), 0).Type))
		if got := member(types, in, 0).Name; got != []string{"a", "b"}[i] {
			t.Errorf("outer %d: inner has member %s", i, got)
		}
	}
	if k := types.Kind(final(fwd[1])); k != KindFwd {
		t.Errorf("an ambiguous declaration became %v", k)
	}
}

func member(t *Types, id ID, n int) Member {
	for i, m := range t.Members(id) {
		if i == n {
			return m
		}
	}
	return Member{}
}

// A structure that was declared first, within another one, is the definition that an equal one has.
func TestBuilderBinds(t *testing.T) {
	b := NewBuilder(false, 8)
	unit := func(inner Def) []Def {
		return []Def{{Kind: KindStruct, Name: "outer", Size: 8, Items: []DefItem{{Name: "in", Ref: 2}}},
			{Kind: KindPtr, Ref: 3}, inner}
	}
	one := b.Add(unit(Def{Kind: KindFwd, Name: "inner"}))
	two := b.Add(unit(Def{Kind: KindStruct, Name: "inner", Size: 4}))
	three := b.Add(unit(Def{Kind: KindStruct, Name: "inner", Size: 8}))
	_, final, err := b.Types("test")
	if err != nil {
		t.Fatal(err)
	}
	if final(one[3]) != final(two[3]) || final(one[1]) != final(two[1]) {
		t.Error("the declaration is not bound to the first definition")
	}
	if final(three[3]) == final(two[3]) || final(three[1]) == final(two[1]) {
		t.Error("different definitions were joined")
	}
}

// Circles of references, and chains of them, end.
func TestBuilderHostile(t *testing.T) {
	b := NewBuilder(false, 8)
	const n = 200000
	chain := make([]Def, n)
	for i := range chain {
		chain[i] = Def{Kind: KindPtr, Ref: (i+1)%n + 1}
	}
	for range 2 {
		b.Add(chain)
	}
	b.Add([]Def{{Kind: KindPtr, Ref: 99}, {Kind: KindConst, Ref: -1}})
	if _, _, err := b.Types("test"); err != nil {
		t.Fatal(err)
	}
}
