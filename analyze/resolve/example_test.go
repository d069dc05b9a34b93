package resolve_test

import (
	"context"
	"fmt"

	"symbolize/analyze/resolve"
	"symbolize/ingest/input"
	"symbolize/store"
	"symbolize/store/indexer"
)

// A capture is named from tables in memory: the join needs no database.
func ExampleResolve() {
	ctx := context.Background()
	tables := store.NewOverlay()
	_, err := indexer.Index(ctx, []string{"../../fixtures/objects/bin/fixed"}, nil,
		func() (store.Sink, error) { return tables, nil }, indexer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
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
	if err := resolve.Resolve(ctx, p, tables, resolve.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range p.Names.Functions {
		fmt.Println(f.SystemName)
	}
	// Output:
	// collatz
	// longest_below
	// main
}
