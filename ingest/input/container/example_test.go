package container_test

import (
	"fmt"

	"symbolize/ingest/input/container"
)

func ExampleTypeOfPath() {
	fmt.Println(container.TypeOfPath("../../../fixtures/captures/fixed.data") == container.TypePerfData)
	fmt.Println(container.TypeOfPath("../../../fixtures/objects/bin/fixed") == container.TypeELF)
	fmt.Println(container.TypeOfPath("doc.go") == container.TypeUnknown)
	// Output:
	// true
	// true
	// true
}
