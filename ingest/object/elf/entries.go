package elf

import "debug/elf"

// Entry is an entry of a symbol table as stored, of any type.
type Entry struct {
	Name    string
	Value   uint64
	Size    uint64
	Type    elf.SymType
	Bind    elf.SymBind
	Section int // index into File.Sections; 0 if undefined, −1 for absolute and common ones
}

// Entries visits the entries of a symbol table in its order, without the null entry, until visit
// returns false. Symbols visits code only; Entries is for callers that reproduce another
// program's choice.
func (f *File) Entries(table Table, visit func(Entry) bool) error {
	return f.rawSymbols(table, func(_ int, s *rawSymbol) bool {
		e := Entry{
			Name: f.table.name(s.name), Value: s.value, Size: s.size, Type: s.kind(),
			Bind: elf.SymBind(s.info >> 4), Section: -1,
		}
		if uint64(s.shndx) < uint64(len(f.Sections)) {
			e.Section = int(s.shndx)
		}
		return visit(e)
	})
}
