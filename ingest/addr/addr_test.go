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

func TestSite(t *testing.T) {
	for _, tt := range []struct {
		at   PC
		ret  bool
		want PC
	}{
		{at: 0x401005, ret: true, want: 0x401004},
		{at: 0x401005, ret: false, want: 0x401005},
		{at: 1, ret: true, want: 0},
		{at: 0, ret: true, want: 0}, // not the last byte of all memory
		{at: ^PC(0), ret: true, want: ^PC(0) - 1},
	} {
		got := Site(tt.at, tt.ret)
		if got != tt.want {
			t.Errorf("Site(%#x, %v) = %#x, want %#x", tt.at, tt.ret, got, tt.want)
		}
		if back := Return(got, tt.ret); tt.at != 0 && back != tt.at {
			t.Errorf("Return(%#x, %v) = %#x, want %#x", got, tt.ret, back, tt.at)
		}
	}
}
