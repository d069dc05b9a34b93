package indexer_test

import (
	"context"
	"fmt"

	"symbolize/store"
	"symbolize/store/indexer"
)

// Files become symbol tables under their build IDs, here in memory.
func ExampleIndex() {
	tables := store.NewOverlay()
	sink := func() (store.Sink, error) { return tables, nil }
	sum, err := indexer.Index(context.Background(), []string{"../../fixtures/objects/bin/fixed"}, nil, sink,
		indexer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sum.Objects, "object")
	for _, m := range tables.Objects {
		for i, source := range m.Sources {
			fmt.Print(source.Kind)
			if source.Kind.Format() != store.FormatNames {
				fmt.Println()
				continue
			}
			table, err := tables.Open(m, i)
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(":", table.NumFuncs(), "functions")
		}
	}
	// Output:
	// 1 object
	// dwarf: 3 functions
	// symtab: 11 functions
	// plt: 2 functions
	// unwind
}
