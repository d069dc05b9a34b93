package bundle

import "testing"

// TestAddresses: bundles that were written have these numbers.
func TestAddresses(t *testing.T) {
	if OutsideAddress != 0 || GoneAddress != 0xff_ffff_ffff_ffff {
		t.Errorf("outside %#x, gone %#x: not as the package comment has them", OutsideAddress,
			uint64(GoneAddress))
	}
}

// TestCompareCallers: outermost frames are compared first; a stack precedes longer stacks with the
// same callers.
func TestCompareCallers(t *testing.T) {
	list := []string{"", "a", "aa", "ba", "xyba", "ca", "b", "ab", "zzb"} // one byte is a frame
	for i, a := range list {
		for j, b := range list {
			got := CompareCallers([]byte(a), []byte(b), 1)
			if want := max(min(i-j, 1), -1); max(min(got, 1), -1) != want {
				t.Errorf("%q and %q: %d, want %d", a, b, got, want)
			}
		}
	}
	if got := CompareCallers([]byte("12ab"), []byte("11ab"), 2); got <= 0 {
		t.Errorf("frames of two bytes: %d", got)
	}
}
