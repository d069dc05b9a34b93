package store

import (
	"cmp"
	"fmt"

	"symbolize/store/calltab"
	"symbolize/store/symtab"
	"symbolize/store/typetab"
	"symbolize/store/unwindtab"
)

// SourceKind is the origin of a table.
type SourceKind uint8

// The kinds of sources. Their numbers are stored; all else about them is in sourceKinds.
const (
	DWARF    SourceKind = 1 + iota // .debug_info
	Symtab                         // .symtab
	Pclntab                        // Go's .gopclntab
	Dynsym                         // .gnu_debugdata united with .dynsym
	Kallsyms                       // /proc/kallsyms or a copy of it
	PLT                            // stubs, "foo@plt"
	EhFrame                        // function starts by .eh_frame
	JIT                            // line info of a JITed function
	Unwind                         // rules that unwind stacks
	Calls                          // calls and frame pointers
	Types                          // members of types that instructions access
	endOfKinds
)

// TableFormat is what a table holds.
type TableFormat uint8

// The formats.
const (
	FormatNames  TableFormat = iota // package symtab
	FormatUnwind                    // package unwindtab
	FormatCalls                     // package calltab
	FormatTypes                     // package typetab
)

// tableVersions are the versions of tables: the oldest one that this program reads, and the one that
// it writes.
var tableVersions = [...]struct{ oldest, newest uint32 }{
	FormatNames:  {newest: symtab.Version},
	FormatUnwind: {newest: unwindtab.Version},
	FormatCalls:  {oldest: calltab.Version, newest: calltab.Version},
	FormatTypes:  {oldest: typetab.Version, newest: typetab.Version},
}

// sourceKinds has a row for each kind. A new kind is its row here, and the file of store/indexer that
// makes its tables.
var sourceKinds = [endOfKinds]struct {
	text     string
	rank     int // where two sources cover an address, the one of lower rank names it
	format   TableFormat
	frames   bool
	debug    bool
	symbols  bool
	whole    bool
	fallback bool
	nameless bool
	runtime  bool
	list     bool
	perLoad  bool
}{
	0:        {text: "none"},
	DWARF:    {text: "dwarf", rank: 1, frames: true, debug: true, whole: true},
	Symtab:   {text: "symtab", rank: 2, symbols: true, whole: true},
	Pclntab:  {text: "pclntab", rank: 3, frames: true, debug: true, whole: true, runtime: true},
	Dynsym:   {text: "dynsym", rank: 4, symbols: true, runtime: true},
	Kallsyms: {text: "kallsyms", rank: 5, symbols: true, whole: true, list: true},
	PLT:      {text: "plt", rank: 6, fallback: true, runtime: true},
	EhFrame:  {text: "eh_frame", rank: 7, fallback: true, nameless: true, runtime: true},
	JIT:      {text: "jit", rank: 8, frames: true, perLoad: true},
	Unwind:   {text: "unwind", rank: 9, format: FormatUnwind},
	Calls:    {text: "calls", rank: 10, format: FormatCalls},
	Types:    {text: "types", rank: 11, format: FormatTypes},
}

// String returns the kind in lower case: "symtab"; "none" for 0, as of an object without
// sources.
func (k SourceKind) String() string {
	if k < endOfKinds {
		return sourceKinds[k].text
	}
	return fmt.Sprintf("kind%d", uint8(k))
}

// CompareKinds orders kinds by rank: the kind that names an address first.
func CompareKinds(a, b SourceKind) int { return cmp.Compare(sourceKinds[a].rank, sourceKinds[b].rank) }

// Format returns what tables of the kind hold; names for an unknown kind, which SourceInfo.Check refuses.
func (k SourceKind) Format() TableFormat {
	if k < endOfKinds {
		return sourceKinds[k].format
	}
	return FormatNames
}

// Names reports whether tables of the kind have names, and are tables of symtab.
func (k SourceKind) Names() bool { return k.Format() == FormatNames }

// Frames reports whether tables of the kind have lines and inlined calls; others have the names of
// symbols.
func (k SourceKind) Frames() bool { return sourceKinds[k].frames }

// Debug reports whether the kind is debug information of a file: it names all functions that have lines.
func (k SourceKind) Debug() bool { return sourceKinds[k].debug }

// Symbols reports whether the kind is a list of symbols without lines.
func (k SourceKind) Symbols() bool { return sourceKinds[k].symbols }

// Whole reports whether the kind has all functions; others have those that linkers need.
func (k SourceKind) Whole() bool { return sourceKinds[k].whole }

// Fallback reports whether the kind names only what no other source names: stubs, and starts of
// functions.
func (k SourceKind) Fallback() bool { return sourceKinds[k].fallback }

// Nameless reports whether the functions of the kind have made-up names: only their bounds are known.
func (k SourceKind) Nameless() bool { return sourceKinds[k].nameless }

// Runtime reports whether the kind comes from files that run; debug files do not have it.
func (k SourceKind) Runtime() bool { return sourceKinds[k].runtime }

// List reports whether the kind is a list of the kernel's symbols: no file with code, and symbols
// without sizes.
func (k SourceKind) List() bool { return sourceKinds[k].list }

// PerLoad reports whether an object has a table of the kind for each load: of a JITed function.
func (k SourceKind) PerLoad() bool { return sourceKinds[k].perLoad }
