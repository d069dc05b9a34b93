package main

import (
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// TestMapAsBpftool prints the maps of fixtures/maps from their bytes, by the types of the object
// that defines them, and compares with the output of bpftool 7.1 for them while they lived. Where
// bpftool is wrong, the differences are listed, with the reason; package btf's test of values lists
// differences within a value.
func TestMapAsBpftool(t *testing.T) {
	const dir = "../../fixtures/maps"
	for _, c := range []struct {
		name, flags, why string
		// replace is, in turn, the text of bpftool and the right one.
		replace []string
	}{
		{name: "ints"}, {name: "wide"}, {name: "packed"}, {name: "nodes"}, {name: "plain_ints"},
		{name: "refs"}, {name: "arrays"}, {name: "a_rather_long_name_of_a_map"},
		{name: "per_cpu"}, {name: "per_cpu_hash"},
		{name: "bare", flags: "none"}, {name: "bare_long", flags: "none"},
		{name: "bare_cpu", flags: "none"},
		{name: "kinds_rodata", flags: "kinds.rodata"},
		{name: "kinds_data", flags: "kinds.data",
			why: "knows no floats, and prints nothing of what follows one",
			replace: []string{`"ratio": (unsupported-kind`, `"ratio": 0.5
                },{
                    "hidden": 204`}},
		{name: "kinds_bss", flags: "kinds.bss",
			why: "prints the bits of bit fields, without bool and names; no floats",
			replace: []string{`"a": 0x0`, `"a": 0`, `"b": 0x0`, `"b": 0`, `"c": 0x0`, `"c": 0`,
				`"d": 0x0`, `"d": 0`, `"e": 0x5`, `"e": 5`, `"f": 0x0`, `"f": 0`,
				`"g": 0x0`, `"g": false`, `"h": 0x0`, `"h": "RED"`,
				"(unsupported-kind", "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := must.Read(t, filepath.Join(dir, c.name+".txt"))
			want := string(b)
			for i := 0; i < len(c.replace); i += 2 {
				if !strings.Contains(want, c.replace[i]) {
					t.Errorf("bpftool does not print %q", c.replace[i])
				}
				want = strings.Replace(want, c.replace[i], c.replace[i+1], 1)
			}
			args := []string{"map"}
			if c.flags != "none" {
				name := c.flags
				if name == "" {
					name = c.name
				}
				args = append(args, "--btf", filepath.Join(dir, "kinds.bpf.o"), "--map", name)
			}
			env, out, stderr := inProcess(append(args, filepath.Join(dir, c.name+".json"))...)
			if code := Main(t.Context(), env); code != 0 || out.String() != want {
				t.Errorf("exit %d, %s\nprinted\n%s\nand not, as bpftool (%s)\n%s", code, stderr, out,
					c.why, want)
			}
		})
	}
}

// TestMapFormatted prints maps without BTF by the values that bpftool formatted in their dumps: as
// it printed them.
func TestMapFormatted(t *testing.T) {
	for name, note := range map[string]string{
		"plain_ints": "",
		"per_cpu":    "by what bpftool printed: key at 0 of 4; value x at 0 of 4, y at 4 of 4",
	} {
		path := filepath.Join("../../fixtures/maps", name)
		want := must.Read(t, path+".txt")
		env, out, stderr := inProcess("map", path+".json")
		if code := Main(t.Context(), env); code != 0 || out.String() != string(want) ||
			!strings.Contains(stderr.String(), note) {
			t.Errorf("%s: exit %d, %s\n%s\nwant\n%s", name, code, stderr, out, want)
		}
	}
}
