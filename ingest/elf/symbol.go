package elf

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/addr"
)

// Table says which symbol table is meant.
type Table uint8

// The symbol tables.
const (
	Symtab Table = iota // .symtab: SHT_SYMTAB
	Dynsym              // .dynsym: SHT_DYNSYM
)

// Symbol is a function, or a label in code that serves as one.
type Symbol struct {
	Name    string // as in the string table, version (`@@GLIBC_2.2.5`) included
	Addr    addr.Addr
	Size    uint64 // st_size: 0 if the table does not say
	Type    uint8  // elf.STT_FUNC, STT_GNU_IFUNC or STT_NOTYPE
	Bind    uint8  // elf.STB_LOCAL …
	Vis     uint8  // elf.STV_DEFAULT …
	Section int    // index into File.Sections
	// End is Addr + Size; for size 0 the next symbol's address, or the end of the
	// section. It never lies outside the section.
	End addr.Addr
}

// rawSymbol is an Elf32_Sym or Elf64_Sym.
type rawSymbol struct {
	name        uint32
	info, other uint8
	shndx       uint32 // true index, also where it took SHT_SYMTAB_SHNDX to tell
	value, size uint64
}

func (s *rawSymbol) kind() elf.SymType { return elf.SymType(s.info & 0xf) }

// stringTable is the string table that was read last: .symtab's or .dynsym's.
type stringTable struct {
	section uint32 // index, 0 for none
	text    string
}

func (t *stringTable) name(off uint32) string { return cString(t.text, uint64(off)) }

// has reports whether the table has a name there, without looking for its end.
func (t *stringTable) has(off uint32) bool {
	return off != 0 && uint64(off) < uint64(len(t.text)) && t.text[off] != 0
}

// Symbols visits the functions of one table in the table's order, until visit
// returns false. These are STT_FUNC, STT_GNU_IFUNC, and STT_NOTYPE labels, in
// executable sections, as perf has them (tools/perf/util/symbol-elf.c,
// elf_sym__filter): so no data, sections, files and TLS, no hidden labels and no
// mapping symbols ($a, $d, $t, $x). Nor does it give what perf has by accident:
// assembler-local labels (.L…) and addresses outside their section. ARM's Thumb
// bit is cleared, function descriptors of 64-bit PowerPC (ELFv1) are followed. In
// a module, addresses are those of ModuleLayout.
//
// Names are parts of one copy of the string table, which they keep in memory. A
// missing table is no error. Damage ends the visit with one.
func (f *File) Symbols(table Table, visit func(Symbol) bool) error {
	places, err := f.placer()
	if err != nil {
		return err
	}
	ends, err := f.unsizedEnds(table, places)
	if err != nil {
		return err
	}
	return f.rawSymbols(table, func(_ int, raw *rawSymbol) bool {
		if !f.isFunction(raw, false) {
			return true
		}
		a, sec, ok := places.place(raw)
		if !ok {
			return true
		}
		name := f.table.name(raw.name)
		if f.isLocalLabel(raw, name) {
			return true
		}
		limit := places.end(sec)
		end := limit
		if raw.size > 0 {
			end = a + min(raw.size, limit-a)
		} else if i, ok := slices.BinarySearch(ends.starts, a); ok {
			end = min(ends.ends[i], limit)
		}
		return visit(Symbol{
			Name: name, Addr: addr.Addr(a), Size: raw.size, End: addr.Addr(end),
			Type: uint8(raw.kind()), Bind: raw.info >> 4, Vis: raw.other & 3, Section: sec,
		})
	})
}

// isFunction is perf's filter, but for names and sections. With data it lets
// STT_OBJECT pass too, which ends an unsized function before it.
func (f *File) isFunction(s *rawSymbol, data bool) bool {
	if s.shndx == uint32(elf.SHN_UNDEF) || s.shndx >= uint32(len(f.Sections)) ||
		!f.table.has(s.name) {
		return false
	}
	switch s.kind() {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		return true
	case elf.STT_NOTYPE:
		vis := elf.SymVis(s.other & 3)
		return vis != elf.STV_HIDDEN && vis != elf.STV_INTERNAL
	case elf.STT_OBJECT:
		return data
	}
	return false
}

