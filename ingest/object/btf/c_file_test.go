package btf

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// clashing builds types with names that C does not permit, or not twice.
func clashing(t *testing.T) (*Types, map[string]ID) {
	t.Helper()
	b := newBuilder(false)
	id := make(map[string]ID)
	word := uint32(b.integer("u32", 4, 32)) // a name that only Rust knows
	later := b.next + 3
	ptr := b.ref(KindPtr, "", later)
	id["first"] = b.add(KindStruct, "twice", false, 2, 16,
		b.name("next"), uint32(ptr), 0, b.name("int"), word, 64)
	id["second"] = b.add(KindStruct, "twice", false, 1, 4, b.name("only"), word, 0)
	id["later"] = b.add(KindUnion, "twice", false, 1, 4, b.name("other"), word, 0)
	id["fwd"] = b.add(KindFwd, "twice", true, 0, 0)
	id["opaque"] = b.add(KindFwd, "opaque", false, 0, 0)
	id["generic"] = b.ref(KindTypedef, "Option<u8>", b.ref(KindPtr, "", id["fwd"]))
	id["enum"] = b.add(KindEnum, "", false, 2, 4, b.name("A"), 1, b.name("int"), 2)
	id["pair"] = b.add(KindStruct, "pair", false, 2, 8,
		b.name("x"), uint32(id["enum"]), 0, b.name("y"), uint32(id["enum"]), 32)
	id["declared"] = b.add(KindEnum, "declared", false, 0, 4)
	id["constants"] = b.add(KindEnum, "", true, 1, 4, b.name("A"), 0xffffffff)
	id["truth"] = b.add(KindEnum, "", false, 2, 4, b.name("false"), 0, b.name("true"), 1)
	id["func"] = b.add(KindFunc, "call", false, 1, uint32(b.add(KindFuncProto, "", false, 2, 0,
		b.name("a"), uint32(id["second"]), b.name("b"), uint32(id["enum"]))))
	id["var"] = b.add(KindVar, "v", false, 0, uint32(id["pair"]), 1)
	types, err := Parse("test", b.bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return types, id
}

// TestWriteC prints definitions before their use, each name once.
func TestWriteC(t *testing.T) {
	types, id := clashing(t)
	pair := "struct pair {\n\tenum {\n\t\tA = 1,\n\t\tint___2 = 2,\n\t} x;\n" +
		"\tunsigned int /* enum */ y;\n};\n\n"
	second := "struct twice___2 {\n\tunsigned int only;\n};\n\n"
	for name, test := range map[string]struct {
		roots []ID
		want  string
	}{
		"all": {want: "union twice___3;\n\nstruct twice {\n\tunion twice___3 *next;\n" +
			"\tunsigned int int___2;\n};\n\n" + second +
			"union twice___3 {\n\tunsigned int other;\n};\n\nunion twice___3;\n\n" +
			"struct opaque;\n\ntypedef union twice___3 *Option_u8_;\n\n" + pair +
			"enum declared;\n\nenum {\n\tA___2 = -1,\n};\n\n" +
			cBeforeC23 + "enum {\n\tfalse = 0,\n\ttrue = 1,\n};\n#endif\n\n"},
		"one":           {roots: []ID{id["second"]}, want: second},
		"of a variable": {roots: []ID{id["var"]}, want: pair},
		"parameters":    {roots: []ID{id["func"]}, want: "struct twice___2;\n\n"},
	} {
		var b bytes.Buffer
		if err := types.WriteC(&b, test.roots, &COptions{Plain: true}); err != nil {
			t.Error(err)
		}
		got := strings.TrimSuffix(strings.TrimPrefix(b.String(), cFileHead), cFileTail)
		if got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
	if v, f, s := types.CFileLeft(); v != 1 || f != 1 || s != 0 {
		t.Errorf("%d variables, %d functions and %d sections are left out", v, f, s)
	}
}

// TestWriteCBounds has types within themselves and a chain of a thousand times ten.
func TestWriteCBounds(t *testing.T) {
	b := newBuilder(false)
	b.add(KindStruct, "self", false, 1, 4, b.name("m"), uint32(b.next), 0)
	types, err := Parse("test", b.bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := types.WriteC(&out, nil, nil); err != nil || !strings.Contains(out.String(), "self m;") {
		t.Errorf("%v: %s", err, &out)
	}
	for range 10000 {
		b.add(KindStruct, "deep", false, 1, 4, b.name("m"), uint32(b.next+1), 0)
	}
	b.integer("int", 4, 32)
	if types, err = Parse("test", b.bytes(), nil); err != nil {
		t.Fatal(err)
	}
	if err := types.WriteC(&out, nil, nil); !errors.Is(err, errNested) {
		t.Errorf("10,000 structures in one another: %v", err)
	}
}

// TestCBehindPointer counts offsets behind a pointer from its target.
func TestCBehindPointer(t *testing.T) {
	b := newBuilder(false)
	word := b.integer("int", 4, 1<<24|32)
	part := b.add(KindStruct, "", false, 2, 8,
		b.name("x"), uint32(word), 0, b.name("y"), uint32(word), 32)
	ptr := b.ref(KindPtr, "", part)
	call := b.ref(KindPtr, "", b.add(KindFuncProto, "", false, 0, uint32(ptr)))
	outer := b.add(KindStruct, "outer", false, 4, 40, b.name("a"), uint32(word), 0,
		b.name("q"), uint32(ptr), 64, b.name("call"), uint32(call), 128,
		b.name("s"), uint32(b.array(part, 2)), 192)
	types, err := Parse("test", b.bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := types.AppendC(nil, outer, nil)
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for line := range strings.Lines(string(c)) {
		if name, place, ok := strings.Cut(line, ";"); ok && strings.Contains(place, "/*") {
			place = strings.Join(strings.Fields(strings.Trim(place, " \n/*")), " ")
			places = append(places, name[strings.LastIndexAny(name, " \t")+1:]+" "+place)
		}
	}
	want := "a 0 4, x 0 4, y 4 4, *q 8 8, x 0 4, y 4 4, *(*call)(void) 16 8, " +
		"x 24 4, y 28 4, s[2] 24 16"
	if got := strings.Join(places, ", "); got != want {
		t.Errorf("%s\nwant %s\n%s", got, want, c)
	}
}

// TestCutEnum has an enumeration of 8 bytes by a compiler that kept the low halves of its values: a
// value of 32 bits has the only name with that half, and C has a comment on each.
func TestCutEnum(t *testing.T) {
	b := newBuilder(false)
	cut := b.add(KindEnum, "cut", false, 2, 8, b.name("HIGH"), 1, b.name("MINUS"), 0xffffffff)
	twice := b.add(KindEnum, "twice", false, 2, 8, b.name("ONE"), 1, b.name("HIGH"), 1)
	types, err := Parse("test", b.bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := types.AppendValue(nil, twice, []byte("\x01\x00\x00\x00\x00\x00\x00\x00"), nil); err != nil ||
		string(got) != "1" {
		t.Errorf("one of two names is %s, %v", got, err)
	}
	for value, want := range map[string]string{
		"\x01\x00\x00\x00\x00\x00\x00\x00": `"HIGH"`,
		"\xff\xff\xff\xff\xff\xff\xff\xff": `"MINUS"`,
		"\x02\x00\x00\x00\x00\x00\x00\x00": "2",
		"\x01\x00\x00\x00\x01\x00\x00\x00": "4294967297",
		"\xff\xff\xff\xff\x00\x00\x00\x00": `"MINUS"`,
	} {
		got, err := types.AppendValue(nil, cut, []byte(value), nil)
		if err != nil || string(got) != want {
			t.Errorf("%q is %s, %v, want %s", value, got, err, want)
		}
	}
	c, err := types.AppendC(nil, cut, &COptions{Plain: true})
	want := "enum cut {\n\tHIGH = 1, /* low 32 bits of 64 */\n" +
		"\tMINUS = 4294967295U, /* low 32 bits of 64 */\n} __attribute__((mode(DI)));\n"
	if err != nil || string(c) != want {
		t.Errorf("%s, %v", c, err)
	}
}
