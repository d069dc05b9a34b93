package table

import "testing"

func TestQuantity(t *testing.T) {
	for _, tt := range []struct {
		v    uint64
		unit string
		want string
	}{
		{v: 999, unit: "nanoseconds", want: "999ns"}, {v: 1500, unit: "nanoseconds",
			want: "1.50us"},
		{v: 2_500_000, unit: "nanoseconds", want: "2.50ms"},
		{v: 112_886_450_000, unit: "nanoseconds", want: "112.89s"}, {v: 1023, unit: "bytes",
			want: "1023B"},
		{v: 1536, unit: "bytes", want: "1.50kB"},
		{v: 3 << 30, unit: "bytes", want: "3.00GB"}, {v: 12345, unit: "count", want: "12345"},
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
