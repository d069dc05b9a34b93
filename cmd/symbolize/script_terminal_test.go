package main

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// barBytes is a state of a progress bar: bytes read, and all that were found by then.
var barBytes = regexp.MustCompile(`(?:index|push|pull) .*?([0-9.]+) ?([KM]i)B / ([0-9.]+) ?([KM]i)B, ([0-9]+)/([0-9]+) objects`)

// cmdBar is `bar`: the last command drew a progress bar on its terminal (ttyin, 2>/dev/tty), which
// grew, was never over 100 %, and is gone in the end.
func cmdBar(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: bar")
	}
	drawn := ts.ReadFile("ttyout")
	states := barBytes.FindAllStringSubmatch(drawn, -1)
	var last float64
	grown := 0
	for _, s := range states {
		read, all := mebibytes(s[1], s[2]), mebibytes(s[3], s[4])
		if read < last || read > all {
			ts.Fatalf("a bar at %v of %v MiB, after %v", read, all, last)
		}
		if read > last {
			grown++
		}
		last = read
	}
	if grown < 2 {
		ts.Fatalf("%d states of the bar, %d of which grew:\n%q", len(states), grown, drawn)
	}
	// After the last one its line is erased, and no other drawn there.
	all := barBytes.FindAllStringIndex(drawn, -1)
	end := drawn[all[len(all)-1][0]:]
	if !strings.Contains(end, "\x1b[J") {
		ts.Fatalf("the bar is not taken away: %q", end)
	}
}

func mebibytes(number, unit string) float64 {
	n, _ := strconv.ParseFloat(number, 64)
	if unit == "Ki" {
		return n / 1024
	}
	return n
}
