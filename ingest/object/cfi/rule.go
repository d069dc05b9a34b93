package cfi

import (
	"debug/elf"

	"symbolize/ingest/machine"
)

// How is the way in which a value of the caller is found.
type How uint8

// The ways. Their numbers are part of the format of store/unwindtab.
const (
	Same      How = iota // it is the callee's
	Undefined            // it is lost
	AtCFA                // in memory at CFA + Off
	CFAPlus              // CFA + Off itself
	Register             // register Reg + Off
	AtExpr               // in memory at the address that expression Off computes
	Expr                 // the value that expression Off computes
	NumHows
)

// Where is the place of one value of the caller.
type Where struct {
	How How
	Reg uint8 // DWARF number, for Register
	Off int32 // bytes; for AtExpr and Expr the number of the expression
}

// Kind distinguishes rules that lead to a caller from others.
type Kind uint8

// The kinds. Their numbers are part of the format of store/unwindtab.
const (
	NoRule Kind = iota // nothing is known of the code
	End                // the code has no caller: _start, clone
	Frame              // CFA, RA and Saved lead to the caller
	NumKinds
)

// MaxSaved is the number of registers that rules have places for.
const MaxSaved = machine.MaxSaved

// Rule leads from a frame to its caller's. It is comparable.
type Rule struct {
	Kind Kind
	// Signal is set for code that a signal handler returns to: the return address is the one of
	// the interrupted instruction, not of a call.
	Signal bool
	CFA    Where // the caller's stack pointer: Register, AtExpr or Expr
	RA     Where // the return address
	Saved  [MaxSaved]Where
}

// ArchOf returns a machine for which there are unwind rules; nil for others.
func ArchOf(m elf.Machine) *machine.Arch {
	if a := machine.Of(m); a != nil && a.Saved != nil {
		return a
	}
	return nil
}

// ArchByReturn returns the machine with unwind rules that have the return address in a register,
// which no two have; nil if there is none.
func ArchByReturn(column uint64) *machine.Arch {
	for _, a := range machine.All() {
		if a.Saved != nil && uint64(a.PC) == column {
			return a
		}
	}
	return nil
}
