package callers_test

import (
	"context"
	"fmt"

	"symbolize/analyze/callers"
	"symbolize/analyze/resolve"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/indexer"
)

// The stacks of a recording by frame pointers, checked and completed by the calls in a program.
func ExampleComplete() {
	ctx := context.Background()
	tables := store.NewOverlay()
	_, err := indexer.Index(ctx, []string{"../../fixtures/callers/callers"}, nil,
		func() (store.Sink, error) { return tables, nil }, indexer.Options{Calls: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := input.Open(ctx, "../../fixtures/callers/callers.data", input.Options{})
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
	code := func(o *ingest.Object) *callers.Code {
		m, _, err := store.FindOne(tables, o.ID)
		if m == nil || err != nil {
			return nil
		}
		for i := range m.Sources {
			if m.Sources[i].Kind.Format() != store.FormatCalls {
				continue
			}
			table, err := tables.OpenCalls(m, i)
			addrs, why := resolve.NewAddresses(o, m)
			if err == nil && why == ingest.ReasonNone {
				return callers.NewCode(table, addrs)
			}
		}
		return nil
	}
	q, _ := callers.Complete(p, callers.Options{Code: code})
	s := &q.Stats.Callers
	fmt.Printf("%d callers proven, %d restored\n", s.Proven, s.Restored)
	// Output:
	// 22 callers proven, 18 restored
}
