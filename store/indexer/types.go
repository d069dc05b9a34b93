package indexer

import (
	"context"
	"errors"
	"os"

	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/object/datatype"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/elf"
	"symbolize/store"
	"symbolize/store/typetab"
)

// FileTypes returns what the functions at some addresses access, which are sorted, of a file that runs by
// its debug information, which is in the file debug or the same. Addresses are those of the tables of
// names. It is nil if nothing is known.
func FileTypes(ctx context.Context, program, debug string, only []addr.Addr) (*typetab.Table, error) {
	f, code, err := openELF(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, info := f, code
	if debug != program {
		if data, info, err = openELF(debug); err != nil {
			return nil, err
		}
		defer data.Close()
	}
	w, done := lone(ctx)
	defer done()
	s := &sources{w: w, path: debug, runtime: program, data: data, size: info.Size()}
	base, err := tableBase(info)
	if err != nil {
		return nil, err
	}
	linked := make([]addr.Addr, len(only)) // not nil: none are not all
	for i, a := range only {
		linked[i] = a + base
	}
	t, err := s.types(ctx, code, info, datatype.Options{Only: linked, Base: base})
	if err != nil || t == nil {
		return nil, err
	}
	encoded := typetab.Encode(t)
	if encoded == nil {
		return nil, nil
	}
	return typetab.Open(encoded.Header, encoded)
}

// lone returns a fileReader of no run.
func lone(ctx context.Context) (w *fileReader, done func()) {
	ix := &index{ctx: ctx, opts: Options{Workers: 1}}
	return &fileReader{ix: ix, reads: new(files.Reads)}, ix.alts.close
}

// openELF opens a file.
func openELF(path string) (*os.File, *elf.File, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, nil, pathReason(err)
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, pathReason(err)
	}
	ef, err := elf.Open(path, f, fi.Size())
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, ef, nil
}

// tableBase returns the address that is 0 in the tables of a file: of a kernel that of _text.
func tableBase(f *elf.File) (addr.Addr, error) {
	if !f.IsKernelImage() {
		return 0, nil
	}
	refs, err := f.RefSymbols()
	if err != nil {
		return 0, err
	}
	text, ok := elf.TextSymbol(refs)
	if !ok {
		return 0, errNoText
	}
	return text, nil
}

// types finds the accesses of the instructions in code by the debug information of info.
func (s *sources) types(ctx context.Context, code, info *elf.File, o datatype.Options) (*datatype.Table, error) {
	s.variables = true
	d, err := s.openDebug(info)
	if err != nil {
		return nil, err
	}
	defer d.close()
	t, err := datatype.Read(ctx, code, info, d.data, o)
	if errors.Is(err, dwarf.ErrChanged) {
		err = errChanged
	}
	return t, err
}

// typeTable adds the table of types of a file with debug information. Code of a debug file is in the file
// that it was found as the debug file of.
func (s *sources) typeTable(ctx context.Context, f *elf.File, runs bool) {
	if !hasDWARF(f) {
		return
	}
	code := f
	if !runs {
		if s.runtime == "" {
			return
		}
		file, ef, err := openELF(s.runtime)
		if err != nil {
			s.fail(err)
			return
		}
		defer file.Close()
		code = ef
	}
	base, err := tableBase(f)
	if err != nil {
		s.fail(err)
		return
	}
	t, err := s.types(ctx, code, f, datatype.Options{Base: base})
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
