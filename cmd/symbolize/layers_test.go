package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"symbolize/analyze/annotate"
)

// TestLayersOfHosts: by C line and by BPF line record the samples of a program on two hosts are the
// sums of both alone; one host hardens its code.
func TestLayersOfHosts(t *testing.T) {
	t.Setenv(localEnv, "0")
	count := func(names ...string) (lines, runs map[uint32]uint64, total uint64) {
		args := []string{"--store", filepath.Join(t.TempDir(), "none"), "annotate", "-q", "--format", "json"}
		for _, name := range names {
			args = append(args, "../../fixtures/layers/"+name)
		}
		var an annotate.Annotation
		if err := json.Unmarshal([]byte(runMain(t, append(args, "spread")...)), &an); err != nil {
			t.Fatal(err)
		}
		if len(an.Functions) != 1 {
			t.Fatalf("%v: %d functions", names, len(an.Functions))
		}
		lines, runs = make(map[uint32]uint64), make(map[uint32]uint64)
		for _, l := range an.Functions[0].Lines {
			lines[l.Line] += l.Samples
		}
		for _, r := range an.Functions[0].BPF.Runs {
			runs[r.Line] += r.Samples
		}
		return lines, runs, an.Functions[0].Samples
	}
	lines, runs, total := count("one.data", "two.data")
	for _, name := range []string{"one.data", "two.data"} {
		l, r, n := count(name)
		total -= n
		for line := range lines {
			lines[line] -= l[line]
			runs[line] -= r[line]
		}
	}
	for line := range lines {
		if lines[line] != 0 || runs[line] != 0 {
			t.Errorf("line %d: %d and %d samples too many", line, int64(lines[line]), int64(runs[line]))
		}
	}
	if total != 0 || len(lines) < 5 {
		t.Errorf("%d samples too many; %d lines", int64(total), len(lines))
	}
}
