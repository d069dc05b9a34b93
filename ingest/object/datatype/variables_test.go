package datatype

import (
	"fmt"
	"math"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarfvar"
)

// TestVariables: the types of a table have its variables, at any addresses.
func TestVariables(t *testing.T) {
	b := btf.NewBuilder(false, 8)
	ids := b.Add([]btf.Def{{Kind: btf.KindInt, Name: "int", Size: 4, Int: btf.Int{Bits: 32, Signed: true}},
		{Kind: btf.KindStruct, Name: "pair", Size: 8, Items: []btf.DefItem{{Name: "a", Ref: 1}, {Name: "b", Ref: 1, Value: 32}}}})
	types, final, err := b.Types("built")
	if err != nil {
		t.Fatal(err)
	}
	number, pair := final(ids[1]), final(ids[2])
	const high = addr.Addr(math.MaxUint32) + 0x5000
	all := []dwarfvar.Global{
		{Name: "high", Addr: high, Size: 8, Type: pair}, {Name: "first", Addr: 0x1000, Size: 4, Type: number},
		{Name: "second", Addr: 0x1004, Size: 8, Type: pair}, {Name: "alias", Addr: 0x1004, Size: 4, Type: number},
		{Name: "below", Addr: 0x800, Size: 4, Type: number}, {Name: "empty", Addr: 0x1100, Type: number},
		{Name: "local", Addr: 0x1200, Size: 4, Type: number, Local: true}, {Name: "discarded", Size: 4, Type: number}}
	for i := range addr.Addr(1 << 17) { // more than a DATASEC can have
		all = append(all, dwarfvar.Global{Name: "first", Addr: 0x10000 + 4*i, Size: 4, Type: number})
	}
	out, _, err := prune(types, nil, placedOf(all, 0x1000, false))
	if err != nil {
		t.Fatal(err)
	}
	v := VariablesOf(out)
	for _, c := range []struct {
		at   addr.Addr
		want string // name, distance from its address, type
	}{
		{at: 0, want: "first+0 int"}, {at: 3, want: "first+3 int"}, {at: 4, want: "second+0 struct pair"},
		{at: 11, want: "second+7 struct pair"}, {at: 12}, {at: 0x100}, {at: 0x200},
		{at: 0xf000, want: "first+0 int"}, {at: 0xf000 + 4<<17 - 1, want: "first+3 int"}, {at: 0xf000 + 4<<17},
		{at: high - 0x1000 + 7, want: "high+7 struct pair"}, {at: high - 0x1000 + 8},
	} {
		got := ""
		if g, ok := v.At(c.at); ok {
			got = fmt.Sprintf("%s+%d %s", g.Name, c.at-g.Addr, out.TypeName(g.Type))
		}
		if got != c.want {
			t.Errorf("%#x: %q, want %q", uint64(c.at), got, c.want)
		}
	}
}
