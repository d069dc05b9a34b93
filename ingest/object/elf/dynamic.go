package elf

import (
	"bufio"
	"debug/elf"
	"io"
	"slices"

	"symbolize/ingest/addr"
)

// Bounds on what a file without section headers has in place of them.
const (
	maxDynamic   = 1 << 20 // bytes of the dynamic table; real ones have some hundred
	maxHashWords = 1 << 26 // buckets of DT_GNU_HASH
	maxChain     = 1 << 16 // symbols in one bucket
)

// implySections makes sections of the program headers and of the dynamic table, in a file without
// section headers (sstrip, llvm-strip --strip-sections): of each PT_LOAD, of dynamic symbols, their
// names and relocations, and of unwind tables. Without a valid dynamic table there are none.
func (f *File) implySections() {
	if len(f.Sections) > 1 || f.dynamic.size == 0 || f.Type != elf.ET_DYN && f.Type != elf.ET_EXEC {
		return
	}
	table := f.dynamicTable()
	if table == nil {
		return
	}
	f.implied, f.Sections = true, make([]Section, 1, 16)
	for _, s := range f.Segments {
		sec := Section{Name: "PT_LOAD", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: s.Addr,
			Offset: s.Offset, Size: s.FileSize}
		if elf.ProgFlag(s.Flags)&elf.PF_X != 0 {
			sec.Flags |= elf.SHF_EXECINSTR
		}
		if elf.ProgFlag(s.Flags)&elf.PF_W != 0 {
			sec.Flags |= elf.SHF_WRITE
		}
		f.Sections = append(f.Sections, sec)
	}
	f.Sections = append(f.Sections, Section{Name: ".dynamic", Type: elf.SHT_DYNAMIC,
		Offset: addr.Offset(f.dynamic.off), Size: f.dynamic.size})
	if got, ok := table[elf.DT_PLTGOT]; ok {
		f.Sections = append(f.Sections, Section{Name: ".got.plt", Type: elf.SHT_NOBITS, Addr: addr.Addr(got)})
	}
	f.implyTables(table)
	f.implyFrames()
}

// dynamicTable returns the first entry of each tag; nil for damage.
func (f *File) dynamicTable() map[elf.DynTag]uint64 {
	word := f.wordSize()
	b := make([]byte, min(f.dynamic.size, maxDynamic)/(2*word)*(2*word))
	if f.readAt(b, f.dynamic.off) != nil {
		return nil
	}
	table := make(map[elf.DynTag]uint64)
	for ; len(b) > 0; b = b[2*word:] {
		tag, value := elf.DynTag(f.u32(b)), uint64(0)
		if word == 8 {
			tag, value = elf.DynTag(f.u64(b)), f.u64(b[8:])
		} else {
			value = uint64(f.u32(b[4:]))
		}
		if tag == elf.DT_NULL {
			break
		}
		if _, ok := table[tag]; !ok {
			table[tag] = value
		}
	}
	return table
}

// implyTables adds the sections of dynamic symbols, their names and relocations, those that are in the
// file.
func (f *File) implyTables(table map[elf.DynTag]uint64) {
	add := func(s Section, at uint64) bool {
		off, n, ok := f.inFile(at)
		if s.Addr, s.Offset, s.Size = addr.Addr(at), addr.Offset(off), min(s.Size, n); !ok || s.Size == 0 {
			return false
		}
		f.Sections = append(f.Sections, s)
		return true
	}
	relocs := []int{}
	relocations := func(name string, kind elf.SectionType, at, size elf.DynTag) {
		if add(Section{Name: name, Type: kind, Flags: elf.SHF_ALLOC, Size: table[size]}, table[at]) {
			relocs = append(relocs, len(f.Sections)-1)
		}
	}
	if elf.DynTag(table[elf.DT_PLTREL]) == elf.DT_RELA {
		relocations(".rela.plt", elf.SHT_RELA, elf.DT_JMPREL, elf.DT_PLTRELSZ)
	} else {
		relocations(".rel.plt", elf.SHT_REL, elf.DT_JMPREL, elf.DT_PLTRELSZ)
	}
	relocations(".rela.dyn", elf.SHT_RELA, elf.DT_RELA, elf.DT_RELASZ)
	relocations(".rel.dyn", elf.SHT_REL, elf.DT_REL, elf.DT_RELSZ)
	names := Section{Name: ".dynstr", Type: elf.SHT_STRTAB, Flags: elf.SHF_ALLOC, Size: table[elf.DT_STRSZ]}
	if !add(names, table[elf.DT_STRTAB]) {
		return
	}
	size := uint64(sym64)
	if f.Class == elf.ELFCLASS32 {
		size = sym32
	}
	count := f.hashedSymbols(table)
	for _, i := range relocs { // a GNU hash table has no undefined symbols
		f.relocations(i, func(_ int64, r *reloc) bool {
			count = max(count, uint64(r.sym)+1)
			return true
		})
	}
	add(Section{Name: ".dynsym", Type: elf.SHT_DYNSYM, Flags: elf.SHF_ALLOC, EntSize: size,
		Link: uint32(len(f.Sections) - 1), Size: count * size}, table[elf.DT_SYMTAB])
}

