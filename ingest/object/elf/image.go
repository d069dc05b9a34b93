package elf

import (
	"debug/elf"

	"symbolize/ingest/addr"
)

// ModuleImage is a kernel module as if it were loaded: its code is where ModuleLayout has it, its data
// and the symbols that it imports are at addresses of their own, which no kernel gives them.
type ModuleImage struct {
	*Relocator
	Sections []PlacedSection // code, and then data

	places  map[int]addr.Addr // of Sections, by their numbers
	imports map[int]addr.Addr // by symbol number
}

// Distances from the base of an image: to its data, to what it imports, and between two imports. Code
// reaches all of them by displacements of 32 bits.
const (
	imageData    = 1 << 28
	imageImports = 1 << 29
	importSpace  = 1 << 16
	maxImports   = 1 << 14
)

// Image returns the image of an ET_REL file at a base address.
func (f *File) Image(base addr.Addr) (*ModuleImage, error) {
	code, err := f.ModuleLayout()
	if err != nil {
		return nil, err
	}
	places := make(map[int]addr.Addr)
	m := &ModuleImage{Sections: code, places: places, imports: make(map[int]addr.Addr)}
	for i := range m.Sections {
		m.Sections[i].Addr += base
		places[m.Sections[i].Index] = m.Sections[i].Addr
	}
	at := base + imageData
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.IsCode() || s.Flags&elf.SHF_ALLOC == 0 || s.Size == 0 {
			continue
		}
		if align := addr.Addr(s.AddrAlign); align > 1 && align&(align-1) == 0 && align <= maxAlign {
			at = (at + align - 1) &^ (align - 1)
		}
		if s.Size > maxSection || at-base+addr.Addr(s.Size) > imageImports {
			return nil, f.fail(uint64(s.Offset), "module section %s of %d bytes is too large", s.Name, s.Size)
		}
		places[i] = at
		m.Sections = append(m.Sections, PlacedSection{s.Name, i, at, s.Size})
		at += addr.Addr(s.Size)
	}
	m.Relocator, err = f.Relocator(func(i int) (addr.Addr, bool) {
		a, ok := places[i]
		return a, ok
	})
	if err != nil {
		return nil, err
	}
	next := base + imageImports
	return m, f.rawSymbols(Symtab, func(i int, s *rawSymbol) bool {
		if s.shndx == uint32(elf.SHN_UNDEF) && s.name != 0 && len(m.imports) < maxImports && i < len(m.values) {
			m.imports[i], m.values[i] = next, symbolValue{uint64(next), true}
			next += importSpace
		}
		return true
	})
}

// Entries visits the symbols that have an address in the image, in the order of the symbol table: Value and
// Code are that, Section is 0 of what is imported.
func (m *ModuleImage) Entries(visit func(Entry) bool) error {
	f := m.f
	return f.rawSymbols(Symtab, func(i int, s *rawSymbol) bool {
		e := Entry{Name: f.table.name(s.name), Size: s.size, Type: s.kind(), Bind: elf.SymBind(s.info >> 4)}
		if a, ok := m.imports[i]; ok {
			e.Value, e.Code = uint64(a), a
			return visit(e)
		}
		at, ok := m.places[int(s.shndx)]
		if !ok {
			return true
		}
		e.Section = int(s.shndx)
		e.Value = uint64(at) + s.value
		if f.Sections[e.Section].IsCode() {
			e.Code, e.CodeSection = addr.Addr(e.Value), e.Section
		}
		return visit(e)
	})
}
