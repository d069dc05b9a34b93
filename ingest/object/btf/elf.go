package btf

import (
	"fmt"

	"symbolize/ingest/object/elf"
)

// FromELF reads the sections .BTF and .BTF.ext of a file. Without .BTF all results are nil. If
// only .BTF.ext is damaged the types are returned with the error and the valid part of .BTF.ext.
//
// In object files the compiler leaves the offsets of variables in a DATASEC to the linker;
// FromELF sets them from the symbols, also in Raw.
func FromELF(f *elf.File) (*Types, *Ext, error) {
	s := f.Section(".BTF")
	if s == nil {
		return nil, nil, nil
	}
	b, err := f.Data(s, maxBlob)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: section .BTF: %w", f.Name, err)
	}
	base, err := baseOf(f)
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
	if s = f.Section(".BTF.ext"); s == nil {
		return t, nil, nil
	}
	if b, err = f.Data(s, maxBlob); err != nil {
		return t, nil, fmt.Errorf("%s: section .BTF.ext: %w", f.Name, err)
	}
	x, err := parseExt(f.Name+": .BTF.ext", b, int64(s.Offset), t)
	return t, x, err
}

// baseOf reads .BTF.base, in modules for Linux 6.11 and later: the part of the kernel's types
// that the module needs. Nil if there is none.
func baseOf(f *elf.File) (*Types, error) {
	s := f.Section(".BTF.base")
	if s == nil {
		return nil, nil
	}
	b, err := f.Data(s, maxBlob)
	if err != nil {
		return nil, fmt.Errorf("%s: section .BTF.base: %w", f.Name, err)
	}
	return Parse(f.Name+": .BTF.base", b, nil)
}
