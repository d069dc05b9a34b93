//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/analyze/bpfmap"
)

// TestLiveDrops has droprun drop packets while `capture --maps` dumps its maps. From the
// bundle alone each packet is counted at the kernel function that drops it, and the
// intervals of the heat map add up to the histogram.
func TestLiveDrops(t *testing.T) {
	needLive(t)
	dir := t.TempDir()
	command(t, ".", "go", "build", "-o", filepath.Join(dir, "droprun"), "../../fixtures/droprun")
	data := filepath.Join(dir, "drops.data")
	code, out, said := runLive(t, "capture", "-o", data, "--maps", "drop_locations,drop_gaps",
		"--interval", "100ms", "--", filepath.Join(dir, "droprun"), "-for", "2s", "-every", "2ms",
		"-keep", "1s")
	var sent uint64
	_, after, _ := strings.Cut(out, "sent ")
	if _, err := fmt.Sscan(after, &sent); err != nil || code != 0 || sent < 100 {
		t.Fatalf("status %d, %v\n%s\n%s", code, err, out, said)
	}
	view := func(into any, args ...string) {
		t.Helper()
		code, out, said := runLive(t, append([]string{"map", "--format", "json"},
			append(args, data)...)...)
		if err := json.Unmarshal([]byte(out), into); err != nil || code != 0 {
			t.Fatalf("%v: status %d, %v\n%s", args, code, err, said)
		}
	}
	var symbols bpfmap.SymbolReport
	view(&symbols, "--map", "drop_locations", "--symbols", "key")
	var dropped uint64
	for _, row := range symbols.Rows {
		if len(row.Frames) == 0 {
			t.Errorf("%+v has no name", row)
		} else if strings.Contains(row.Frames[0].Function, "udp") {
			dropped += row.Count
		}
	}
	// There are dumps of after the last packet.
	if dropped < sent {
		t.Errorf("%d packets were sent, %d dropped by functions of UDP: %+v", sent, dropped, symbols.Rows)
	}
	var hist bpfmap.HistReport
	view(&hist, "--map", "drop_gaps", "--hist")
	var heat bpfmap.HeatReport
	view(&heat, "--map", "drop_gaps", "--heatmap")
	var total, drawn, before uint64
	for _, h := range hist.Histograms {
		total += h.Total
	}
	for i, x := range heat.Intervals {
		for _, c := range x.Counts {
			drawn += c.Count
		}
		if x.End <= x.Start || i > 0 && x.Start != heat.Intervals[i-1].End || x.Cleared {
			t.Errorf("interval %d: %+v", i, x)
		}
	}
	if len(heat.Notes) == 1 {
		fmt.Sscan(heat.Notes[0], &before)
	}
	if len(hist.Histograms) != 1 || hist.Scale != "log2" || len(heat.Intervals) < 10 || total < 100 ||
		drawn+before != total {
		t.Errorf("%d intervals with %d counts and %d before, the histogram has %d: %+v",
			len(heat.Intervals), drawn, before, total, hist)
	}
	picture := filepath.Join(dir, "heat.html")
	code, _, said = runLive(t, "map", "--map", "drop_gaps", "--heatmap", "-o", picture, data)
	if code != 0 {
		t.Fatal(said)
	}
	if b, err := os.ReadFile(picture); err != nil || !strings.Contains(string(b), "drop_gaps") {
		t.Errorf("%v, %d bytes", err, len(b))
	}
}

// runLive runs the command line in this process, with a store of its own.
func runLive(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	store := filepath.Join(t.TempDir(), "store")
	env, out, said := inProcess(append([]string{"--store", store}, args...)...)
	status = Main(t.Context(), env)
	return status, out.String(), said.String()
}
