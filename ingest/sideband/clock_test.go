package sideband

import "testing"

func TestKernelReach(t *testing.T) {
	for _, tc := range []struct {
		arch        string
		start, want uint64
	}{
		{arch: "x86_64", start: 0xffffffff81000000, want: 0xffffffffc0000000},
		{arch: "x86_64", start: 0xffffffffc0000000, want: 0xffffffffc8000000},
		{arch: "aarch64", start: 0xffff800008000000, want: 0xffff800010000000},
		{arch: "aarch64", start: 0xffffffffffff0000, want: ^uint64(0)},
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
	}{
		{time: 5, offset: 100, want: 5},
		{time: 3, offset: 200, want: 3},
		{time: 0, offset: 250, want: 0},
		{time: NoTime, offset: 300, want: 6},
		{time: 9, offset: 400, want: 9},
		{time: NoTime, offset: 500, want: 10},
	} {
		if got := c.note(r.time, r.offset, false); got != r.want {
			t.Errorf("record of time %d: %d, want %d", r.time, got, r.want)
		}
	}
	for _, s := range []struct {
		time   uint64
		offset Position
		want   uint64
	}{
		{time: 7, offset: 350, want: 7},
		{time: 0, offset: 350, want: 0},
		{time: NoTime, offset: 50, want: 0},
		{time: NoTime, offset: 150, want: 5},
		{time: NoTime, offset: 350, want: 6},
		{time: NoTime, offset: 999, want: 10},
	} {
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
