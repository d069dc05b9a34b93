package demangle_test

import (
	"fmt"

	"symbolize/analyze/demangle"
)

// The same symbols as short names and in full.
func ExampleDemangler_Name() {
	short, full := demangle.New(demangle.Simple), demangle.New(demangle.Full)
	for _, symbol := range []string{
		"_ZN3foo3barIiEEvT_",                             // C++
		"_RNvCs15kBYyAo9fc_7mycrate7example",             // Rust
		"camlStdlib__List__map_482",                      // OCaml
		"main.Map[go.shape.int,go.shape.string].func1",   // Go
		"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", // Rust, legacy
	} {
		fmt.Printf("%-28s %s\n", short.Name(symbol), full.Name(symbol))
	}
	// Output:
	// foo::bar                     void foo::bar<int>(int)
	// mycrate::example             mycrate::example
	// Stdlib.List.map              Stdlib.List.map
	// main.Map[...].func1          main.Map[go.shape.int,go.shape.string].func1
	// core::fmt::Formatter::pad    core::fmt::Formatter::pad
}
