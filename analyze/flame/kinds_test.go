package flame

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
)

// TestKinds: the page has the kinds of frames in the order of the data, in colours of the same hue
// as the picture.
func TestKinds(t *testing.T) {
	kind := regexp.MustCompile(`\{ name: "(\w+)", h: (\d+),`)
	list := kind.FindAllStringSubmatch(formatJS, -1)
	if len(list) != int(kindLabel) {
		t.Fatalf("page/format.js has %d kinds, want %d", len(list), kindLabel)
	}
	for i, k := range list {
		style := kindStyles[i]
		hue, err := strconv.ParseFloat(k[2], 64)
		if err != nil || k[1] != style.name {
			t.Errorf("kind %d of page/format.js is %s, want %s", i, k[1], style.name)
		}
		if own := hueOf(t, style.colour); math.Abs(own-hue) > 6 {
			t.Errorf("%s: the picture's hue is %.0f, the page's %.0f", style.name, own, hue)
		}
	}
}

// hueOf returns the hue in degrees of a colour "#rrggbb".
func hueOf(t *testing.T, colour string) float64 {
	t.Helper()
	var r, g, b int
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &r, &g, &b); err != nil {
		t.Fatal(err)
	}
	most, spread := max(r, g, b), float64(max(r, g, b)-min(r, g, b))
	hue := 0.0
	switch most {
	case r:
		hue = float64(g-b) / spread
	case g:
		hue = 2 + float64(b-r)/spread
	default:
		hue = 4 + float64(r-g)/spread
	}
	return math.Mod(60*hue+360, 360)
}
