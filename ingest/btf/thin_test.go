package btf

import (
	"testing"

	"symbolize/fixtures/bpfbuild"
)

func blob(big bool) []byte {
	return bpfbuild.BTF(big, &bpfbuild.Program{Funcs: []bpfbuild.Func{{Name: "one"}, {Name: "two"}}})
}

// TestParse reads names of both byte orders, and no prefix of a blob.
func TestParse(t *testing.T) {
	for _, big := range []bool{false, true} {
		b := blob(big)
		types, err := Parse("test", b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if types.Len() != 4 || types.Kind(3) != KindFunc || types.Name(3) != "two" ||
			types.Name(0) != "" || len(types.Raw()) != len(b) {
			t.Errorf("%+v", types)
		}
		if _, ok := types.StringAt(1 << 31); ok {
			t.Error("a string behind the table")
		}
		for n := range b {
			if _, err := Parse("test", b[:n:n], nil); err == nil {
				t.Errorf("%d bytes of %d are whole", n, len(b))
			}
		}
		unknown := append([]byte(nil), b...)
		at := 24 + 12 + 7 // info of the first function, highest byte
		if big {
			at -= 3
		}
		unknown[at] = 31
		if _, err := Parse("test", unknown, nil); err == nil {
			t.Error("a type of kind 31 is known")
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(blob(false))
	f.Add(blob(true))
	f.Fuzz(func(t *testing.T, b []byte) {
		types, err := Parse("fuzz", b, nil)
		if err != nil {
			return
		}
		for id := range ID(types.Len()) {
			_, _ = types.Name(id), types.Kind(id)
		}
	})
}
