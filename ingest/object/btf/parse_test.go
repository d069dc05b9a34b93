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
			{what: "int", got: fmt.Sprint(types.Int(id["int"])),
				want: "{4 32 0 true false false}"},
			{what: "bool", got: fmt.Sprint(types.Int(id["bool"])),
				want: "{1 8 0 false false true}"},
			{what: "char", got: fmt.Sprint(types.Int(id["char"])),
				want: "{1 8 0 false true false}"},
			{what: "bits", got: fmt.Sprint(types.Int(id["bits"])),
				want: "{4 5 3 false false false}"},
			{what: "no int", got: fmt.Sprint(types.Int(id["ptr"])),
				want: "{0 0 0 false false false}"},
			{what: "array", got: fmt.Sprint(types.Array(id["array"])), want: "{1 1 7}"},
			{what: "no array", got: fmt.Sprint(types.Array(id["int"])), want: "{0 0 0}"},
			{what: "struct", got: list(types.Members(id["struct"])),
				want: "[{a 1 0 0} {b 4 35 5} {c 1 64 0}]"},
			{what: "flagged", got: list(types.Members(id["flagged"])),
				want: "[{low 1 1 7} {high 1 8 24}]"},
			{what: "union", got: list(types.Members(id["union"])), want: "[{a 1 0 0}]"},
			{what: "no members", got: list(types.Members(id["enum"])), want: "[]"},
			{what: "enum", got: list(types.Enumerators(id["enum"])),
				want: "[{ZERO 0} {TOP 4294967295}]"},
			{what: "signed", got: list(types.Enumerators(id["signed"])),
				want: "[{LESS 18446744073709551615}]"},
			{what: "enum64", got: list(types.Enumerators(id["enum64"])),
				want: "[{WIDE 81985529216486895}]"},
			{what: "no enum", got: list(types.Enumerators(id["int"])), want: "[]"},
			{what: "proto", got: list(types.Params(id["proto"])), want: "[{x 1} { 0}]"},
			{what: "datasec", got: list(types.Sections(id["datasec"])),
				want: fmt.Sprintf("[{%d 8 4}]", id["var"])},
			{what: "counts",
				got:  fmt.Sprint(types.MemberCount(id["struct"]), types.MemberCount(id["proto"])),
				want: "3 0"},
			{what: "signs",
				got:  fmt.Sprint(types.EnumSigned(id["enum"]), types.EnumSigned(id["signed"])),
				want: "false true"},
			{what: "linkage",
				got: fmt.Sprint(types.FuncLinkage(id["func"]), types.VarLinkage(id["var"]),
					types.VarLinkage(id["int"])), want: "1 1 0"},
			{what: "forward",
				got:  fmt.Sprint(types.FwdUnion(id["fwd"]), types.FwdUnion(id["int"])),
				want: "true false"},
			{what: "tags", got: fmt.Sprint(types.DeclTagComponent(id["decltag"]),
				types.DeclTagComponent(id["int"])), want: "1 -1"},
			{what: "strip", got: fmt.Sprint(types.Strip(id["typetag"]), types.Strip(id["ptr"])),
				want: fmt.Sprint(id["int"], id["ptr"])},
			{what: "result", got: fmt.Sprint(types.Ref(id["proto"]), types.Ref(id["struct"])),
				want: "1 0"},
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
		b.add(KindTypedef, "int_t", false, 0, uint32(own)) // hidden by the base's
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
			{at: 0, v: 0, want: "magic"},
			{at: 4, v: 8, want: "a header of 8 bytes"},
			{at: 8, v: 2, want: "not a multiple of 4"},
			{at: 12, v: 1 << 31, want: "bytes wanted"},
			{at: 16, v: 1 << 31, want: "past the end"},
			{at: 20, v: 8, want: "does not end"},
			{at: at("int", 0), v: 1 << 30, want: "a name at"},
			{at: at("int", 4), v: 20 << 24, want: "unknown kind 20"},
			{at: at("int", 4), v: 0, want: "unknown kind 0"},
			{at: at("int", 8), v: 17, want: "an integer of 32 bits"},
			{at: at("int", 8), v: 2, want: "of 2 bytes"},
			{at: at("ptr", 8), v: 1000, want: "refers to type 1000"},
			{at: at("array", 12), v: 1000, want: "refers to type 1000"},
			{at: at("array", 16), v: 1000, want: "refers to type 1000"},
			{at: at("struct", 4), v: uint32(KindStruct)<<24 | 0xffff, want: "bytes wanted"},
			{at: at("struct", 12), v: 1 << 30, want: "a name at"},
			{at: at("struct", 16), v: 1000, want: "refers to type 1000"},
			{at: at("struct", 20), v: 97, want: "member 0 at bit 97 of 12 bytes"},
			{at: at("flagged", 20), v: 33 << 24, want: "member 0 at bit 0 of 4 bytes"},
			{at: at("enum", 8), v: 3, want: "ENUM of 3 bytes"},
			{at: at("enum", 12), v: 1 << 30, want: "a name at"},
			{at: at("enum64", 8), v: 16, want: "ENUM64 of 16 bytes"},
			{at: at("enum64", 12), v: 1 << 30, want: "a name at"},
			{at: at("proto", 12), v: 1 << 30, want: "a name at"},
			{at: at("proto", 16), v: 1000, want: "refers to type 1000"},
			{at: at("datasec", 12), v: 1000, want: "refers to type 1000"},
			{at: at("float", 8), v: 3, want: "FLOAT of 3 bytes"},
			{at: at("decltag", 12), v: 0xfffffffe, want: "component -2"},
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
