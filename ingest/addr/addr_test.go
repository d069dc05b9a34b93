package addr

import "testing"

func TestRangeIsHalfOpen(t *testing.T) {
	r := Range{Start: 0x1000, End: 0x1010}
	for a, want := range map[Addr]bool{0xfff: false, 0x1000: true, 0x100f: true, 0x1010: false} {
		if got := r.Contains(a); got != want {
			t.Errorf("Contains(%#x) = %v", a, got)
		}
	}
	if (Range{Start: 5, End: 5}).Contains(5) {
		t.Error("an empty range contains its start")
	}
}
