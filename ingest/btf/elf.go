package btf

import (
	"fmt"

	"symbolize/ingest/elf"
)

// FromELF reads the sections .BTF and .BTF.ext of a file. Without .BTF all is nil.
// Where only .BTF.ext is damaged the types are returned with the error, and of it what
// was whole.
//
// In object files the places of variables in a DATASEC are zero: the linker's symbols
// have them.
func FromELF(f *elf.File) (*Types, *Ext, error) {
	s := f.Section(".BTF")
	if s == nil {
		return nil, nil, nil
	}
	b, err := f.Data(s, maxBlob)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: section .BTF: %w", f.Name, err)
	}
	t, err := Parse(f.Name+": .BTF", b, nil)
	if err != nil {
		return nil, nil, err
	}
	if s = f.Section(".BTF.ext"); s == nil {
		return t, nil, nil
	}
	if b, err = f.Data(s, maxBlob); err != nil {
		return t, nil, fmt.Errorf("%s: section .BTF.ext: %w", f.Name, err)
	}
	x, err := ParseExt(f.Name+": .BTF.ext", b, int64(s.Offset), t)
	return t, x, err
}
