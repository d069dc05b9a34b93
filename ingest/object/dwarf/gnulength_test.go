package dwarf

import "testing"

// gcc's lengths of ranges that begin at "label - 1" are two too small.
func TestGNULength(t *testing.T) {
	for _, c := range []struct {
		in   uint32
		want uint64
	}{{0, 0}, {1, 1}, {0x25, 0x25}, {1<<32 - 3, 1<<32 - 3}, {1<<32 - 2, 0}, {1<<32 - 1, 1}} {
		if got := gnuLength(c.in); got != c.want {
			t.Errorf("%#x: %#x, want %#x", c.in, got, c.want)
		}
	}
}
