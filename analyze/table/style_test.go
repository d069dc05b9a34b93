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
		{"std::vector::push_back", 0, 500, "std::vector::push_back"},
		{"std::vector::push_back", 40, 18, "std::vector::push_back"},
		{"std::vector::push_back", 40, 20, "std::vect…:push_back"},
		{"std::vector::push_back", 40, 39, "std::…h_back"},
		{"short", 10, 9, "short"},
		{"äöüäöüäöüäöüäöü", 20, 6, "äöüäöü…üäöüäöü"},
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

// TestPaint: colours by share, and none without the style.
func TestPaint(t *testing.T) {
	for _, tt := range []struct {
		part, all uint64
		want      string
	}{{5, 100, "\x1b[31mx\x1b[0m"}, {1, 100, "\x1b[32mx\x1b[0m"}, {1, 1000, "x"}, {0, 0, "x"}} {
		if got := (Style{Color: true}).Paint(Heat(tt.part, tt.all), "x"); got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.part, tt.all, got, tt.want)
		}
		if got := (Style{}).Paint(Heat(tt.part, tt.all), "x"); got != "x" {
			t.Errorf("%d of %d without colours: %q", tt.part, tt.all, got)
		}
	}
}