// hashedSymbols returns the number of dynamic symbols by the hash tables, 0 where they have none.
func (f *File) hashedSymbols(table map[elf.DynTag]uint64) uint64 {
	words := func(at, n uint64) []byte { // n words at an address; nil outside the file
		off, have, ok := f.inFile(at)
		if !ok || n > have/4 || n > maxHashWords {
			return nil
		}
		b := make([]byte, 4*n)
		if f.readAt(b, off) != nil {
			return nil
		}
		return b
	}
	if at, ok := table[elf.DT_HASH]; ok {
		if b := words(at, 2); b != nil {
			return uint64(f.u32(b[4:])) // nchain
		}
	}
	at, ok := table[elf.DT_GNU_HASH]
	head := words(at, 4)
	if !ok || head == nil {
		return 0
	}
	first, last := uint64(f.u32(head[4:])), uint64(0)
	buckets := at + 16 + uint64(f.u32(head[8:]))*f.wordSize() // behind the Bloom filter
	n := uint64(f.u32(head))
	for b := words(buckets, n); len(b) > 0; b = b[4:] {
		last = max(last, uint64(f.u32(b)))
	}
	if last < first {
		return first
	}
	for range maxChain { // an odd hash ends the last chain
		b := words(buckets+4*n+4*(last-first), 1)
		if last++; b == nil || f.u32(b)&1 != 0 {
			break
		}
	}
	return last
}

// inFile returns the file offset of an address, and the number of bytes from there in its segment
// and the file.
func (f *File) inFile(a uint64) (off, n uint64, ok bool) {
	for i := range f.Segments {
		s := &f.Segments[i]
		d := a - uint64(s.Addr)
		if a < uint64(s.Addr) || d >= s.FileSize || uint64(s.Offset) > uint64(f.size) ||
			d >= uint64(f.size)-uint64(s.Offset) {
			continue
		}
		off = uint64(s.Offset) + d
		return off, min(s.FileSize-d, uint64(f.size)-off), true
	}
	return 0, 0, false
}

// implyFrames adds .eh_frame, to which PT_GNU_EH_FRAME points, up to its terminator. The header has
// one usual encoding of the pointer: signed, of four bytes, counted from the pointer.
func (f *File) implyFrames() {
	const usual = 0x1b // DW_EH_PE_pcrel | DW_EH_PE_sdata4
	var b [8]byte
	at := slices.IndexFunc(f.Segments, func(s Segment) bool {
		return f.frames.off >= uint64(s.Offset) && f.frames.off-uint64(s.Offset) < s.FileSize
	})
	if f.frames.size < uint64(len(b)) || at < 0 || f.readAt(b[:], f.frames.off) != nil || b[0] != 1 || b[1] != usual {
		return
	}
	s := &f.Segments[at]
	header := uint64(s.Addr) + f.frames.off - uint64(s.Offset)
	start := header + 4 + uint64(int64(int32(f.u32(b[4:]))))
	off, n, ok := f.inFile(start)
	if !ok {
		return
	}
	end := uint64(0)
	for in := bufio.NewReaderSize(io.NewSectionReader(f.r, int64(off), int64(n)), blockSize); ; {
		if _, err := io.ReadFull(in, b[:4]); err != nil {
			break
		}
		size := uint64(f.u32(b[:]))
		if size > n-end-4 { // what follows a section without terminator
			break
		}
		if end += 4 + size; size == 0 {
			break
		}
		if _, err := in.Discard(int(size)); err != nil {
			break
		}
	}
	if end == 0 {
		return
	}
	f.Sections = append(f.Sections, Section{Name: ".eh_frame", Type: elf.SHT_PROGBITS,
		Flags: elf.SHF_ALLOC, Addr: addr.Addr(start), Offset: addr.Offset(off), Size: end})
}

// impliedSection returns the number of the section of a symbol with a value in a file without
// section headers.
func (f *File) impliedSection(value uint64) uint32 {
	i := slices.IndexFunc(f.Sections, func(s Section) bool { return s.Name == "PT_LOAD" && s.contains(value) })
	return uint32(i) // -1: in none
}
