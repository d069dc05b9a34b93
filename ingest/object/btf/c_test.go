package btf

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var updateC = flag.Bool("update", false, "write testdata/kinds.c anew")

// TestCGolden prints all types of a BPF object, with the layout and without.
func TestCGolden(t *testing.T) {
	types := kinds(t)
	var got []byte
	for _, o := range []*COptions{nil, {Plain: true}} {
		for id := range ID(types.Len()) {
			if types.Name(id) == "" && o != nil {
				continue
			}
			var err error
			if got, err = types.AppendC(got, id, o); err != nil {
				t.Errorf("type %d: %v", id, err)
			}
		}
	}
	path := filepath.Join("testdata", "kinds.c")
	if *updateC {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("printed\n%s\nand not what %s has", got, path)
	}
}
