package dwarfvar

import "symbolize/ingest/addr"

// PlaceKind is the kind of a Place.
type PlaceKind uint8

// The kinds of places. R is Place.Reg, N is Place.Off.
const (
	Lost         PlaceKind = iota // optimized out: no place, no value
	Register                      // the value is in R
	Memory                        // the variable is in memory at R + N
	Stack                         // in memory at the CFA + N
	Static                        // in memory at address N
	ThreadLocal                   // in memory at N in the module's thread-local storage
	Constant                      // the value is N
	Sum                           // the value is R + N
	StackAddress                  // the value is the CFA + N
	Entry                         // the value is what R held at the function's entry, plus N: no place
	Bytes                         // the value is Data
	Pointee                       // a pointer that is optimized out; its target is known, but not here
	Parts                         // Parts has the places of its parts
	Computed                      // an expression beyond the kinds above: neither place nor value is known here
)

// A Place is where a variable, or a part of it, is. Registers have DWARF's numbers.
type Place struct {
	Kind  PlaceKind
	Reg   uint16
	Off   int64
	Data  []byte // of Bytes, must not be changed
	Parts []Part
}

// A Part is the place of some bits of a variable, in the order of its bits in memory.
type Part struct {
	Place
	Bits uint64
}

// A Located is a place and the addresses where it holds.
type Located struct {
	addr.Range
	Place
}
