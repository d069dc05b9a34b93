package btf

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/object/elf"
)

const mapsDir = "../../../fixtures/maps"

// kinds reads the types of the object that defines the maps in fixtures/maps.
func kinds(t testing.TB) *Types {
	t.Helper()
	types := typesOf(t, filepath.Join(mapsDir, "kinds.bpf.o"))
	if types == nil {
		t.Fatal("no BTF")
	}
	return types
}

// typesOf reads the types of an object file, nil if it has none.
func typesOf(t testing.TB, path string) *Types {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path, r, fi.Size())
	if err != nil {
		t.Fatal(err)
	}
	types, _, err := FromELF(f)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// element is one of `bpftool map dump -j`. The part that bpftool formatted is removed before
// parsing: it can be invalid JSON.
type element struct {
	Key, Value []string
	Values     []struct{ Value []string }
}

func dumped(t testing.TB, name string) []element {
	t.Helper()
	b := must.Read(t, filepath.Join(mapsDir, name+".json"))
	var out []element
	for {
		i := bytes.Index(b, []byte(`{"key":[`))
		if i < 0 {
			return out
		}
		b = b[i:]
		end := bytes.Index(b, []byte(`,"formatted"`))
		if end < 0 {
			return out
		}
		var e element
		if err := json.Unmarshal(append(bytes.Clone(b[:end]), '}'), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
		b = b[end:]
	}
}

func unhex(t testing.TB, words []string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join(words, ""), "0x", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mapType returns the target type of a pointer member in a map's definition.
func mapType(t testing.TB, types *Types, name, member string) ID {
	t.Helper()
	id, ok := types.ByName(KindVar, name)
	if !ok {
		t.Fatalf("no map %s", name)
	}
	for _, m := range types.Members(types.resolve(id)) {
		if m.Name == member {
			return types.Ref(m.Type)
		}
	}
	t.Fatalf("map %s has no %s", name, member)
	return 0
}

// printDump prints a map as `bpftool map dump` does.
func printDump(t testing.TB, types *Types, name string) string {
	t.Helper()
	key, value := mapType(t, types, name, "key"), mapType(t, types, name, "value")
	opts := &ValueOptions{Indent: 2}
	show := func(b []byte, id ID, words []string) []byte {
		b, err := types.AppendValue(b, id, unhex(t, words), opts)
		if err != nil {
			t.Error(err)
		}
		return b
	}
	b := []byte("[")
	for i, e := range dumped(t, name) {
		if i > 0 {
			b = append(b, ',')
		}
		b = show(append(b, "{\n        \"key\": "...), key, e.Key)
		b = show(append(b, ",\n        \"value\": "...), value, e.Value)
		b = append(b, "\n    }"...)
	}
	return string(append(b, "\n]\n"...))
}

// TestValueAsBpftool compares printed values of recorded maps with bpftool 7.1's. Where bpftool
// is wrong, the differences are listed with their reasons.
func TestValueAsBpftool(t *testing.T) {
	types := kinds(t)
	for _, c := range []struct {
		name string
		why  string
		// replace has pairs of bpftool's output and the correct one.
		replace []string
	}{
		{name: "ints"}, {name: "wide"}, {name: "packed"}, {name: "nodes"}, {name: "plain_ints"},
		{name: "refs"}, {name: "arrays"}, {name: "a_rather_long_name_of_a_map"},
		{name: "bits", why: "prints the bits of bit fields, without sign, bool and names",
			replace: []string{
				"0x0", "0", "0x36", "54", "0xe", "14", "0x2cb4a", "183114", "0xbfd5a98b", "3218450827",
				"0xa0463b37", "2688957239", `"g": 0x0`, `"g": false`, "0x8", "-8",
				"0x0", "0", "0x58", "88", "0x1d", "-3", "0x39a35", "236085",
				"0x19fcae0d46b", "1785815159915", "0x15300928f", "-2902420849", "0x1", "true",
				"0xd", `"BLUE"`,
			}},
		{name: "floats", why: "knows no floats, and prints nothing of what follows one",
			replace: []string{
				`"single": (unsupported-kind`, `"single": 1.5,
            "twice": -0.1,
            "list": [0,Inf,NaN
            ]`,
				`"single": (unsupported-kind`, `"single": 3.4028235e+38,
            "twice": -Inf,
            "list": [1e-45,2,0.33373436
            ]`,
			}},
		{name: "nested", why: "takes no text with a tab, nor without a zero at its end",
			replace: []string{
				"[97,32,110,97,109,101,34,92,9,0,0,0,0,0,0,0\n            ]", `"a name\"\\\t"`,
				"[104,101,108,108\n            ]", `"hell"`,
			}},
		{name: "numbers", why: "takes text in ASCII only", replace: []string{
			"[-1,-2,0,0,0,0,0,0\n            ]", `"\\xff\\xfe"`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := must.Read(t, filepath.Join(mapsDir, c.name+".txt"))
			want := string(b)
			for i := 0; i < len(c.replace); i += 2 {
				if !strings.Contains(want, c.replace[i]) {
					t.Errorf("bpftool does not print %q", c.replace[i])
				}
				want = strings.Replace(want, c.replace[i], c.replace[i+1], 1)
			}
			if got := printDump(t, types, c.name); got != want {
				t.Errorf("printed\n%s\nand not, as bpftool (%s)\n%s", got, c.why, want)
			}
		})
	}
}
