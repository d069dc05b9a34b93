package analyze_test

import (
	"slices"
	"testing"

	"symbolize/analyze"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/store/local"
)

// TestReplayCompleted replays a capture with completed stacks: the samples have those of the profile.
func TestReplayCompleted(t *testing.T) {
	const folder = "../fixtures/callers"
	s, err := analyze.Open(t.Context(), analyze.Options{Local: &local.Options{Roots: []string{folder}},
		Naming: analyze.Naming{Callers: analyze.AllCallers}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Each(t.Context(), []string{folder + "/callers.data"}, func(c *input.Capture, p *ingest.Profile) error {
		type stack [8]ingest.LocationID
		left := make(map[stack]int)
		for _, x := range p.Samples {
			var key stack
			copy(key[:], p.Stack(nil, x.Stack))
			left[key] += int(x.Count)
		}
		if p.Stats.Callers.Restored == 0 || p.Stats.Callers.Cut == 0 {
			t.Errorf("nothing is completed: %+v", p.Stats.Callers)
		}
		return c.Replay(t.Context(), func(r *input.ReplaySample) error {
			var key stack
			for i, f := range r.Frames {
				key[i] = f.Location
			}
			if left[key]--; left[key] < 0 {
				t.Errorf("a sample has the stack %v, the profile has not", slices.DeleteFunc(key[:],
					func(l ingest.LocationID) bool { return l == 0 }))
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
