package cli

import (
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/suggest"
)

func TestSize(t *testing.T) {
	for _, c := range []struct {
		in, out string
		n       int64
	}{
		{in: "0", out: "0", n: 0},
		{in: "1000", out: "1000", n: 1000},
		{in: "512MiB", out: "512MiB", n: 512 << 20},
		{in: "2g", out: "2GiB", n: 2 << 30},
		{in: "1024 kb", out: "1MiB", n: 1 << 20},
		{in: "3B", out: "3", n: 3},
		{in: "1T", out: "1024GiB", n: 1 << 40},
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

func TestNearest(t *testing.T) {
	names := []string{"app::run", "app::score", "collatz", "std::sort", "std::map::find", "run_all", "rerun"}
	for word, want := range map[string]string{
		"SCORE": "app::score", "socre": "app::score", "colatz": "collatz", "Run": "app::run run_all rerun",
		"nothing": "", "x": "", "": "app::run app::score collatz", "fnid": "std::map::find",
	} {
		if got := strings.Join(suggest.Nearest(word, names), " "); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	if got := Some(names); got != "app::run, app::score, collatz and 4 more" {
		t.Error(got)
	}
	if got := Some(names[:4]); got != "app::run, app::score, collatz, std::sort" {
		t.Error(got)
	}
}
