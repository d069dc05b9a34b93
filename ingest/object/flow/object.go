package flow

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/cfi"
)

// Object is what the analysis asks of a file.
type Object interface {
	// Bytes returns the n bytes of the file at an address, fewer at the end of a section; nil for none.
	Bytes(a addr.Addr, n int) []byte
	// Global returns the variable at an address.
	Global(a addr.Addr) (Global, bool)
	// ThreadLocal returns the thread-local variable at a distance from the thread pointer.
	ThreadLocal(d int64) (Global, bool)
	// Slot returns what the dynamic linker or the linker wrote into a slot of the global offset table.
	Slot(a addr.Addr) (Slot, bool)
	// Call returns what a call of the function at an address changes.
	Call(a addr.Addr) Effect
	// Extent returns the range of the function that begins at an address, by its unwind rules.
	Extent(a addr.Addr) (addr.Range, bool)
	// CFA returns the rows of the canonical frame address in a range, in order: the first is of its start.
	CFA(r addr.Range) []CFA
	// Jumps returns where control can go from an instruction besides what the instruction says: a kernel
	// changes no-operations to jumps, and continues elsewhere after faults.
	Jumps(a addr.Addr) []addr.Addr
	// Kernel reports whether the object is a kernel or a module.
	Kernel() bool
}

// Effect is what a call changes.
type Effect uint8

// The effects of calls.
const (
	ByABI   Effect = iota // all registers that the ABI allows
	Nothing               // no register, as __fentry__
	Few                   // the result, and two more, as __get_user_4
	Never                 // it does not return
	Through               // it calls what a register has: Through + its number, as __x86_indirect_thunk_rax
)

// Global is a variable of the object.
type Global struct {
	Name string
	Type btf.ID
	At   addr.Addr // or its distance from the thread pointer
	// Fixed is set of a variable that is nowhere else at run time: a library's may be in the program.
	Fixed bool
}

// Slot is a word of the global offset table: the address of a variable, or the distance of a
// thread-local one.
type Slot struct {
	At    int64
	Local bool
}

// CFA is a row of the unwind rules.
type CFA = cfi.CFA

// NoRegister is the number of no register.
const NoRegister = cfi.NoRegister

// PlaceKind is how a variable's place is known.
type PlaceKind uint8

// The kinds of places.
const (
	InRegister PlaceKind = iota // in Reg
	AtRegister                  // in memory at Reg + Off
	AtCFA                       // in memory at CFA + Off
	IsRegister                  // its value is Reg + Off
	IsCFA                       // its value is CFA + Off
)

// Variable is a variable of a function at a place: a variable with several has an entry for each.
type Variable struct {
	Name string
	Type btf.ID
	addr.Range
	Kind PlaceKind
	Reg  uint8
	Off  int64
	// Piece is the part of the variable that is there, in bytes from its beginning; Size 0: all of it.
	Piece, Size int64
	// Depth is the number of scopes around it. Whole is set if the place is for all of a scope, not from
	// a list: of registers in inlined functions it is often wrong.
	Depth int
	Whole bool
}

// Function is a function to analyze.
type Function struct {
	Ranges    []addr.Range // the first begins at the entry
	Variables []Variable
	// Bare is set if only parameters are known. Casts are not seen then: more evidence counts as weak.
	Bare bool
	// Results are the types that called functions return, by the addresses behind the calls.
	Results map[addr.Addr]btf.ID
	// Result returns the type that the function at an address returns, 0 if it is not known. It is nil if
	// Results has all that is known.
	Result func(addr.Addr) btf.ID
}
