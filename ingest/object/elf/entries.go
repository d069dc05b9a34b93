package elf

import (
	"debug/elf"

	"symbolize/ingest/addr"
)

// Entry is an entry of a symbol table as stored, of any type.
type Entry struct {
	Name    string
	Value   uint64
	Size    uint64
	Type    elf.SymType
	Bind    elf.SymBind
	Section int // index into File.Sections; 0 if undefined, −1 for absolute and common ones
	// Code is the address of a function's code in a linked file: Value, of 32-bit ARM without
	// the Thumb bit, of 64-bit PowerPC by the function descriptor in .opd. CodeSection is where
	// that is; 0 if Value is no place in a section of code.
	Code        addr.Addr
	CodeSection int
}

// Entries visits the entries of a symbol table in its order, without the null entry, until visit
// returns false. Symbols visits code only; Entries is for callers that reproduce another
// program's choice.
func (f *File) Entries(table Table, visit func(Entry) bool) error {
	places, err := f.placer()
	if err != nil || f.Type == elf.ET_REL {
		places = &placer{f: f, opdIndex: -1} // the values are offsets in sections
	}
	return f.rawSymbols(table, func(_ int, s *rawSymbol) bool {
		e := Entry{
			Name: f.table.name(s.name), Value: s.value, Size: s.size, Type: s.kind(),
			Bind: elf.SymBind(s.info >> 4), Section: -1,
		}
		if uint64(s.shndx) < uint64(len(f.Sections)) {
			e.Section = int(s.shndx)
		}
		if a, section, ok := places.place(s); ok {
			e.Code, e.CodeSection = addr.Addr(a), section
		}
		return visit(e)
	})
}
