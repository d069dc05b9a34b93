package flags

import "testing"

func TestSize(t *testing.T) {
	for _, c := range []struct {
		in, out string
		n       int64
	}{
		{"0", "0", 0},
		{"1000", "1000", 1000},
		{"512MiB", "512MiB", 512 << 20},
		{"2g", "2GiB", 2 << 30},
		{"1024 kb", "1MiB", 1 << 20},
		{"3B", "3", 3},
		{"1T", "1024GiB", 1 << 40},
	} {
		var b Size
		if err := b.Set(c.in); err != nil || int64(b) != c.n || b.String() != c.out {
			t.Errorf("%q: %d %q %v, want %d %q", c.in, int64(b), b.String(), err, c.n, c.out)
		}
	}
	for _, in := range []string{"", "x", "-1", "1.5G", "99999999999999999999", "9999999999T", "G"} {
		var b Size
		if err := b.Set(in); err == nil {
			t.Errorf("%q is taken as %d", in, int64(b))
		}
	}
}
