package flame_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/flame"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// TestStates: pages of wall and off-cpu have the state of threads as a label, once, and pictures of
// wall the colour of the state that most of a frame is in.
func TestStates(t *testing.T) {
	for _, tt := range []struct {
		event, tags string
		label       bool
		classes     []string // of a picture
	}{
		{event: ingest.WallEvent, label: true, classes: []string{`class="s0"`, `class="s1"`, ">running<", ">sleeping (S)<"}},
		{event: ingest.WallEvent, tags: ingest.AllLabels, label: true, classes: []string{`class="s0"`}},
		{event: ingest.WallEvent, tags: ingest.StateTag, label: true, classes: []string{`class="s0"`}},
		{event: ingest.OffCPUEvent, label: true, classes: []string{`class="user"`}},
		{event: "cycles", classes: []string{`class="user"`}},
	} {
		p := profilebuild.Stacks(map[string]uint64{"main;burn": 5, "main;nap": 9, "idle": 2})
		p.Events[0].Name = tt.event
		strs := map[string]ingest.StringID{}
		for _, s := range []string{ingest.RunningState, "S"} {
			strs[s] = ingest.StringID(len(p.Strings))
			p.Strings = append(p.Strings, ingest.JoinTags(ingest.StateTag, s))
		}
		for i := range p.Samples {
			s := &p.Samples[i]
			s.Tags = strs["S"]
			if s.Weight == 5 {
				s.Tags = strs[ingest.RunningState]
			}
		}
		g := flame.New(p, flame.Options{Event: -1, Keep: ingest.Keep{Tags: tt.tags}})
		labels := 0
		for _, l := range g.Labels {
			if l.Name == ingest.StateTag {
				labels++
			}
		}
		if labels > 1 || labels == 1 != tt.label && tt.event != "cycles" {
			t.Errorf("%+v: labels %v", tt, g.Labels)
		}
		var b bytes.Buffer
		if err := g.WriteSVG(&b); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(tt.classes, func(c string) bool { return !strings.Contains(b.String(), c) }) {
			t.Errorf("%+v:\n%s", tt, b.String())
		}
	}
}
