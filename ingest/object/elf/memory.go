package elf

import (
	"debug/elf"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/machine"
)

// Mapped returns the file offset of the byte that the loader puts at address a, and the number n
// of bytes from there that are contiguous in both. Ok is false where the file has no contents for
// it. It uses sections, because a debug file's program headers are not valid; in a file without
// sections, PT_LOADs.
func (f *File) Mapped(a addr.Addr) (off addr.Offset, n uint64, ok bool) {
	in := func(start addr.Addr, at addr.Offset, size uint64) bool {
		d := uint64(a - start)
		if a < start || d >= size || uint64(at) > uint64(f.size)-min(d, uint64(f.size)) {
			return false
		}
		off = at + addr.Offset(d)
		n = min(size-d, uint64(f.size)-uint64(off))
		return n > 0
	}
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Flags&elf.SHF_ALLOC != 0 && s.Type != elf.SHT_NOBITS && in(s.Addr, s.Offset, s.Size) {
			return off, n, true
		}
	}
	if len(f.Sections) > 0 {
		return 0, 0, false
	}
	for i := range f.Segments {
		if s := &f.Segments[i]; in(s.Addr, s.Offset, s.FileSize) {
			return off, n, true
		}
	}
	return 0, 0, false
}

// ReadBytes fills b with the bytes of the file at off. It may be called by several
// goroutines.
func (f *File) ReadBytes(off addr.Offset, b []byte) error { return f.readAt(b, uint64(off)) }

// Relative visits the pointers that the dynamic loader writes into the image of a
// position-independent file, from the SHT_RELA sections that it reads: at is the address, value
// the pointer before relocation. The file's bytes at that address may differ. (Those of SHT_REL
// and SHT_RELR sections are in place always.) The visit ends when it returns false. The order is
// undefined.
func (f *File) Relative(visit func(at, value addr.Addr) bool) error {
	arch := machine.Of(f.Machine)
	if arch == nil || arch.Dynamic.Relative == 0 {
		return nil
	}
	kind := arch.Dynamic.Relative
	left := f.size // relocation sections do not overlap in real files
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		if s.Size > uint64(left) {
			return f.fail(uint64(s.Offset), "relocation sections are longer than the file")
		}
		left -= int64(s.Size)
		more := true
		err := f.relocations(i, func(_ int64, r *reloc) bool {
			if r.kind == kind && r.hasAdd {
				more = visit(addr.Addr(r.off), addr.Addr(r.addend))
			}
			return more
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// Values returns the values of symbols of any type, by name, from .symtab (the first, where there
// are several). Missing symbols are not in the map. It reads the whole table.
func (f *File) Values(names ...string) (map[string]addr.Addr, error) {
	values := make(map[string]addr.Addr)
	err := f.rawSymbols(Symtab, func(_ int, s *rawSymbol) bool {
		if s.shndx == uint32(elf.SHN_UNDEF) || !f.table.has(s.name) {
			return true
		}
		i := slices.IndexFunc(names, func(name string) bool { return f.hasName(s.name, name) })
		if i >= 0 {
			if _, ok := values[names[i]]; !ok {
				values[names[i]] = addr.Addr(s.value)
			}
		}
		return len(values) < len(names)
	})
	return values, err
}

// hasName reports whether the name at off of the string table is this one.
func (f *File) hasName(off uint32, name string) bool {
	text := f.table.text
	end := uint64(off) + uint64(len(name))
	return end < uint64(len(text)) && text[end] == 0 && text[off:end] == name
}
