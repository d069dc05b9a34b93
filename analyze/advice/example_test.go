package advice_test

import (
	"fmt"
	"os"

	"symbolize/analyze/advice"
	"symbolize/analyze/table"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// How much of a profile has names, and what to do about the rest.
func ExampleNewCoverage() {
	c := advice.NewCoverage(profilebuild.EveryKind(), advice.CoverageOptions{})
	if err := c.WriteShort(os.Stdout, table.Style{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// samples    19: 18 cpu-clock (4.50ms), 1 page-faults (weight 1)
	// named      83.33% of the samples by their innermost frame, 78.43% of 53 frames
	// missing    5.56% in [vdso]: not indexed; symbolize index --kernel (10 more: -v)
}

// Each reason has a step that removes it.
func ExampleCase_Step() {
	program := ingest.Object{File: ingest.FileRef{Path: "/srv/app"}}
	for _, c := range []advice.Case{
		{Reason: ingest.Stripped, Object: &program},
		{Reason: ingest.StackTruncated, Object: &program, Copied: 8192},
	} {
		fmt.Printf("%s: %s\n", c.Reason, c.Step())
	}
	// Output:
	// stripped: symbolize index /srv/app
	// stack truncated: perf record --call-graph dwarf,65528
}
