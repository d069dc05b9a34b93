package datatype

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/flow"
)

// Source is where the types of a table come from.
type Source uint8

// The sources. Their numbers are stored.
const (
	FromDWARF Source = iota
	// FromBTF is the types of a kernel without DWARF: only parameters are known, in the registers of the
	// ABI at a function's entry.
	FromBTF
	numSources
)

// String returns the name of the format.
func (s Source) String() string {
	if s == FromBTF {
		return "BTF"
	}
	return "DWARF"
}

// Known reports whether a stored number is a Source.
func (s Source) Known() bool { return s < numSources }

// Func is a range of code of a function.
type Func struct {
	addr.Range
	// Reason is set if nothing is known of the function.
	Reason flow.Reason
	// Rows are the accesses, in order of address. Instructions without a row access no memory.
	Rows []flow.Access
}

// Table has what the instructions of an object access. store/typetab has the form in which it is stored
// and asked.
type Table struct {
	Source Source
	Types  *btf.Types // those of the rows, and what they contain
	Funcs  []Func     // by address, disjoint
}
