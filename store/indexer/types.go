package indexer

import (
	"context"
	stdelf "debug/elf"
	"errors"
	"maps"
	"os"
	"sync"

	"symbolize/buildid"
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
	o, err := selected(info, only)
	if err != nil {
		return nil, err
	}
	t, err := s.types(ctx, code, info, o)
	if err != nil || t == nil {
		return nil, err
	}
	return openTypes(t)
}

// FileVariables returns the global variables of a file that runs by its debug information, which is in the file debug
// or the same, as FileTypes: nil if there are none.
func FileVariables(ctx context.Context, program, debug string) (*datatype.Variables, error) {
	data, info, err := openELF(debug)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	w, done := lone(ctx)
	defer done()
	s := &sources{w: w, path: debug, runtime: program, data: data, size: info.Size(), variables: true, image: true}
	base, err := tableBase(info)
	if err != nil {
		return nil, err
	}
	d, err := s.openDebug(info)
	if err != nil {
		return nil, err
	}
	defer d.close()
	v, err := datatype.ReadVariables(ctx, d.data, base, info.IsKernelImage() || info.IsModule())
	if errors.Is(err, dwarf.ErrChanged) {
		err = errChanged
	}
	return v, err
}

// selected returns the options for the functions at some addresses of the tables of a file.
func selected(f *elf.File, only []addr.Addr) (datatype.Options, error) {
	base, err := tableBase(f)
	linked := make([]addr.Addr, len(only)) // not nil: none are not all
	for i, a := range only {
		linked[i] = a + base
	}
	return datatype.Options{Only: linked, Base: base}, err
}

// openTypes returns the stored form of a table; nil for an empty one.
func openTypes(t *datatype.Table) (*typetab.Table, error) {
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

// tableBase returns the address that is 0 in the tables of a file: of a kernel that of _text, of a module
// where it is placed while its debug information is read.
func tableBase(f *elf.File) (addr.Addr, error) {
	if f.Type == stdelf.ET_REL {
		return moduleBase, nil
	}
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
	s.variables, s.image = true, true
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

// typePairs are the files of a run with Options.Types by their build IDs: those with code, and debug files that
// were read without it, as they were found on their own.
type typePairs struct {
	mu    sync.Mutex
	code  map[buildid.ID]string // paths
	debug map[buildid.ID]string
	made  map[buildid.ID]bool // objects of which both were read
}

// typePair is a debug file and the file of its code.
type typePair struct {
	id          buildid.ID
	debug, code string
}

// add notes a file. Of several with an ID the one with the least path counts.
func (p *typePairs) add(id buildid.ID, path string, code bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := &p.debug
	if code {
		to = &p.code
	}
	if *to == nil {
		*to = make(map[buildid.ID]string)
	}
	if known, ok := (*to)[id]; !ok || path < known {
		(*to)[id] = path
	}
}

func (p *typePairs) done(id buildid.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil {
		p.made = make(map[buildid.ID]bool)
	}
	p.made[id] = true
}

// list returns the pairs of which no table was made, and the number of debug files that remain without code. One
// file of a pair may be of an earlier run: the view has its path.
func (p *typePairs) list(view store.View) (list []typePair, alone uint64) {
	ids := maps.Clone(p.code)
	if ids == nil {
		ids = make(map[buildid.ID]string)
	}
	maps.Copy(ids, p.debug)
	for id := range ids {
		if p.made[id] {
			continue
		}
		x := typePair{id, p.debug[id], p.code[id]}
		if x.debug == "" {
			x.debug = storedFile(view, id, hasDWARF)
		}
		if x.code == "" {
			x.code = storedFile(view, id, isRuntime)
		}
		switch {
		case x.debug != "" && x.code != "":
			list = append(list, x)
		case x.debug != "":
			alone++
		}
	}
	return list, alone
}

// storedFile returns the path of a file of an object that tables of a view were made from and that is as
// asked for; "" for none.
func storedFile(view store.View, id buildid.ID, is func(*elf.File) bool) string {
	m, _, _ := store.FindOne(view, id)
	if m == nil {
		return ""
	}
	for i := range m.Sources {
		f, ef, err := openELF(m.Sources[i].Path)
		if err != nil {
			continue
		}
		f.Close()
		if ef.ID.Matches(id) && is(ef) {
			return m.Sources[i].Path
		}
	}
	return ""
}

// contribution makes the table of types of a pair.
func (p *typePair) contribution(ctx context.Context, w *fileReader) (*store.Contribution, error) {
	f, ef, err := openELF(p.debug)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &store.Contribution{Manifest: store.Manifest{ID: p.id, Kind: kindOfObject(p.debug, ef),
		Machine: uint16(ef.Machine), Class: uint8(ef.Class), BigEndian: ef.BigEndian, Type: uint16(ef.Type)}}
	s := sources{w: w, path: p.debug, runtime: p.code, data: w.begin().Of(f), size: ef.Size(), c: c, pairs: new(typePairs)}
	s.typeTable(ctx, ef, false)
	return c, s.err
}

// begin returns the Reads of a file.
func (w *fileReader) begin() *files.Reads {
	w.reads = new(files.Reads)
	return w.reads
}

// push adds tasks that make the tables of types of debug files that were found on their own. It is called when all
// files of the paths were read. merge gets the tables, failed the errors of debug files.
func (p *typePairs) push(ctx context.Context, q *queue, view store.View, skipped map[string]uint64,
	merge func(*store.Contribution, bool) error, failed func(path string, err error, named bool)) {
	list, alone := p.list(view)
	if alone > 0 {
		skipped[SkipNoCode] = alone
	}
	for _, x := range list {
		q.pushObject(0, func(w *fileReader) {
			c, err := x.contribution(ctx, w)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				failed(x.debug, err, false)
			case len(c.Sources) > 0:
				_ = merge(c, true) // its error ends the run, or is of an object too large for the store
			}
		})
	}
}

// typeTable adds the table of types of a file with debug information. Code of a debug file is in the file
// that it was found as the debug file of; if it was found on its own, pairTypes finds that.
func (s *sources) typeTable(ctx context.Context, f *elf.File, runs bool) {
	if !hasDWARF(f) {
		if runs {
			s.pairs.add(s.c.Manifest.ID, s.path, true)
		}
		if runs && f.IsKernelImage() {
			s.btfTable(ctx, f)
		}
		return
	}
	code := f
	if !runs {
		if s.runtime == "" {
			s.pairs.add(s.c.Manifest.ID, s.path, false)
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
	s.pairs.done(s.c.Manifest.ID)
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
