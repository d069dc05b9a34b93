package cfi

import "debug/elf"

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
const MaxSaved = 6

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

// Arch holds the DWARF numbers of an architecture's registers.
type Arch struct {
	Machine elf.Machine
	Word    int   // bytes of an address
	SP, FP  uint8 // stack and frame pointer
	PC      uint8 // return address column
	// Saved are the registers of Rule.Saved, in its order; the first is the frame pointer.
	Saved []uint8
	// LinkRegister is set where calls leave the return address in register PC.
	LinkRegister bool
	Signals      []SignalFrame // the usual one first
}

// The architectures with unwindable stacks. x86-64: System V psABI, figure 3.36; i386:
// psABI, table 2.14; arm64: "DWARF for the Arm 64-bit Architecture", 4.1.
var archs = []Arch{
	{Machine: elf.EM_X86_64, Word: 8, SP: 7, FP: 6, PC: 16, Saved: []uint8{6, 3, 12, 13, 14, 15},
		Signals: signalsX86},
	{Machine: elf.EM_386, Word: 4, SP: 4, FP: 5, PC: 8, Saved: []uint8{5, 3, 6, 7},
		Signals: signalsI386},
	{Machine: elf.EM_AARCH64, Word: 8, SP: 31, FP: 29, PC: 30, Saved: []uint8{29, 30},
		LinkRegister: true, Signals: signalsARM64},
}

// ArchOf returns the registers of a machine; nil for one that is not known.
func ArchOf(m elf.Machine) *Arch {
	for i := range archs {
		if archs[i].Machine == m {
			return &archs[i]
		}
	}
	return nil
}

// ArchByReturn returns the registers of the machine by the number of the return address in rules,
// which no two have; nil if none has.
func ArchByReturn(column uint64) *Arch {
	for i := range archs {
		if uint64(archs[i].PC) == column {
			return &archs[i]
		}
	}
	return nil
}