// isLocalLabel reports whether a name is none of a function: an assembler's local
// label, or a mapping symbol of ARM, AArch64 or RISC-V, which tells code from data.
// A function ".List" is one: on 64-bit PowerPC a dot stands before the code's name.
func (f *File) isLocalLabel(s *rawSymbol, name string) bool {
	if s.kind() == elf.STT_NOTYPE && strings.HasPrefix(name, ".L") {
		return true
	}
	if len(name) < 2 || name[0] != '$' {
		return false
	}
	switch f.Machine {
	case elf.EM_ARM, elf.EM_AARCH64:
		switch name[1] {
		case 'a', 'd', 't', 'x':
			return len(name) == 2 || name[2] == '.'
		}
	case elf.EM_RISCV:
		return name[1] == 'd' || name[1] == 'x' // "$xrv64i2p1_m2p0" too
	}
	return false
}

// unsized holds where the symbols without a size end.
type unsized struct{ starts, ends []uint64 } // parallel, sorted by start

// unsizedEnds finds the next symbol after each that has no size. It walks through
// the table twice, and keeps the unsized ones only.
func (f *File) unsizedEnds(table Table, places *placer) (unsized, error) {
	var u unsized
	err := f.rawSymbols(table, func(_ int, s *rawSymbol) bool {
		if s.size == 0 && f.isFunction(s, false) && !f.isLocalLabel(s, f.table.name(s.name)) {
			if a, _, ok := places.place(s); ok {
				u.starts = append(u.starts, a)
			}
		}
		return true
	})
	if err != nil || len(u.starts) == 0 {
		return u, err
	}
	slices.Sort(u.starts)
	u.starts = slices.Compact(u.starts)
	u.ends = make([]uint64, len(u.starts))
	for i := range u.ends {
		u.ends[i] = ^uint64(0)
	}
	err = f.rawSymbols(table, func(_ int, s *rawSymbol) bool {
		if !f.isFunction(s, true) {
			return true
		}
		a, _, ok := places.place(s)
		if !ok || s.kind() == elf.STT_NOTYPE && f.isLocalLabel(s, f.table.name(s.name)) {
			return true
		}
		i, _ := slices.BinarySearch(u.starts, a)
		if i > 0 && u.ends[i-1] > a {
			u.ends[i-1] = a
		}
		return true
	})
	for i := range len(u.starts) - 1 {
		u.ends[i] = min(u.ends[i], u.starts[i+1])
	}
	return u, err
}

// SymbolBytes returns how many bytes of file a visit of the table reads: the names,
// which stay in memory, included. It is 0 where there is no table.
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

// rawSymbols visits all entries of a table but the first, which is null, in
// blocks. While it runs f.table is the table's string table. The symbol is valid
// during the call.
func (f *File) rawSymbols(table Table, visit func(i int, s *rawSymbol) bool) error {
	index := f.symbolSection(table)
	if index < 0 {
		return nil
	}
	s := &f.Sections[index]
	if err := f.check(s, maxSymbolTable); err != nil {
		return err
	}
	if err := f.loadStrings(s.Link); err != nil {
		return fmt.Errorf("names of %s: %w", s.Name, err)
	}
	wide, err := f.sectionIndices(index)
	if err != nil {
		return err
	}
	size := uint64(sym64)
	if f.Class == elf.ELFCLASS32 {
		size = sym32
	}
	if s.EntSize != 0 && s.EntSize != size {
		return f.fail(uint64(s.Offset), "section %s: symbol size %d, not %d", s.Name, s.EntSize, size)
	}
	buf := blocks.Get().(*[]byte)
	defer blocks.Put(buf)
	perBlock := blockSize / size
	for at, count := uint64(0), s.Size/size; at < count; {
		b := (*buf)[:min(perBlock, count-at)*size]
		if err := f.readAt(b, uint64(s.Offset)+at*size); err != nil {
			return err
		}
		for ; len(b) > 0; b, at = b[size:], at+1 {
			if at == 0 {
				continue
			}
			sym := f.decodeSymbol(b[:size])
			if sym.shndx == uint32(elf.SHN_XINDEX) && at < uint64(len(wide)) {
				sym.shndx = wide[at]
			} else if sym.shndx >= uint32(elf.SHN_LORESERVE) {
				sym.shndx = ^uint32(0) // SHN_ABS, SHN_COMMON: in no section
			}
			if !visit(int(at), &sym) {
				return nil
			}
		}
	}
	return nil
}

// decodeSymbol decodes one entry. It is the inner loop of indexing, so it does
// without a decode.Reader.
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

func (f *File) u16(b []byte) uint16 {
	if f.BigEndian {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (f *File) u32(b []byte) uint32 {
	if f.BigEndian {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (f *File) u64(b []byte) uint64 {
	if f.BigEndian {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// loadStrings makes f.table the string table with that section index. Only one is
// kept.
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

// sectionIndices reads the SHT_SYMTAB_SHNDX section of a symbol table, which only
// files of over 65,279 sections have.
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
