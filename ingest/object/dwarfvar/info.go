package dwarfvar

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/dwarf"
)

// A Function is a subprogram with code.
type Function struct {
	pos dwarf.Pos

	Name     string       // qualified by its scopes: "app::run"
	Linkage  string       // the symbol's name if that differs; "" if it is not known
	Entry    addr.Addr    // DW_AT_low_pc, else the start of the first range
	Ranges   []addr.Range // of its code, at least one
	Language uint16       // DW_LANG_ code
	Result   btf.ID       // type of its result, 0 for none
	External bool         // visible to other units
	Variadic bool
	Scopes   []Scope // parents before children; 0 is the function itself
	Vars     []Variable
	Calls    []Call // by Return, of functions that return something
}

// A Call is a call in a function, of which the compiler notes what it calls: another function of the file or
// one that is only declared.
type Call struct {
	Return addr.Addr // of the instruction behind the call
	Result btf.ID    // type of the result of the function that is called
}

// A Scope is the function, a block in it, or an inlined call.
type Scope struct {
	Parent int32        // index of the scope around it, -1 for the function
	Ranges []addr.Range // of a block without its own: the parent's
	Inline string       // name of the function inlined, "" for blocks and the function
	Result btf.ID       // of the function inlined
	Entry  addr.Addr    // of a call inlined: DW_AT_entry_pc, else the start of its first range

	Linkage string // of the function inlined, as Function.Linkage
	pos     dwarf.Pos
}

// A Variable is a parameter or variable of a function, or of a call inlined into it.
type Variable struct {
	Name  string
	Type  btf.ID
	Param bool
	Scope int32     // index in Function.Scopes: it exists only in its ranges
	Where []Located // sorted by start; elsewhere it is optimized out
	// Whole is set if Where has a single place from an expression without addresses, which holds for
	// all of the scope. Compilers are careless with registers there.
	Whole bool
}

// At returns the place of a variable at an address in its scope.
func (v *Variable) At(a addr.Addr) Place {
	for i := range v.Where {
		if l := &v.Where[i]; a >= l.Start && a < l.End {
			return l.Place
		}
	}
	return Place{}
}

// Holds reports whether an address is in a scope.
func (f *Function) Holds(scope int32, a addr.Addr) bool {
	for _, r := range f.Scopes[scope].Ranges {
		if a >= r.Start && a < r.End {
			return true
		}
	}
	return false
}

// Inlined returns the name of the innermost inlined function around a scope, "" if it belongs to
// the function itself.
func (f *Function) Inlined(scope int32) string {
	for ; scope >= 0; scope = f.Scopes[scope].Parent {
		if n := f.Scopes[scope].Inline; n != "" {
			return n
		}
	}
	return ""
}

// A Declared is a variable that a unit declares and another one defines, or one without a place: gcc for
// arm64 writes none of thread-local variables.
type Declared struct {
	Symbol  string // its name in symbol tables
	Type    btf.ID
	Placed  bool // it is declared: another unit may have its place
	Several bool // there are others of its name, without a place
}

// A Global is a variable with a fixed address, or an offset in thread-local storage, also a static
// one within a function.
type Global struct {
	Name  string // qualified by its scopes
	Addr  addr.Addr
	Local bool   // thread-local: Addr is the offset in the module's thread-local storage
	Size  uint64 // bytes, 0 if the type has none
	Type  btf.ID
}
