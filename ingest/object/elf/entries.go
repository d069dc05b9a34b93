package elf

import "debug/elf"

// Entry is an entry of a symbol table as it stands there, whatever it is of.
type Entry struct {
	Name    string
	Value   uint64
	Size    uint64
	Type    elf.SymType
	Bind    elf.SymBind
	Section int // index into File.Sections; 0 if undefined, −1 for absolute and common ones
}

// Entries visits the entries of a symbol table in its order, the null one left out,
// until visit returns false. Symbols is for what names code; this is for those who
// have to choose as another program does.
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
