package advice_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/analyze/advice"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/input/pprof"
)

// TestNamedPercentIsOne has functions without a name of their own, bounds that unwind
// tables gave, in a profile of several events: its comment and its summary have one share.
func TestNamedPercentIsOne(t *testing.T) {
	for _, count := range []bool{false, true} {
		p := profilebuild.Random(7, profilebuild.Size{Objects: 5, Functions: 60, Locations: 900,
			Stacks: 300, Depth: 8})
		p.Events = append(p.Events, ingest.Event{Name: "faults", Unit: "count"})
		for i := range p.Samples {
			if i%4 == 0 {
				p.Samples[i].Event, p.Samples[i].Weight = 1, 40_000_000*uint64(i)
			}
		}
		bounds := 0
		for l := range p.Locations {
			if l%3 == 0 && len(p.Names.At(ingest.LocationID(l))) > 0 {
				p.Names.Reasons[l] = ingest.Stripped
				bounds++
			}
		}
		if bounds == 0 {
			t.Fatalf("%d bounds", bounds)
		}
		c := advice.NewCoverage(p, advice.CoverageOptions{Count: count})
		named := c.NamedFrames
		var out bytes.Buffer
		if err := pprof.Write(&out, p, pprof.WriteOptions{Count: count}); err != nil {
			t.Fatal(err)
		}
		back, err := profile.Parse(&out)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("symbolize: %.1f%% of samples named by their innermost frame, %.1f%% of "+
			"frames", c.Named, named)
		if !slices.Contains(back.Comments, want) || named < 1 || named > 99 {
			t.Errorf("count %v: comments %q, want %q", count, back.Comments, want)
		}
	}
}
