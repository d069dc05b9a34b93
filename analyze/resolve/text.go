package resolve

import (
	"errors"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/elf"
)

// LinkedText returns the ELF virtual address of _text in a kernel's vmlinux: tables of kernels
// count from there. f may be nil; then and where f lacks the symbol there is an error.
func LinkedText(f *elf.File) (addr.Addr, error) {
	if f != nil {
		refs, err := f.RefSymbols()
		for _, r := range refs {
			if r.Name == "_text" {
				return r.Addr, nil
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, ingest.WithHint(errors.New("the store does not know where this kernel was linked to"),
		"name its vmlinux with -e, or look up --offsets from _text")
}
