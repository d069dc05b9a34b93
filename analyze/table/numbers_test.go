package table

import "testing"

func TestQuantity(t *testing.T) {
	for _, tt := range []struct {
		v    uint64
		unit string
		want string
	}{
		{999, "nanoseconds", "999ns"}, {1500, "nanoseconds", "1.50us"},
		{2_500_000, "nanoseconds", "2.50ms"},
		{112_886_450_000, "nanoseconds", "112.89s"}, {1023, "bytes", "1023B"},
		{1536, "bytes", "1.50kB"},
		{3 << 30, "bytes", "3.00GB"}, {12345, "count", "12345"},
	} {
		if got := Quantity(tt.v, tt.unit); got != tt.want {
			t.Errorf("%d %s is %s, want %s", tt.v, tt.unit, got, tt.want)
		}
	}
	for v, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000",
		1234567: "1,234,567"} {
		if got := Thousands(v); got != want {
			t.Errorf("%d is %s", v, got)
		}
	}
	for _, v := range []uint64{0, 5, 10} {
		if got := Percent(v, 10); got != map[uint64]string{0: "0%", 5: "50.00%", 10: "100%"}[v] {
			t.Errorf("%d of 10 is %s", v, got)
		}
	}
}
