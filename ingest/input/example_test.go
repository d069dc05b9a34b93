package input_test

import (
	"context"
	"fmt"

	"symbolize/ingest/input"
)

// A capture becomes counted stacks of places in objects. Names come later, from symbol tables.
func Example() {
	ctx := context.Background()
	c, err := input.Open(ctx, "../../fixtures/captures/fixed.data", input.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	p, err := c.Profile(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Stats.Samples, "samples,", p.DistinctStacks(), "stacks")
	for i := range p.Objects {
		fmt.Println(p.Objects[i].File.Path)
	}
	for l := range p.Frames(p.Samples[0].Stack) {
		place := p.Locations[l]
		fmt.Printf("%s+%#x\n", p.Objects[place.Object].File.Path, uint64(place.Offset))
	}
	// Output:
	// 99 samples, 8 stacks
	// /srv/app/bin/fixed
	// /usr/lib/x86_64-linux-gnu/libc.so.6
	// /srv/app/bin/fixed+0x1136
	// /srv/app/bin/fixed+0x1211
	// /usr/lib/x86_64-linux-gnu/libc.so.6+0x27249
}
