package btf

import (
	"strings"
	"testing"
)

// A table has the bytes of its strings one after another, also of strings that extend over pieces.
func TestStringTable(t *testing.T) {
	for _, test := range []struct {
		name  string
		sizes []int
	}{
		{"none", nil},
		{"empty", []int{0}},
		{"short", []int{0, 3, 5}},
		{"exactly one piece", []int{pieceSize - 1, 4}},
		{"NUL in the next piece", []int{pieceSize, 4}},
		{"over two pieces", []int{pieceSize - 3, 9, 9}},
		{"over three pieces", []int{7, 2*pieceSize + 5, 9}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var table stringTable
			var want strings.Builder
			for i, n := range test.sizes {
				s := strings.Repeat("ab"[i%2:i%2+1], n)
				off := table.add(s)
				if int(off) != want.Len() {
					t.Errorf("string %d is at %d, want %d", i, off, want.Len())
				}
				want.WriteString(s + "\x00")
				if !table.is(off, s) || table.is(off, s+"x") || n > 0 && (table.is(off, s[1:]) || table.is(off, s[1:]+"x")) {
					t.Errorf("string %d of %d bytes is not the one that was added", i, n)
				}
			}
			if got := string(table.appendTo(nil)); got != want.String() || table.len != len(got) {
				t.Errorf("the table has %d bytes (%d noted), want %d, or they differ", len(got), table.len, want.Len())
			}
		})
	}
}
