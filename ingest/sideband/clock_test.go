package sideband

import "testing"

func TestKernelReach(t *testing.T) {
	for _, tc := range []struct {
		arch        string
		start, want uint64
	}{
		{"x86_64", 0xffffffff81000000, 0xffffffffc0000000},
		{"x86_64", 0xffffffffc0000000, 0xffffffffc8000000},
		{"aarch64", 0xffff800008000000, 0xffff800010000000},
		{"aarch64", 0xffffffffffff0000, ^uint64(0)},
	} {
		if got := kernelReach(tc.arch, tc.start); got != tc.want {
			t.Errorf("%s from %#x: %#x, want %#x", tc.arch, tc.start, got, tc.want)
		}
	}
}

func TestClock(t *testing.T) {
	c := Clock{Timed: true}
	for _, r := range []struct {
		time   uint64
		offset Position
		want   uint64
	}{{5, 100, 5}, {3, 200, 3}, {0, 250, 0}, {NoTime, 300, 6}, {9, 400, 9}, {NoTime, 500, 10}} {
		if got := c.note(r.time, r.offset, false); got != r.want {
			t.Errorf("record of time %d: %d, want %d", r.time, got, r.want)
		}
	}
	for _, s := range []struct {
		time   uint64
		offset Position
		want   uint64
	}{{7, 350, 7}, {0, 350, 0}, {NoTime, 50, 0}, {NoTime, 150, 5}, {NoTime, 350, 6}, {NoTime, 999,
		10}} {
		if got := c.At(s.time, s.offset); got != s.want {
			t.Errorf("sample of time %d at %d: %d, want %d", s.time, s.offset, got, s.want)
		}
	}
	c = Clock{}
	if got := c.note(77, 100, true); got != 0 {
		t.Errorf("a record before all samples: %d, want 0", got)
	}
	if a, b := c.note(77, 100, false), c.At(3, 200); a != 100 || b != 200 {
		t.Errorf("without times: %d and %d, want the positions", a, b)
	}
}
