// Package calls reads which functions the code of an object calls, and whose frame the frame pointer
// is at each address: with both, a chain of frame pointers can be checked and completed without the
// stack and without the process (analyze/callers).
//
// Functions are the ranges of unwind rules, and the code between them. Their instructions are decoded
// from the start to the end, so that no call or jump is missed: what cannot be decoded so is Unknown.
// The state of the frame pointer at an address follows from its unwind rule; in code of Go, for which
// the compiler writes no rules of the frame pointer, from the instructions that set it.
package calls

import (
	"sort"

	"symbolize/ingest/addr"
)

// State says whose frame the frame pointer is at an address of a function.
type State uint8

// The states.
const (
	Unproven  State = iota // no rule says it
	Outer                  // of a function further out: unchanged since the function was called
	Own                    // of the function: the return address is above the saved frame pointer
	Used                   // saved, and perhaps another value since
	Ends                   // the function has no caller
	Signal                 // a signal handler returns here
	NumStates              // how many there are
)

// TargetKind is how the target of a call or jump is known.
type TargetKind uint8

// The kinds of targets.
const (
	Indirect TargetKind = iota // not known
	Local                      // the address Target.At in the object
	Imported                   // the symbol Table.Imports[Target.At]
	Resolved                   // one of the functions that the resolver at Target.At returns (ifunc)
)

// Target is where a call or a jump goes.
type Target struct {
	Kind TargetKind
	At   addr.Addr
}

// Call is a call instruction.
type Call struct {
	Return addr.Addr // the address behind it
	Target Target
}

// Func is a function: a range of code.
type Func struct {
	addr.Range
	Open    bool // its address is taken, or it is exported: an indirect call may reach it
	Unknown bool // its code could not be decoded
	Leaps   bool // an indirect jump, which is no switch, leaves it
	// Replaces is set if the frame pointer gets another value right after it is saved, each time: where
	// it is Used, it is of no function further out.
	Replaces bool

	calls, jumps span // in Table.Calls and Table.jumps
}

type span struct{ from, to uint32 }

// Symbol is a name with its version, "" for none.
type Symbol struct{ Name, Version string }

// Export is a function that the object exports.
type Export struct {
	Symbol
	Hidden   bool // not the default version
	Resolver bool // the function returns the address of the one to be called (STT_GNU_IFUNC)
	At       addr.Addr
}

// Row is a place from which on a state holds, until the next row.
type Row struct {
	At    addr.Addr
	State State
}

// Table has the calls of one object. store/calltab has the form in which they are stored and asked.
type Table struct {
	Funcs     []Func // by address, disjoint
	Calls     []Call // by address
	Imports   []Symbol
	Exports   []Export
	Linker    bool                      // the object is the dynamic linker, which stubs may call first
	Resolvers map[addr.Addr][]addr.Addr // functions that resolvers may return, by resolver
	States    []Row                     // by address

	jumps []Target
}

// Func returns the number of the function at an address, -1 for none.
func (t *Table) Func(a addr.Addr) int {
	i := sort.Search(len(t.Funcs), func(i int) bool { return t.Funcs[i].Start > a }) - 1
	if i >= 0 && a < t.Funcs[i].End {
		return i
	}
	return -1
}

// CallsOf returns the calls in a function.
func (t *Table) CallsOf(f int) []Call { s := t.Funcs[f].calls; return t.Calls[s.from:s.to] }

// JumpsOf returns the targets of direct jumps out of a function.
func (t *Table) JumpsOf(f int) []Target { s := t.Funcs[f].jumps; return t.jumps[s.from:s.to] }

// State returns the state of the frame pointer at an address; at a call, of its last byte.
func (t *Table) State(a addr.Addr) State {
	i := sort.Search(len(t.States), func(i int) bool { return t.States[i].At > a }) - 1
	if i < 0 {
		return Unproven
	}
	return t.States[i].State
}

// FrameAt returns whose frame the frame pointer can be at a call in function f: the function's own, or
// that of a function further out, which passes it on.
func (t *Table) FrameAt(f int, c Call) (own, passes bool) {
	switch t.State(c.Return - 1) {
	case Own:
		return true, false
	case Outer:
		return false, true
	case Used:
		return false, !t.Funcs[f].Replaces
	case Unproven:
		return true, true
	}
	return false, false
}
