package btf

import (
	"testing"

	"symbolize/fixtures/golden"
)

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
	golden.Compare(t, "kinds.c", got)
}
