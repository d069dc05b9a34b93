package btf

import (
	"slices"
	"testing"
)

// TestMarkers: structures of objects from before .maps name a map and its types.
func TestMarkers(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := newBuilder(big)
		u32, u64 := b.integer("u32", 4, 32), b.integer("u64", 8, 64)
		b.add(KindStruct, "____btf_map_counts", false, 2, 16,
			b.name("key"), uint32(u32), 0, b.name("value"), uint32(u64), 64)
		b.add(KindStruct, "____btf_map_empty", false, 0, 0)
		types, err := Parse("test", b.bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := MapDef{Name: "counts", KeySize: 4, ValueSize: 8, Key: u32, Value: u64}
		if got := types.MapsNamed("counts"); len(got) != 1 || got[0] != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := types.Maps(); len(got) != 2 || got[1] != (MapDef{Name: "empty"}) {
			t.Errorf("%+v", got)
		}
	}
}

// TestMapOfMaps: the values of a map of maps, which have no BTF type, and the names of unnamed
// types.
func TestMapOfMaps(t *testing.T) {
	b := newBuilder(false)
	u32 := b.integer("u32", 4, 32)
	none := b.add(KindStruct, "", false, 1, 4, b.name("plen"), uint32(u32), 0)
	choice := b.add(KindEnum, "", false, 0, 4)
	number := b.ref(KindPtr, "", b.array(u32, 13))
	key, values := b.ref(KindPtr, "", none), b.array(b.ref(KindPtr, "", none), 0)
	def := b.add(KindStruct, "", false, 3, 16, b.name("type"), uint32(number), 0,
		b.name("key"), uint32(key), 64, b.name("values"), uint32(values), 128)
	v := b.add(KindVar, "outer", false, 0, uint32(def), 1)
	b.add(KindDatasec, ".maps", false, 1, 16, uint32(v), 0, 16)
	types, err := Parse("test", b.bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := MapDef{Name: "outer", Type: 13, Key: none, KeySize: 4, ValueSize: 4}
	if got := types.Maps(); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for id, want := range map[ID]string{none: "struct {…}", choice: "enum {…}", u32: "u32"} {
		if got := types.TypeName(id); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMaps reads the definitions of an object.
func TestMaps(t *testing.T) {
	types := kinds(t)
	named := func(name string) (MapDef, bool) {
		found := types.MapsNamed(name)
		if len(found) > 1 {
			t.Errorf("%s: %+v", name, found)
		}
		return append(found, MapDef{})[0], len(found) > 0
	}
	d, ok := named("a_rather_long_n") // the truncated name in the kernel
	if !ok || d.Name != "a_rather_long_name_of_a_map" || d.Type != 2 || d.MaxEntries != 1 ||
		d.KeySize != 4 || d.ValueSize != 4 || types.TypeName(d.Value) != "enum color" {
		t.Errorf("%+v, %v", d, ok)
	}
	if d, ok = named("bare_long"); !ok || d.Key != 0 || d.KeySize != 20 || d.ValueSize != 40 {
		t.Errorf("%+v, %v", d, ok)
	}
	if d, ok = named("a_rather"); ok {
		t.Errorf("%+v for a name that is shorter than what the kernel keeps", d)
	}
	for name, want := range map[string]string{"kinds.rodata": ".rodata", "kinds.data": ".data",
		"kinds_of_ma.bss": ".bss", ".bss": ".bss", "longer_names.ro": ".rodata", "kinds": "",
		"kinds.maps": ""} {
		id, ok := types.DataSection(name)
		if types.Name(id) != want || ok != (want != "") {
			t.Errorf("%s: section %q, want %q", name, types.Name(id), want)
		}
	}
}

// TestCutNames: a truncated name may be of several maps; a complete one is of one.
func TestCutNames(t *testing.T) {
	b := newBuilder(false)
	u32 := uint32(b.integer("u32", 4, 32))
	order := []string{"request_latency_read", "request_latency", "request_latency_write", "request_laten"}
	for _, name := range order {
		b.add(KindStruct, markerPrefix+name, false, 1, 4, b.name("key"), u32, 0)
	}
	cut := newBuilder(false) // without the map with a whole name as long as cut names
	cut.integer("u32", 4, 32)
	for _, name := range slices.Concat(order[:1], order[2:]) {
		cut.add(KindStruct, markerPrefix+name, false, 1, 4, cut.name("key"), u32, 0)
	}
	for _, c := range []struct {
		b    *builder
		name string
		want []string
	}{
		{b: b, name: "request_latency", want: []string{"request_latency"}},
		{b: b, name: "request_latency_write", want: []string{"request_latency_write"}},
		{b: b, name: "request_laten", want: []string{"request_laten"}},
		{b: b, name: "request_late"},
		{b: cut, name: "request_latency",
			want: []string{"request_latency_read", "request_latency_write"}},
		{b: cut, name: "request_latency_"},
	} {
		types, err := Parse("test", c.b.bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range types.MapsNamed(c.name) {
			got = append(got, d.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPlaces: variables have the offsets of the symbols.
func TestPlaces(t *testing.T) {
	types := kinds(t)
	id, _ := types.ByName(KindDatasec, ".data")
	if n, err := types.Size(id); err != nil || n != 36 {
		t.Errorf("%d bytes, %v", n, err)
	}
	got := make(map[string]Section)
	for _, s := range types.Sections(id) {
		got[types.Name(s.Type)] = Section{Offset: s.Offset, Size: s.Size}
	}
	if got["title"] != (Section{Offset: 12, Size: 12}) || got["origin"] != (Section{Size: 8}) {
		t.Errorf("%+v", got)
	}
}
