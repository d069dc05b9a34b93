package btf

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// valueTypes adds to everyKind the types for printing values.
func valueTypes(t testing.TB, big bool) (*Types, map[string]ID) {
	t.Helper()
	b := newBuilder(big)
	id := make(map[string]ID)
	u8 := b.integer("u8", 1, 8)
	id["u8"] = u8
	id["u32"] = b.integer("u32", 4, 32)
	id["s24"] = b.integer("s24", 3, 1<<24|24)
	id["s64"] = b.integer("s64", 8, 1<<24|64)
	id["u128"] = b.integer("u128", 16, 128)
	id["bool"] = b.integer("_Bool", 1, 4<<24|8)
	id["schar"] = b.integer("char", 1, 1<<24|8)
	id["letter"] = b.integer("letter", 1, 2<<24|8)
	id["five"] = b.integer("five", 4, 1<<24|3<<16|5)
	for i, name := range []string{"f16", "f32", "f64", "f128"} {
		id[name] = b.add(KindFloat, name, false, 0, 2<<i)
	}
	id["f96"] = b.add(KindFloat, "f96", false, 0, 12)
	id["color"] = b.add(KindEnum, "color", true, 2, 4, b.name("RED"), 1, b.name("NONE"), 0xffffffff)
	id["mode"] = b.add(KindEnum, "mode", false, 2, 1, b.name("ON"), 1, b.name("OFF"), 0xffffffff)
	id["plain"] = b.add(KindEnum, "plain", false, 1, 4, b.name("LOW"), 1)
	top := b.add(KindEnum, "top", true, 1, 4, b.name("TOP"), 0x7fffffff)
	id["narrow"] = b.add(KindStruct, "narrow", true, 1, 1, b.name("v"), uint32(top), 3<<24)
	id["wide"] = b.add(KindEnum64, "wide", true, 1, 8, b.name("LOW"), 1, 0x80000000)
	id["ptr"] = b.ref(KindPtr, "", u8)
	id["fwd"] = b.add(KindFwd, "opaque", false, 0, 0)
	id["text"] = b.array(id["schar"], 8)
	id["bytes"] = b.array(u8, 3)
	id["grid"] = b.array(id["bytes"], 2)
	id["none"] = b.array(u8, 0)
	id["fields"] = b.add(KindStruct, "fields", true, 4, 8,
		b.name("a"), uint32(id["u32"]), 3<<24, b.name("b"), uint32(id["s64"]), 35<<24|3,
		b.name("c"), uint32(id["bool"]), 1<<24|38, b.name("d"), uint32(id["color"]), 4<<24|40)
	id["old"] = b.add(KindStruct, "old", false, 1, 4, b.name("five"), uint32(id["five"]), 8)
	part := b.add(KindStruct, "", false, 1, 1, b.name("x"), uint32(u8), 0)
	id["anonymous"] = b.add(KindStruct, "anonymous", false, 2, 2, 0, uint32(part), 0,
		0, uint32(part), 8)
	id["flexible"] = b.add(KindStruct, "flexible", false, 2, 4,
		b.name("n"), uint32(u8), 0, b.name("tail"), uint32(id["none"]), 8)
	id["holder"] = b.add(KindStruct, "holder", false, 1, 4,
		b.name("in"), uint32(id["flexible"]), 0)
	one := b.add(KindVar, "one", false, 0, uint32(u8), 1)
	two := b.ref(KindConst, "", id["u32"])
	two = b.add(KindVar, "two", false, 0, uint32(two), 1)
	id["data"] = b.add(KindDatasec, ".data", false, 2, 8, uint32(one), 0, 1, uint32(two), 4, 4)
	id["empty"] = b.add(KindStruct, "empty", false, 0, 0)
	id["emptiness"] = b.array(id["empty"], 1<<31)
	types, err := Parse("test", b.bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return types, id
}

// squeeze removes the layout from a text.
func squeeze(b []byte) string {
	return strings.NewReplacer("\n", "", "    ", "").Replace(string(b))
}

// TestValue prints values of both byte orders. Data is written in little-endian order; words are
// swapped for the other.
func TestValue(t *testing.T) {
	for _, c := range []struct {
		typ, little, big string // big is data of a big-endian machine, "" if it is the same
		text, json       string // json is "" if it is the text
	}{
		{typ: "u8", little: "ff", text: "255"},
		{typ: "s24", little: "feffff", big: "fffffe", text: "-2"},
		{typ: "s64", little: "0000000000000080", big: "8000000000000000",
			text: "-9223372036854775808"},
		{typ: "u128", little: "01000000000000000200000000000000",
			big:  "00000000000000020000000000000001",
			text: "0x20000000000000001", json: `"0x20000000000000001"`},
		{typ: "u128", little: "05000000000000000000000000000000",
			big:  "00000000000000000000000000000005",
			text: "0x5", json: `"0x5"`},
		{typ: "bool", little: "00", text: "false"}, {typ: "bool", little: "58", text: "true"},
		{typ: "letter", little: "41", text: `"A"`}, {typ: "letter", little: "22", text: `"\""`},
		{typ: "letter", little: "07", text: "0x7", json: `"\u0007"`}, {typ: "letter",
			little: "e9", text: "0xe9", json: `"0xe9"`},
		{typ: "five", little: "80000000", big: "10000000", text: "-16"},
		{typ: "f16", little: "003c", big: "3c00", text: "1"}, {typ: "f16", little: "00fc",
			big: "fc00", text: "-Inf", json: `"-Inf"`},
		{typ: "f16", little: "0100", big: "0001", text: "5.9604645e-08"}, {typ: "f16",
			little: "017e", big: "7e01", text: "NaN", json: `"NaN"`},
		{typ: "f32", little: "cdcccc3d", big: "3dcccccd", text: "0.1"},
		{typ: "f32", little: "00000080", big: "80000000", text: "-0"},
		{typ: "f64", little: "000000000000f07f", big: "7ff0000000000000", text: "Inf",
			json: `"Inf"`},
		{typ: "f64", little: "9a9999999999b93f", big: "3fb999999999999a", text: "0.1"},
		{typ: "f128", little: "0000000000000000000000000000ff3f",
			big: "3fff0000000000000000000000000000", text: "1"},
		{typ: "f128", little: "00000000000000000000000000c000c0",
			big:  "c000c000000000000000000000000000",
			text: "-3.5"},
		{typ: "f128", little: "0000000000000000000000000000ff7f",
			big:  "7fff0000000000000000000000000000",
			text: "Inf", json: `"Inf"`},
		{typ: "f128", little: "00000000000000000000000000000000", text: "0"},
		{typ: "color", little: "01000000", big: "00000001", text: `"RED"`},
		{typ: "color", little: "ffffffff", text: `"NONE"`}, {typ: "color", little: "feffffff",
			big: "fffffffe", text: "-2"},
		{typ: "mode", little: "ff", text: `"OFF"`}, {typ: "mode", little: "fe", text: "-2"},
		{typ: "mode", little: "01", text: `"ON"`}, {typ: "plain", little: "feffffff",
			big: "fffffffe", text: "4294967294"},
		{typ: "narrow", little: "07", big: "e0", text: `{"v": -1}`}, // not TOP, which has these low bits
		{typ: "wide", little: "0100000000000080", big: "8000000000000001", text: `"LOW"`},
		{typ: "wide", little: "ffffffffffffffff", text: "-1"},
		{typ: "ptr", little: "0000000000000000", text: "(nil)", json: "0"},
		{typ: "ptr", little: "1000000000000000", big: "0000000000000010", text: "0x10",
			json: "16"},
		{typ: "fwd", little: "0a0b", text: `"0x0a0b"`},
		{typ: "text", little: "6162630000000000", text: `"abc"`},
		{typ: "text", little: "6162630064000000", text: `"abc"`}, // C reads no more of it
		{typ: "text", little: "6162630a0d093132", text: `"abc\n\r\t12"`},
		{typ: "text", little: "c3a9000000000000", text: `"é"`},
		{typ: "text", little: "e280ae41ff000000", text: `"\u202eA\\xff"`},
		{typ: "text", little: "0000000000000000", text: `""`},
		{typ: "text", little: "0000000001000000", text: "[0,0,0,0,1,0,0,0]"},
		{typ: "text", little: "ff00000001000000", text: "[-1,0,0,0,1,0,0,0]"},
		{typ: "grid", little: "010203040506", text: "[[1,2,3],[4,5,6]]"},
		// a = 5, b = −3 in 35 bits, c = true, d = NONE
		{typ: "fields", little: "edffffffff0f0000", big: "bffffffff6f00000",
			text: `{"a": 5,"b": -3,"c": true,"d": "NONE"}`},
		{typ: "old", little: "00100000", big: "00020000", text: `{"five": 2}`},
		{typ: "anonymous", little: "0102", text: `{"": {"x": 1},"#2": {"x": 2}}`},
		{typ: "flexible", little: "01020304", text: `{"n": 1,"tail": []}`},
		{typ: "flexible", little: "0102030405", text: `{"n": 1,"tail": [2,3,4,5]}`},
		{typ: "holder", little: "0102030405", text: `{"in": {"n": 1,"tail": [2,3,4,5]}}`},
		{typ: "data", little: "0700000008000000", big: "0700000000000008",
			text: `{".data": [{"one": 7},{"two": 8}]}`},
		{typ: "empty", text: "{}"},
	} {
		for _, big := range []bool{false, true} {
			types, id := valueTypes(t, big)
			word := c.little
			if big && c.big != "" {
				word = c.big
			}
			data, err := hex.DecodeString(word)
			if err != nil {
				t.Fatal(err)
			}
			got, err := types.AppendValue([]byte("> "), id[c.typ], data, nil)
			if s := squeeze(got); s != "> "+c.text || err != nil {
				t.Errorf("%s %s: %s, %v; want %s", c.typ, word, s, err, c.text)
			}
			got, err = types.AppendValue(nil, id[c.typ], data, &ValueOptions{JSON: true})
			want := c.json
			if want == "" {
				want = strings.ReplaceAll(c.text, `": `, `":`)
			}
			if string(got) != want || err != nil || !json.Valid(got) {
				t.Errorf("%s %s as JSON: %s, %v; want %s", c.typ, word, got, err, want)
			}
		}
	}
}

// TestValueX87 prints the long double of x86, with and without its padding.
func TestValueX87(t *testing.T) {
	types, id := valueTypes(t, false)
	for data, want := range map[string]string{
		"0000000000000080ff3f": "1", "00000000000000a000c0": "-2.5",
		"0000000000000080ff7f": "Inf", "00000000000000c0ff7f": "NaN",
		"cdccccccccccccccfb3f": "0.1", "00000000000000000000": "0",
	} {
		b, err := hex.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		b = slices.Clip(b)
		for typ, b := range map[string][]byte{"f96": append(b, 0, 0), "f128": append(b, make([]byte, 6)...)} {
			got, err := types.AppendValue(nil, id[typ], b, nil)
			if string(got) != want || err != nil {
				t.Errorf("%s %s: %s, %v; want %s", typ, data, got, err, want)
			}
		}
	}
	if b, err := types.AppendValue(nil, id["f96"], nil, nil); err == nil {
		t.Errorf("nothing is printed as %s", b)
	}
}

// TestValuePointer asks for the name of each pointer.
func TestValuePointer(t *testing.T) {
	types, id := valueTypes(t, false)
	o := &ValueOptions{Pointer: func(ptr ID, value uint64) string {
		if ptr != id["ptr"] {
			t.Errorf("asked for type %d", ptr)
		}
		if value == 16 {
			return `tcp_"v4`
		}
		return ""
	}}
	for word, want := range map[byte]string{16: `"tcp_\"v4"`, 17: "0x11"} {
		got, err := types.AppendValue(nil, id["ptr"], []byte{word, 0, 0, 0, 0, 0, 0, 0}, o)
		if string(got) != want || err != nil {
			t.Errorf("%d: %s, %v", word, got, err)
		}
	}
}

// TestValueTruncated prints each prefix of the data of each type: the present part, then an
// error, and valid JSON all the same.
func TestValueTruncated(t *testing.T) {
	types, id := valueTypes(t, false)
	data := make([]byte, 64)
	for i := range data {
		data[i] = byte(i + 1)
	}
	for name, id := range id {
		size, err := types.Size(id)
		if err != nil || name == "emptiness" {
			continue
		}
		for n := range size {
			b, err := types.AppendValue(nil, id, data[:n:n], &ValueOptions{JSON: true})
			short := errors.Is(err, ErrShortValue)
			// Padding can be missing: it is not printed.
			if !short && (err != nil || strings.Contains(string(b), "null")) || !json.Valid(b) {
				t.Errorf("%d bytes of %s: %s, %v", n, name, b, err)
			}
		}
	}
	b, err := types.AppendValue(nil, id["fields"], []byte{5, 0, 0, 0, 0}, nil)
	if squeeze(b) != `{"a": 5,"b": 0,"c": false,"d": null}` && !errors.Is(err, ErrShortValue) {
		t.Errorf("%s, %v", b, err)
	}
	b, err = types.AppendValue(nil, id["grid"], []byte{1, 2, 3, 4}, nil)
	if squeeze(b) != "[[1,2,3],[4,null]]" || !errors.Is(err, ErrShortValue) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestValueBounds prints endless types.
func TestValueBounds(t *testing.T) {
	types, id := valueTypes(t, false)
	o := &ValueOptions{JSON: true, MaxBytes: 1000}
	for _, typ := range []ID{id["emptiness"], id["fwd"]} {
		b, err := types.AppendValue(nil, typ, make([]byte, 1<<20), o)
		if !errors.Is(err, ErrLongValue) || len(b) > 1100 || !json.Valid(b) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	// A union within itself, twice: 2^64 values.
	b := newBuilder(false)
	b.add(KindUnion, "self", false, 2, 4, b.name("a"), 1, 0, b.name("b"), 1, 0)
	self, err := Parse("test", b.bytes(), nil)
	if err != nil {
		t.Fatal(err) // Parse accepts it: a circle ends where sizes are computed
	}
	got, err := self.AppendValue(nil, 1, make([]byte, 4), o)
	if err == nil || len(got) > 4000 || !json.Valid(got) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestValueSame prints the same bytes from one goroutine and from many.
func TestValueSame(t *testing.T) {
	types := kinds(t)
	id := mapType(t, types, "nested", "value")
	data := unhex(t, dumped(t, "nested")[0].Value)
	want, err := types.AppendValue(nil, id, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan []byte)
	for range 8 {
		go func() {
			b, _ := types.AppendValue(nil, id, data, nil)
			out <- b
		}()
	}
	for range 8 {
		if got := <-out; !slices.Equal(got, want) {
			t.Errorf("%s", got)
		}
	}
}

func BenchmarkValue(b *testing.B) {
	types := kinds(b)
	id := mapType(b, types, "nested", "value")
	data := unhex(b, dumped(b, "nested")[0].Value)
	var buf []byte
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = types.AppendValue(buf[:0], id, data, &ValueOptions{JSON: true})
	}
}
