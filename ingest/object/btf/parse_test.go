package btf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/decode"
)

// list returns the items of a type in their order.
func list[T any](seq func(func(int, T) bool)) string {
	var out []T
	for i, v := range seq {
		if i != len(out) {
			return fmt.Sprintf("item %d is numbered %d", len(out), i)
		}
		out = append(out, v)
	}
	return fmt.Sprint(out)
}

// TestKinds reads every kind of type in both byte orders.
func TestKinds(t *testing.T) {
	for _, big := range []bool{false, true} {
		raw, id := everyKind(big)
		types, err := Parse("test", raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		if types.BigEndian() != big || types.Len() != len(id)+1 || types.Base() != nil {
			t.Errorf("big endian %v, %d types, base %v", types.BigEndian(), types.Len(), types.Base())
		}
		for _, c := range []struct{ what, got, want string }{
			{"int", fmt.Sprint(types.Int(id["int"])), "{4 32 0 true false false}"},
			{"bool", fmt.Sprint(types.Int(id["bool"])), "{1 8 0 false false true}"},
			{"char", fmt.Sprint(types.Int(id["char"])), "{1 8 0 false true false}"},
			{"bits", fmt.Sprint(types.Int(id["bits"])), "{4 5 3 false false false}"},
			{"no int", fmt.Sprint(types.Int(id["ptr"])), "{0 0 0 false false false}"},
			{"array", fmt.Sprint(types.Array(id["array"])), "{1 1 7}"},
			{"no array", fmt.Sprint(types.Array(id["int"])), "{0 0 0}"},
			{"struct", list(types.Members(id["struct"])), "[{a 1 0 0} {b 4 35 5} {c 1 64 0}]"},
			{"flagged", list(types.Members(id["flagged"])), "[{low 1 1 7} {high 1 8 24}]"},
			{"union", list(types.Members(id["union"])), "[{a 1 0 0}]"},
			{"no members", list(types.Members(id["enum"])), "[]"},
			{"enum", list(types.Enumerators(id["enum"])), "[{ZERO 0} {TOP 4294967295}]"},
			{"signed", list(types.Enumerators(id["signed"])), "[{LESS 18446744073709551615}]"},
			{"enum64", list(types.Enumerators(id["enum64"])), "[{WIDE 81985529216486895}]"},
			{"no enum", list(types.Enumerators(id["int"])), "[]"},
			{"proto", list(types.Params(id["proto"])), "[{x 1} { 0}]"},
			{"datasec", list(types.Sections(id["datasec"])),
				fmt.Sprintf("[{%d 8 4}]", id["var"])},
			{"counts", fmt.Sprint(types.MemberCount(id["struct"]), types.MemberCount(id["proto"])),
				"3 0"},
			{"signs", fmt.Sprint(types.EnumSigned(id["enum"]), types.EnumSigned(id["signed"])),
				"false true"},
			{"linkage", fmt.Sprint(types.FuncLinkage(id["func"]), types.VarLinkage(id["var"]),
				types.VarLinkage(id["int"])), "1 1 0"},
			{"forward", fmt.Sprint(types.FwdUnion(id["fwd"]), types.FwdUnion(id["int"])),
				"true false"},
			{"tags", fmt.Sprint(types.DeclTagComponent(id["decltag"]),
				types.DeclTagComponent(id["int"])), "1 -1"},
			{"strip", fmt.Sprint(types.Strip(id["typetag"]), types.Strip(id["ptr"])),
				fmt.Sprint(id["int"], id["ptr"])},
			{"result", fmt.Sprint(types.Ref(id["proto"]), types.Ref(id["struct"])), "1 0"},
		} {
			if c.got != c.want {
				t.Errorf("big endian %v: %s: %s, want %s", big, c.what, c.got, c.want)
			}
		}
		seen := make(map[Kind]bool)
		for i := range ID(types.Len()) {
			seen[types.Kind(i)] = true
		}
		if len(seen) != int(numKinds) {
			t.Errorf("%d kinds are there of %d", len(seen), numKinds)
		}
	}
}

// TestOutOfRange passes IDs and indexes out of range.
func TestOutOfRange(t *testing.T) {
	raw, _ := everyKind(false)
	types, err := Parse("test", raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []ID{0, ID(types.Len()), 1 << 31, ^ID(0)} {
		if types.Kind(id) != KindVoid || types.Name(id) != "" || types.Ref(id) != 0 ||
			types.MemberCount(id) != 0 || types.Strip(id) != id {
			t.Errorf("type %d is there", id)
		}
		if _, err := types.Size(id); !errors.Is(err, errIncomplete) {
			t.Errorf("type %d: size with the error %v", id, err)
		}
	}
	if _, ok := types.StringAt(1 << 31); ok {
		t.Error("a string behind the table")
	}
}

// TestFunctions reads the functions in the fixtures.
func TestFunctions(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := bpfbuild.BTF(big, &bpfbuild.Program{
			Funcs: []bpfbuild.Func{{Name: "one"}, {Name: "two"}}})
		types, err := Parse("test", b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if types.Len() != 4 || types.Kind(3) != KindFunc || types.Name(3) != "two" ||
			types.Name(0) != "" || len(types.Raw()) != len(b) || !isBTF(b) {
			t.Errorf("%d types, the third %s %q", types.Len(), types.Kind(3), types.Name(3))
		}
		if isBTF(b[:8]) || isBTF(b[1:]) {
			t.Error("a part of a blob is one")
		}
	}
}

// TestTruncated reads no prefix of a blob.
func TestTruncated(t *testing.T) {
	for _, big := range []bool{false, true} {
		raw, _ := everyKind(big)
		for n := range raw {
			var e *decode.Error
			if _, err := Parse("test", raw[:n:n], nil); !errors.As(err, &e) || e.Name != "test" {
				t.Fatalf("%d bytes of %d: error %v", n, len(raw), err)
			}
		}
	}
}

// TestSplit reads the types of a module over the kernel's.
func TestSplit(t *testing.T) {
	for _, big := range []bool{false, true} {
		raw, id := everyKind(big)
		base, err := Parse("base", raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := over(base)
		own := b.ref(KindTypedef, "mine", id["typedef"])
		holder := b.add(KindStruct, "holder", false, 1, 4, b.name("it"), uint32(own), 0)
		b.add(KindTypedef, "int_t", false, 0, uint32(own)) // hidden by that of the base
		types, err := Parse("split", b.bytes(), base)
		if err != nil {
			t.Fatal(err)
		}
		if types.Base() != base || types.Len() != base.Len()+3 {
			t.Errorf("%d types over %d", types.Len(), base.Len())
		}
		if types.Name(own) != "mine" || types.Name(id["struct"]) != "pair" ||
			types.Strip(own) != id["int"] {
			t.Errorf("names %q, %q", types.Name(own), types.Name(id["struct"]))
		}
		if got := list(types.Members(holder)); got != fmt.Sprintf("[{it %d 0 0}]", own) {
			t.Errorf("members %s", got)
		}
		for name, want := range map[string]ID{"int_t": id["typedef"], "mine": own, "none": 0} {
			if got, ok := types.ByName(KindTypedef, name); got != want || ok != (want != 0) {
				t.Errorf("%s is type %d, want %d", name, got, want)
			}
		}
		if n, err := types.Size(holder); n != 4 || err != nil {
			t.Errorf("size %d, error %v", n, err)
		}
		if _, err := Parse("split", b.bytes(), nil); err == nil {
			t.Error("it is whole without its base")
		}
		other, _ := everyKind(!big)
		if _, err := Parse("split", other, base); err == nil ||
			!strings.Contains(err.Error(), "byte order") {
			t.Errorf("a split blob of the other byte order: error %v", err)
		}
	}
}

// TestDamaged changes one word at a time; each has its reason.
func TestDamaged(t *testing.T) {
	for _, big := range []bool{false, true} {
		raw, id := everyKind(big)
		whole, err := Parse("test", raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := func(name string, off int) int { return headerSize + int(whole.at[id[name]-1]) + off }
		for _, c := range []struct {
			at   int
			v    uint32
			want string
		}{
			{0, 0, "magic"},
			{4, 8, "a header of 8 bytes"},
			{8, 2, "no multiple of 4"},
			{12, 1 << 31, "bytes wanted"},
			{16, 1 << 31, "past the end"},
			{20, 8, "does not end"},
			{at("int", 0), 1 << 30, "a name at"},
			{at("int", 4), 20 << 24, "unknown kind 20"},
			{at("int", 4), 0, "unknown kind 0"},
			{at("int", 8), 17, "an integer of 32 bits"},
			{at("int", 8), 2, "of 2 bytes"},
			{at("ptr", 8), 1000, "refers to type 1000"},
			{at("array", 12), 1000, "refers to type 1000"},
			{at("array", 16), 1000, "refers to type 1000"},
			{at("struct", 4), uint32(KindStruct)<<24 | 0xffff, "bytes wanted"},
			{at("struct", 12), 1 << 30, "a name at"},
			{at("struct", 16), 1000, "refers to type 1000"},
			{at("struct", 20), 97, "member 0 at bit 97 of 12 bytes"},
			{at("flagged", 20), 33 << 24, "member 0 at bit 0 of 4 bytes"},
			{at("enum", 8), 3, "ENUM of 3 bytes"},
			{at("enum", 12), 1 << 30, "a name at"},
			{at("enum64", 8), 16, "ENUM64 of 16 bytes"},
			{at("enum64", 12), 1 << 30, "a name at"},
			{at("proto", 12), 1 << 30, "a name at"},
			{at("proto", 16), 1000, "refers to type 1000"},
			{at("datasec", 12), 1000, "refers to type 1000"},
			{at("float", 8), 3, "FLOAT of 3 bytes"},
			{at("decltag", 12), 0xfffffffe, "component -2"},
		} {
			_, err := Parse("test", put(big, raw, c.at, c.v), nil)
			var e *decode.Error
			if !errors.As(err, &e) || !strings.Contains(e.Reason, c.want) {
				t.Errorf("%#x at %#x: error %v, want %q", c.v, c.at, err, c.want)
			}
		}
		twelve := put(big, raw, at("float", 8), 12) // long double of 32-bit x86
		if _, err := Parse("test", twelve, nil); err != nil {
			t.Errorf("a float of 12 bytes: %v", err)
		}
	}
}
