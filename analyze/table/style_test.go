package table

import (
	"testing"
	"unicode/utf8"
)

// TestFit: names are cut in the middle to the width that is left, but never to nothing.
func TestFit(t *testing.T) {
	for _, tt := range []struct {
		name  string
		width int
		taken int
		want  string
	}{
		{name: "std::vector::push_back", width: 0, taken: 500, want: "std::vector::push_back"},
		{name: "std::vector::push_back", width: 40, taken: 18, want: "std::vector::push_back"},
		{name: "std::vector::push_back", width: 40, taken: 20, want: "std::vect…:push_back"},
		{name: "std::vector::push_back", width: 40, taken: 39, want: "std::…h_back"},
		{name: "short", width: 10, taken: 9, want: "short"},
		{name: "äöüäöüäöüäöüäöü", width: 20, taken: 6, want: "äöüäöü…üäöüäöü"},
	} {
		got := Style{Width: tt.width}.Fit(tt.name, tt.taken)
		if got != tt.want {
			t.Errorf("%q at %d of %d: %q, want %q", tt.name, tt.taken, tt.width, got, tt.want)
		}
		if n := utf8.RuneCountInString(got); tt.width > 0 && n > max(tt.width-tt.taken, minName) {
			t.Errorf("%q has %d characters", got, n)
		}
	}
}

// TestFitBoth: the suffix is cut before the name, at its start.
func TestFitBoth(t *testing.T) {
	for width, want := range map[int]string{
		0: "std::sort  (libstdc++.so.6)", 37: "std::sort  (libstdc++.so.6)",
		36: "std::sort  …ibstdc++.so.6)", 27: "std::sort  …so.6)", 26: "std::sort", 19: "std::sort",
		12: "std::sort",
	} {
		got := Style{Width: width}.FitBoth("std::sort", "  (libstdc++.so.6)", 10)
		if got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
	got := Style{Width: 30}.FitBoth("std::vector::push_back", "  (app)", 12)
	if want := "std::vec…push_back"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWrap: lines break at spaces, not within commands; longer words stay whole.
func TestWrap(t *testing.T) {
	const text = "note: 3 objects from files: `symbolize index --for x` keeps them, and more"
	for width, want := range map[int]string{
		0: text, 74: text,
		60: "note: 3 objects from files: `symbolize index --for x` keeps\n  them, and more",
		20: "note: 3 objects from\n  files:\n  `symbolize index --for x`\n  keeps them, and\n  more",
		1:  "note:\n  3\n  objects\n  from\n  files:\n  `symbolize index --for x`\n  keeps\n  them,\n  and\n  more",
	} {
		if got := Wrap(text, width, "  "); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, got, want)
		}
	}
}

// TestPaint: colours by share, and none without the style.
func TestPaint(t *testing.T) {
	for _, tt := range []struct {
		part, all uint64
		want      string
	}{{part: 5, all: 100, want: "\x1b[31mx\x1b[0m"}, {part: 1, all: 100, want: "\x1b[32mx\x1b[0m"}, {part: 1,
		all: 1000, want: "x"}, {part: 0, all: 0, want: "x"}} {
		if got := (Style{Color: true}).Paint(Heat(tt.part, tt.all), "x"); got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.part, tt.all, got, tt.want)
		}
		if got := (Style{}).Paint(Heat(tt.part, tt.all), "x"); got != "x" {
			t.Errorf("%d of %d without colours: %q", tt.part, tt.all, got)
		}
	}
}
