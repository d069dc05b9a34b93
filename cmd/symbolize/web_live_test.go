package main

import (
	"os/exec"
	"testing"

	"symbolize/fixtures/browser"
)

// TestLiveWeb shows each of pprof's pages in a browser (SYMBOLIZE_LIVE=1): they have what they
// should, write nothing to the console, and ask for nothing but themselves.
func TestLiveWeb(t *testing.T) {
	browser.NeedLive(t)
	base := startWeb(t)
	_, noDot := exec.LookPath("dot")
	for _, tt := range []struct{ page, ready, has string }{
		{page: "ui/flamegraph", ready: "#stack-holder", has: "collatz"},
		{page: "ui/top", ready: "#rows tr, tbody tr", has: "collatz"},
		{page: "ui/peek?f=collatz", ready: "#content", has: "collatz fixed.c:14"},
		{page: "ui/disasm?f=collatz", ready: "#content",
			has: "ROUTINE ======================== collatz"},
		{page: "ui/source?f=collatz", ready: "#content", has: "return steps;"},
		{page: "ui/graph", ready: "#graph", has: "collatz"},
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
