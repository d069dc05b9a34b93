package main

import (
	"os/exec"
	"testing"

	"symbolize/fixtures/browser"
)

// TestLiveWeb shows each of pprof's pages in a browser (SYMBOLIZE_LIVE=1): they have what they should, write
// nothing to the console, and ask for nothing but themselves.
func TestLiveWeb(t *testing.T) {
	browser.NeedLive(t)
	base := startWeb(t)
	_, noDot := exec.LookPath("dot")
	for _, tt := range []struct{ page, ready, has string }{
		{"ui/flamegraph", "#stack-holder", "collatz"},
		{"ui/top", "#rows tr, tbody tr", "collatz"},
		{"ui/peek?f=collatz", "#content", "collatz fixed.c:14"},
		{"ui/disasm?f=collatz", "#content", "ROUTINE ======================== collatz"},
		{"ui/source?f=collatz", "#content", "return steps;"},
		{"ui/graph", "#graph", "collatz"},
	} {
		t.Run(tt.page, func(t *testing.T) {
			if tt.ready == "#graph" && noDot != nil {
				t.Skip("SKIPPED: the graph needs dot (Debian: graphviz)")
			}
			b := browser.OpenURL(t, base+tt.page, tt.ready)
			b.Await(`document.body.innerText.includes("` + tt.has + `") ||
				document.body.textContent.includes("` + tt.has + `")`)
			b.Shot("web")
			b.Quiet()
		})
	}
}
