package filetype_test

import (
	"fmt"

	"symbolize/ingest/filetype"
)

func ExampleOfPath() {
	fmt.Println(filetype.OfPath("../../fixtures/captures/fixed.data") == filetype.PerfData)
	fmt.Println(filetype.OfPath("../../fixtures/objects/bin/fixed") == filetype.ELF)
	fmt.Println(filetype.OfPath("doc.go") == filetype.Unknown)
	// Output:
	// true
	// true
	// true
}
