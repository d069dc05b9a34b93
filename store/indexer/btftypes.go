package indexer

import (
	"context"
	stdelf "debug/elf"
	"fmt"

	"symbolize/buildid"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/datatype"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/typetab"
)

// BTFTypes is FileTypes of a kernel or module by its BTF. base are the kernel's types, which those of a module
// continue.
func BTFTypes(ctx context.Context, program string, base *btf.Types, only []addr.Addr) (*typetab.Table, error) {
	f, code, err := openELF(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	types, err := readBTF(code, base)
	if err != nil || types == nil {
		return nil, err
	}
	o, err := selected(code, only)
	if err != nil {
		return nil, err
	}
	t, err := datatype.ReadBTF(ctx, code, types, o)
	if err != nil || t == nil {
		return nil, err
	}
	return openTypes(t)
}

// readBTF reads the types of a kernel or module; nil without any. Those of a module continue the types of base, if
// they are not whole without: their numbers are beyond their own then.
func readBTF(f *elf.File, base *btf.Types) (*btf.Types, error) {
	types, _, err := btf.FromELF(f)
	s := f.Section(".BTF")
	switch {
	case types != nil:
		return types, nil // an error is of .BTF.ext
	case s == nil || f.Type != stdelf.ET_REL:
		return nil, err
	case base == nil:
		return nil, fmt.Errorf("%w: its BTF continues the kernel's, and no file of the kernel is at hand", err)
	}
	b, err := f.Data(s, 0)
	if err != nil {
		return nil, err
	}
	return btf.Parse(f.Name+": .BTF", b, base)
}

// KernelBTF returns the types of a kernel: in program, its file, or else those of this host's kernel, if running is
// set and it has the build ID; nil without either.
func KernelBTF(program string, id buildid.ID, running bool) (*btf.Types, error) {
	if program != "" {
		f, code, err := openELF(program)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if types, err := readBTF(code, nil); types != nil || err != nil {
			return types, err
		}
	}
	if own, err := notesID("/sys/kernel/notes"); !running || err != nil || !own.Matches(id) {
		return nil, nil
	}
	return btf.ReadFile("/sys/kernel/btf/vmlinux", nil)
}

// btfTable adds the table of types of a kernel without debug information. That of a module would need the kernel's
// types, and nothing proves to have them.
func (s *sources) btfTable(ctx context.Context, f *elf.File) {
	types, err := readBTF(f, nil)
	if types == nil {
		s.fail(err)
		return
	}
	base, err := tableBase(f)
	if err != nil {
		s.fail(err)
		return
	}
	t, err := datatype.ReadBTF(ctx, f, types, datatype.Options{Base: base})
	if err != nil {
		s.fail(err)
	}
	if t == nil {
		return
	}
	if table := typetab.Encode(t); table != nil {
		s.c.Sources = append(s.c.Sources, store.SourceOf(store.Types, s.path, table))
	}
}
