package elf

import (
	"debug/elf"
	"fmt"
	"slices"

	"symbolize/ingest/decode"
)

// rawSymbol is an Elf32_Sym or Elf64_Sym.
type rawSymbol struct {
	name        uint32
	info, other uint8
	shndx       uint32 // true index, possibly from SHT_SYMTAB_SHNDX
	value, size uint64
}

func (s *rawSymbol) kind() elf.SymType { return elf.SymType(s.info & 0xf) }

// stringTable is the most recently read string table: .symtab's or .dynsym's.
type stringTable struct {
	section uint32 // index, 0 for none
	text    string
}

func (t *stringTable) name(off uint32) string { return cString(t.text, uint64(off)) }

// has reports whether the table has a name there, without looking for its end.
func (t *stringTable) has(off uint32) bool {
	return off != 0 && uint64(off) < uint64(len(t.text)) && t.text[off] != 0
}

// SymbolBytes returns the number of file bytes that a visit of the table reads, including the
// names, which stay in memory. It is 0 where there is no table.
func (f *File) SymbolBytes(table Table) int64 {
	i := f.symbolSection(table)
	if i < 0 {
		return 0
	}
	s := &f.Sections[i]
	n := min(s.Size, uint64(f.size))
	if int(s.Link) < len(f.Sections) {
		n += min(f.Sections[s.Link].Size, uint64(f.size))
	}
	return int64(n)
}

// HasSymbols reports whether the file has that table, with contents.
func (f *File) HasSymbols(table Table) bool { return f.symbolSection(table) >= 0 }

// symbolSection returns the index of a symbol table's section, or -1.
func (f *File) symbolSection(table Table) int {
	want := elf.SHT_SYMTAB
	if table == Dynsym {
		want = elf.SHT_DYNSYM
	}
	return slices.IndexFunc(f.Sections, func(s Section) bool { return s.Type == want })
}

// symbolReader walks through one symbol table, any number of times. It keeps the last block that
// it read: most tables are one block.
type symbolReader struct {
	f     *File
	s     *Section
	wide  []uint32 // of SHT_SYMTAB_SHNDX
	size  uint64   // of an entry
	buf   *[]byte
	start uint64 // number of the first entry in the block
	block []byte // nil before the first
}

// symbols returns a reader of a table, to be closed; nil where the file has none. Until the next
// one is made its names are the names of f.table.
func (f *File) symbols(table Table) (*symbolReader, error) {
	index := f.symbolSection(table)
	if index < 0 {
		return nil, nil
	}
	s := &f.Sections[index]
	if err := f.check(s, maxSymbolTable); err != nil {
		return nil, err
	}
	if err := f.loadStrings(s.Link); err != nil {
		return nil, fmt.Errorf("names of %s: %w", s.Name, err)
	}
	wide, err := f.sectionIndices(index)
	if err != nil {
		return nil, err
	}
	size := uint64(sym64)
	if f.Class == elf.ELFCLASS32 {
		size = sym32
	}
	if s.EntSize != 0 && s.EntSize != size {
		return nil, f.fail(uint64(s.Offset), "section %s: symbol size %d, not %d",
			s.Name, s.EntSize, size)
	}
	return &symbolReader{
		f: f, s: s, wide: wide, size: size, buf: blocks.Get().(*[]byte),
	}, nil
}

func (r *symbolReader) close() { blocks.Put(r.buf) }

// visit visits all entries but the first, which is null, until visit returns false. The symbol is
// valid during the call.
func (r *symbolReader) visit(visit func(i int, s *rawSymbol) bool) error {
	var sym rawSymbol
	perBlock := blockSize / r.size
	for at, count := uint64(0), r.s.Size/r.size; at < count; {
		if r.block == nil || r.start != at {
			r.start, r.block = at, (*r.buf)[:min(perBlock, count-at)*r.size]
			if err := r.f.readAt(r.block, uint64(r.s.Offset)+at*r.size); err != nil {
				r.block = nil
				return err
			}
		}
		for b := r.block; len(b) > 0; b, at = b[r.size:], at+1 {
			if at == 0 {
				continue
			}
			sym = r.f.decodeSymbol(b[:r.size])
			if sym.shndx == uint32(elf.SHN_XINDEX) && at < uint64(len(r.wide)) {
				sym.shndx = r.wide[at]
			} else if sym.shndx >= uint32(elf.SHN_LORESERVE) {
				sym.shndx = ^uint32(0) // SHN_ABS, SHN_COMMON: in no section
			} else if r.f.implied && sym.shndx != uint32(elf.SHN_UNDEF) {
				sym.shndx = r.f.impliedSection(sym.value)
			}
			if !visit(int(at), &sym) {
				return nil
			}
		}
	}
	return nil
}

// rawSymbols visits the entries of a table once.
func (f *File) rawSymbols(table Table, visit func(i int, s *rawSymbol) bool) error {
	r, err := f.symbols(table)
	if r == nil {
		return err
	}
	defer r.close()
	return r.visit(visit)
}

// decodeSymbol decodes one entry. It is the inner loop of indexing, so it uses no decode.Reader.
func (f *File) decodeSymbol(b []byte) rawSymbol {
	if f.Class == elf.ELFCLASS64 {
		_ = b[sym64-1]
		return rawSymbol{
			name: f.u32(b), info: b[4], other: b[5], shndx: uint32(f.u16(b[6:])),
			value: f.u64(b[8:]), size: f.u64(b[16:]),
		}
	}
	_ = b[sym32-1]
	return rawSymbol{
		name: f.u32(b), value: uint64(f.u32(b[4:])), size: uint64(f.u32(b[8:])),
		info: b[12], other: b[13], shndx: uint32(f.u16(b[14:])),
	}
}

func (f *File) u16(b []byte) uint16 { return decode.U16(b, f.BigEndian) }

func (f *File) u32(b []byte) uint32 { return decode.U32(b, f.BigEndian) }

func (f *File) u64(b []byte) uint64 { return decode.U64(b, f.BigEndian) }

// loadStrings makes f.table the string table with that section index. Only one is kept.
func (f *File) loadStrings(index uint32) error {
	if f.table.section == index && index != 0 {
		return nil
	}
	if index == 0 || index >= uint32(len(f.Sections)) {
		return f.fail(0, "section %d, which should hold names, does not exist", index)
	}
	text, err := f.readString(&f.Sections[index], maxStringTable)
	if err != nil {
		return err
	}
	f.table = stringTable{index, text}
	return nil
}

// sectionIndices reads the SHT_SYMTAB_SHNDX section of a symbol table, which only files of over
// 65,279 sections have.
func (f *File) sectionIndices(symtab int) ([]uint32, error) {
	if len(f.Sections) < int(elf.SHN_LORESERVE) {
		return nil, nil
	}
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != elf.SHT_SYMTAB_SHNDX || int(s.Link) != symtab {
			continue
		}
		b, err := f.Data(s, maxSymbolTable/4)
		if err != nil {
			return nil, err
		}
		wide := make([]uint32, len(b)/4)
		for i := range wide {
			wide[i] = f.u32(b[4*i:])
		}
		return wide, nil
	}
	return nil, nil
}
