package summary

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/advice"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
)

// example is a run over two profiles of every kind of object.
func example() *Run {
	r := &Run{Command: `batch "run"`, Captures: 3, Failed: 1, Tables: 7, Seconds: 1.5, CPU: 2.25,
		Memory: 1 << 20, Exit: 3, Finished: 1_790_000_000}
	for range 2 {
		r.Add(advice.NewCoverage(profilebuild.EveryKind(), advice.CoverageOptions{}))
	}
	return r
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := example().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "run.json", b.Bytes())
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	c := advice.NewCoverage(profilebuild.EveryKind(), advice.CoverageOptions{})
	named, missing := uint64(0), uint64(0)
	for _, d := range c.Domains {
		named += d.NamedFrames
	}
	for _, m := range c.Missing {
		missing += m.Frames
	}
	for key, want := range map[string]uint64{"samples": 2 * c.Samples, "frames": 2 * c.Frames,
		"named_frames": 2 * named} {
		if got[key] != float64(want) {
			t.Errorf("%s is %v, want %d", key, got[key], want)
		}
	}
	sum := uint64(0)
	for _, g := range example().join().Missing {
		sum += g.Frames
	}
	if sum != 2*missing || len(c.Missing) == 0 {
		t.Errorf("%d frames are missing, want %d", sum, 2*missing)
	}
}

// The lines of the text format.
var (
	helpLine   = regexp.MustCompile(`^# HELP (symbolize_[a-z_]+) \S.*$`)
	typeLine   = regexp.MustCompile(`^# TYPE (symbolize_[a-z_]+) gauge$`)
	sampleLine = regexp.MustCompile(
		`^(symbolize_[a-z_]+)\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\} \S+$`)
)

// TestMetrics holds the form of the file: of each metric the help, the type, then its samples, each
// with other labels.
func TestMetrics(t *testing.T) {
	var b bytes.Buffer
	if err := example().WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "run.prom", b.Bytes())
	name, seen := "", []string{}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		if m := helpLine.FindStringSubmatch(lines[i]); m != nil {
			name = m[1]
			if i++; slices.Contains(seen, name) || i == len(lines) ||
				typeLine.FindStringSubmatch(lines[i]) == nil || !strings.Contains(lines[i], " "+name+" ") {
				t.Errorf("line %d: %s", i, lines[i])
			}
		} else if m := sampleLine.FindStringSubmatch(lines[i]); m == nil || m[1] != name {
			t.Errorf("line %d is no sample of %s: %s", i+1, name, lines[i])
		}
		if slices.Contains(seen, strings.Split(lines[i], "} ")[0]) {
			t.Errorf("line %d is there twice: %s", i+1, lines[i])
		}
		seen = append(seen, name, strings.Split(lines[i], "} ")[0])
	}
}

// TestGaps: a list of many objects is bounded, and keeps the heaviest.
func TestGaps(t *testing.T) {
	r := &Run{}
	for i := range 3 * maxGaps {
		r.Add(&advice.Coverage{Missing: []advice.Missing{
			{Object: strings.Repeat("x", i%700), BuildID: string(rune(i)), Reason: "not indexed", Frames: 1},
			{Object: "heavy", Reason: "stripped", Frames: 5}}})
	}
	r.finish()
	if len(r.Missing) > maxGaps || r.Missing[0].Object != "heavy" || r.Missing[0].Frames != 15*maxGaps {
		t.Errorf("%d gaps, the first %+v", len(r.Missing), r.Missing[0])
	}
}
