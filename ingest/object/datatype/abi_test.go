package datatype

import (
	stdelf "debug/elf"
	"fmt"
	"strings"
	"testing"

	"symbolize/ingest/object/btf"
)

// Numbers of the types of TestArguments, in its Defs.
const (
	tInt = 1 + iota
	tPointer
	tPair
	tBig
	tWide
	tFloat
)

// TestArguments places parameters as the ABIs of x86-64 and arm64 do.
func TestArguments(t *testing.T) {
	defs := []btf.Def{
		{Kind: btf.KindInt, Name: "int", Size: 4, Int: btf.Int{Bits: 32, Signed: true}},
		{Kind: btf.KindPtr, Ref: tInt},
		{Kind: btf.KindStruct, Name: "pair", Size: 16, Items: []btf.DefItem{{Name: "a", Ref: tPointer}, {Name: "b", Ref: tPointer, Value: 64}}},
		{Kind: btf.KindStruct, Name: "big", Size: 24, Items: []btf.DefItem{{Name: "p", Ref: tPair}, {Name: "c", Ref: tPointer, Value: 128}}},
		{Kind: btf.KindInt, Name: "__int128", Size: 16, Int: btf.Int{Bits: 128, Signed: true}},
		{Kind: btf.KindFloat, Name: "double", Size: 8},
	}
	for _, c := range []struct {
		name       string
		params     []int // -1: "..."
		x86, arm64 string
	}{
		{"none", nil, "", ""},
		{"registers", []int{tPointer, tInt}, "[5] [4]", "[0] [1]"},
		{"seven", []int{tInt, tInt, tInt, tInt, tInt, tInt, tInt}, "[5] [4] [1] [2] [8] [9] +0", "[0] [1] [2] [3] [4] [5] [6]"},
		{"a pair", []int{tInt, tPair, tInt}, "[5] [4 1] [2]", "[0] [1 2] [3]"},
		{"a pair that does not fit", []int{tInt, tInt, tInt, tInt, tInt, tPair, tInt}, "[5] [4] [1] [2] [8] +0 [9]",
			"[0] [1] [2] [3] [4] [5 6] [7]"},
		{"in memory", []int{tBig, tInt}, "+0 [5]", "&[0] [1]"},
		{"16 bytes", []int{tInt, tWide}, "[5] [4 1]", "[0] [2 3]"},
		{"after the registers", []int{tPair, tPair, tPair, tInt, tPair, tInt}, "[5 4] [1 2] [8 9] +0 +8 +24",
			"[0 1] [2 3] [4 5] [6] +0 +16"},
		{"variadic", []int{tPointer, -1}, "[5]", "[0]"},
		{"a float", []int{tInt, tFloat}, "unknown", "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := btf.NewBuilder(false, 8)
			proto := btf.Def{Kind: btf.KindFuncProto, Ref: tInt}
			for _, p := range c.params {
				proto.Items = append(proto.Items, btf.DefItem{Name: "p", Ref: max(p, 0)})
			}
			if n := len(proto.Items); n > 0 && c.params[n-1] < 0 {
				proto.Items[n-1] = btf.DefItem{}
			}
			ids := b.Add(append(append([]btf.Def(nil), defs...), proto))
			types, final, err := b.Types("test")
			if err != nil {
				t.Fatal(err)
			}
			for machine, want := range map[stdelf.Machine]string{stdelf.EM_X86_64: c.x86, stdelf.EM_AARCH64: c.arm64} {
				list, ok := Arguments(machine, types, final(ids[len(ids)-1]))
				var got []string
				for _, a := range list {
					text := fmt.Sprint(a.Registers)
					if a.OnStack {
						text = fmt.Sprintf("+%d", a.Stack)
					}
					if a.Pointer {
						text = "&" + text
					}
					got = append(got, text)
				}
				if text := strings.Join(got, " "); ok != (want != "unknown") || ok && text != want {
					t.Errorf("%v: %v %s, want %s", machine, ok, text, want)
				}
			}
			if _, ok := Arguments(stdelf.EM_S390, types, final(ids[len(ids)-1])); ok {
				t.Error("of s390x")
			}
		})
	}
}
