package elf

import (
	"debug/elf"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// Table selects a symbol table.
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
	Size    uint64 // st_size: 0 if the table has none
	Type    uint8  // elf.STT_FUNC, STT_GNU_IFUNC or STT_NOTYPE
	Bind    uint8  // elf.STB_LOCAL …
	Vis     uint8  // elf.STV_DEFAULT …
	Section int    // index into File.Sections
	// End is Addr + Size; for size 0 the next symbol's address, or the end of the
	// section. It is never outside the section.
	End addr.Addr
}

// Symbols visits the functions of one table in the table's order, until visit returns false.
// These are STT_FUNC, STT_GNU_IFUNC, and STT_NOTYPE labels, in executable sections, as in perf
// (tools/perf/util/symbol-elf.c, elf_sym__filter): so no data, sections, files and TLS, no hidden
// labels and no mapping symbols ($a, $d, $t, $x). Nor does it visit those that perf has by
// accident: assembler-local labels (.L…) and addresses outside their section. ARM's Thumb bit is
// cleared, function descriptors of 64-bit PowerPC (ELFv1) are followed. In a module, addresses
// are those of ModuleLayout.
//
// Names are parts of one copy of the string table, which they keep in memory. A missing table is
// no error. Damage ends the visit with an error.
func (f *File) Symbols(table Table, visit func(Symbol) bool) error {
	r, err := f.symbols(table)
	if r == nil {
		return err
	}
	defer r.close()
	places, err := f.placer()
	if err != nil {
		return err
	}
	ends, err := f.unsizedEnds(r, places)
	if err != nil {
		return err
	}
	return r.visit(func(_ int, raw *rawSymbol) bool {
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

// isFunction is perf's filter without its rules for names and sections. With data it also accepts
// STT_OBJECT, which ends an unsized function before it.
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

// isLocalLabel reports whether a name is not a function's: an assembler's local label, or a mapping
// symbol. A function ".List" is one: on 64-bit PowerPC names of code begin with a dot.
func (f *File) isLocalLabel(s *rawSymbol, name string) bool {
	return s.kind() == elf.STT_NOTYPE && strings.HasPrefix(name, ".L") ||
		IsMappingSymbol(f.Machine, name)
}

// IsMappingSymbol reports whether a symbol, of ARM, AArch64 or RISC-V, only marks the start of code
// or data for disassemblers.
func IsMappingSymbol(m elf.Machine, name string) bool {
	if len(name) < 2 || name[0] != '$' {
		return false
	}
	arch := machine.Of(m)
	return arch != nil && strings.IndexByte(arch.Mapping, name[1]) >= 0 &&
		(len(name) == 2 || name[2] == '.' || arch.MappingSuffix)
}

// unsized holds the ends of the symbols without a size.
type unsized struct{ starts, ends []uint64 } // parallel, sorted by start

// unsizedEnds finds the next symbol after each symbol without a size. It walks through the table,
// twice if there are any, and keeps only those.
func (f *File) unsizedEnds(r *symbolReader, places *placer) (unsized, error) {
	var u unsized
	err := r.visit(func(_ int, s *rawSymbol) bool {
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
	err = r.visit(func(_ int, s *rawSymbol) bool {
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
	return u, err
}

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
