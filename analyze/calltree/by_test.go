package calltree_test

import (
	"slices"
	"testing"

	"symbolize/analyze/calltree"
	"symbolize/ingest"
)

func TestTreeBy(t *testing.T) {
	profile := func(command string, weights ...uint64) *ingest.Profile {
		p := &ingest.Profile{Events: []ingest.Event{{Name: "cycles"}},
			Meta: ingest.Meta{Command: command, MainProgram: "/bin/a"}}
		for i, w := range weights {
			p.Samples = append(p.Samples, ingest.Sample{Comm: ingest.StringID(i), Count: 1, Weight: w})
		}
		return p
	}
	for _, test := range []struct {
		name     string
		profiles []*ingest.Profile
		comms    bool
	}{
		{name: "one comm", profiles: []*ingest.Profile{profile("", 100)}},
		{name: "none", profiles: []*ingest.Profile{profile("")}},
		{name: "two comms", profiles: []*ingest.Profile{profile("", 99, 1)}, comms: true},
		{name: "one below 1 %", profiles: []*ingest.Profile{profile("", 995, 5)}},
		{name: "without weights", profiles: []*ingest.Profile{profile("", 0, 0)}, comms: true},
		{name: "a whole machine", profiles: []*ingest.Profile{profile("perf record -ag sleep 1", 995, 5)},
			comms: true},
		{name: "-a of the program", profiles: []*ingest.Profile{profile("perf record -- x -a", 995, 5)}},
		{name: "-a after the program", profiles: []*ingest.Profile{profile("perf record a -a", 995, 5)}},
		{name: "a whole machine with one comm", profiles: []*ingest.Profile{profile("perf record -a", 9)}},
		{name: "of two profiles the second", comms: true,
			profiles: []*ingest.Profile{profile("", 1), profile("", 1, 1)}},
	} {
		by := calltree.TreeBy(0, test.profiles...)
		if got := slices.Contains(by, calltree.Comm); got != test.comms {
			t.Errorf("%s: by %v, want comms %v", test.name, by, test.comms)
		}
	}
}
