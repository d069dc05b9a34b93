package inspect_test

import (
	"context"
	"fmt"

	"symbolize/analyze/inspect"
	"symbolize/ingest/input"
)

func ExampleFile() {
	info, err := inspect.File(context.Background(), "../../fixtures/captures/fixed.data",
		input.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := info.(*inspect.Capture)
	for _, e := range c.Events {
		fmt.Println(c.Kind, e.Name, e.Samples)
	}
	// Output: perf.data cpu-clock:u 99
}
