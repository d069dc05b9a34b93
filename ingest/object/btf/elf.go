package btf

import (
	"fmt"

	"symbolize/ingest/object/elf"
)

// contents returns a section of a file and its bytes; nil if there is none.
func contents(f *elf.File, name string) (*elf.Section, []byte, error) {
	s := f.Section(name)
	if s == nil {
		return nil, nil, nil
	}
	b, err := f.Data(s, maxBlob)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: section %s: %w", f.Name, name, err)
	}
	return s, b, nil
}

// FromELF reads the sections .BTF and .BTF.ext of a file. Without .BTF all results are nil. If
// only .BTF.ext is damaged the types are returned with the error and the valid part of .BTF.ext.
// The base of the types is .BTF.base, in modules for Linux 6.11 and later: the part of the kernel's
// types that the module needs.
//
// In object files the compiler leaves the offsets of variables in a DATASEC to the linker;
// FromELF sets them from the symbols, also in Raw.
func FromELF(f *elf.File) (*Types, *Ext, error) {
	s, b, err := contents(f, ".BTF")
	if s == nil {
		return nil, nil, err
	}
	var base *Types
	s, below, err := contents(f, ".BTF.base")
	if s != nil {
		base, err = Parse(f.Name+": .BTF.base", below, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := Parse(f.Name+": .BTF", b, base)
	if err != nil {
		return nil, nil, err
	}
	if err := placeVariables(f, t); err != nil {
		return t, nil, fmt.Errorf("%s: symbols: %w", f.Name, err)
	}
	s, b, err = contents(f, ".BTF.ext")
	if s == nil {
		return t, nil, err
	}
	x, err := parseExt(f.Name+": .BTF.ext", b, int64(s.Offset), t)
	return t, x, err
}
