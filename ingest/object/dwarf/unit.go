package dwarf

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// NoSub, NoFile and NoParent mark missing values: a function without a name, a file number
// without an entry, an inlined call directly in its function.
const (
	NoSub    int32  = -1
	NoFile   uint32 = 1<<32 - 1
	NoParent int32  = -1
)

// A Unit holds one compilation unit's information about code. All of it, byte slices included, is
// valid until the visit returns.
type Unit struct {
	Offset   uint64 // of the unit in .debug_info
	Name     []byte // primary source file as the producer was given it
	CompDir  []byte // working directory of the compiler
	Language uint16 // DW_LANG_ code, 0 if none
	Version  uint8  // DWARF version
	Split    bool   // completed from a .dwo or .dwp file

	Subs      []Sub      // identities of functions, each once
	Functions []Function // by position in the file; duplicates of other units included
	Files     []File     // file 0 is unnamed up to DWARF 4
	Sequences []Sequence // by position in the line table

	Dead     int             // functions and sequences without code: dropped by the linker, empty
	Problems []*decode.Error // losses, at most maxProblems of them
	Lost     int             // number of problems
}

// A Sub is a subprogram's declaration: the part that all concrete and inlined instances share.
type Sub struct {
	// Name is DW_AT_name, nil if there is none. In C++, D and Rust it is qualified by its scopes if
	// there is no linkage name.
	Name     []byte
	Linkage  []byte // DW_AT_linkage_name: mangled; nil if none
	DeclFile uint32 // index into Unit.Files, or NoFile
	DeclLine uint32 // 0 if unknown
}

// A Function is a subprogram with code.
type Function struct {
	Sub     int32        // index into Unit.Subs, or NoSub
	Offset  uint64       // of its entry in .debug_info: distinguishes duplicates
	Ranges  []addr.Range // non-empty ranges with code, as the file orders them
	Inlines []Inline     // in pre-order: parents before their children

	first int // of its inlines in scratch.inlines
}

// An Inline is a call that was inlined. One that has no code of its own (Ranges is
// empty) is listed only if calls within it have some.
type Inline struct {
	Sub        int32 // the function inlined: index into Unit.Subs, or NoSub
	Parent     int32 // index into Function.Inlines, or NoParent
	Depth      uint32
	CallFile   uint32 // index into Unit.Files, or NoFile
	CallLine   uint32 // 0 if unknown
	CallColumn uint32 // 0 if unknown
	Ranges     []addr.Range

	fn int32 // index into Unit.Functions

	CallDiscriminator uint32 // of the line of the call, as Row.Discriminator
}

// A File is a source file in parts; AppendPath puts them together.
type File struct {
	Base []byte // directory that Dir is relative to
	Dir  []byte // directory that Name is relative to
	Name []byte
}

// A Sequence is a run of code with ascending addresses, [Start, End).
type Sequence struct {
	addr.Range
	Rows []Row // at least one; the first is at Start; addresses differ

	lo, hi  int  // of Rows in scratch.rows
	endless bool // the end of the last row is not known, nor is End
}

// A Row is the source position of the code from Addr to the next row, or the sequence's end. Line
// 0 is code without a source line.
type Row struct {
	Addr   addr.Addr
	File   uint32 // index into Unit.Files, or NoFile
	Line   uint32
	Column uint32
	// Discriminator distinguishes blocks of code with one line, 0 if the producer gave it none.
	Discriminator uint32
}

func (u *Unit) reset() {
	*u = Unit{
		Subs: u.Subs[:0], Functions: u.Functions[:0], Files: u.Files[:0],
		Sequences: u.Sequences[:0], Problems: u.Problems[:0],
	}
}

// problem counts a loss and keeps the first of them.
func (u *Unit) problem(section string, off uint64, reason string) {
	u.Lost++
	if len(u.Problems) < maxProblems {
		u.Problems = append(u.Problems,
			&decode.Error{Name: section, Offset: int64(off), Reason: reason})
	}
}
