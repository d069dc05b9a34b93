package merge_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/input/merge"
)

// rows counts the samples of a profile by all that names them, in words.
func rows(p *ingest.Profile) map[string]uint64 {
	out := make(map[string]uint64)
	for i := range p.Samples {
		s := &p.Samples[i]
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s %d %d %s|", p.Events[s.Event].Name, p.Strings[s.Comm], s.PID, s.CPU,
			p.Strings[s.Tags])
		for _, l := range p.Stack(nil, s.Stack) {
			loc := p.Locations[l]
			o := &p.Objects[loc.Object]
			fmt.Fprintf(&b, " %s %s %#x %v", o.File.Path, o.ID, uint64(loc.Offset), p.Names.Reasons[l])
			if o.Kernel != ingest.NoObject {
				fmt.Fprintf(&b, " of %s", p.Objects[o.Kernel].ID)
			}
			for _, f := range p.Names.At(l) {
				fn := &p.Names.Functions[f.Func]
				fmt.Fprintf(&b, " %s %s:%d", fn.SystemName, p.Objects[fn.Object].File.Path, f.Line)
			}
		}
		out[b.String()] += s.Count
	}
	return out
}

func TestPart(t *testing.T) {
	for name, p := range map[string]*ingest.Profile{
		"every kind": profilebuild.EveryKind(),
		"random": profilebuild.Random(3, profilebuild.Size{Objects: 9, Functions: 80, Locations: 300,
			Stacks: 500, Depth: 7}),
	} {
		want, got := rows(p), make(map[string]uint64)
		var comms = make(map[string][]ingest.Sample)
		for _, s := range p.Samples {
			comms[p.Strings[s.Comm]] = append(comms[p.Strings[s.Comm]], s)
		}
		for _, samples := range comms {
			q := merge.Part(p, samples)
			for text, n := range rows(q) {
				got[text] += n
			}
			if len(comms) > 1 && len(q.Locations) >= len(p.Locations) {
				t.Errorf("%s: a part has %d locations of %d", name, len(q.Locations), len(p.Locations))
			}
			again, err := merge.Profiles([]*ingest.Profile{q})
			if err != nil || !maps.Equal(rows(again), rows(q)) {
				t.Errorf("%s: a merge of the part alone differs: %v", name, err)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: the parts have %d kinds of samples, the whole %d", name, len(got), len(want))
		}
	}
	empty := merge.Part(profilebuild.EveryKind(), nil)
	if len(empty.Samples)+len(empty.Locations)+len(empty.Objects) > 0 || len(empty.Events) != 1 {
		t.Errorf("of no samples: %d locations, %d events", len(empty.Locations), len(empty.Events))
	}
}
