package indexer

import (
	"context"
	stdelf "debug/elf"
	"errors"
	"maps"
	"os"
	"slices"
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
	code  map[buildid.ID]*fileTask
	debug map[buildid.ID]*fileTask
	made  map[buildid.ID]bool // objects of which both were read
}

// add notes a file in code or debug. Of several with an ID the one with the least path counts.
func (p *typePairs) add(to *map[buildid.ID]*fileTask, id buildid.ID, t *fileTask) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *to == nil {
		*to = make(map[buildid.ID]*fileTask)
	}
	if known := (*to)[id]; t != nil && (known == nil || t.path < known.path) {
		(*to)[id] = t
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

// pairTypes makes the tables of types of debug files that were found on their own, now that all files with
// code are known. One file of a pair may be of an earlier run: the store has its path.
func (ix *index) pairTypes() {
	p := &ix.pairs
	ids := slices.Collect(maps.Keys(p.debug))
	for id := range p.code {
		if p.debug[id] == nil {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if p.made[id] {
			continue
		}
		debug, code := p.debug[id].at(), p.code[id].at()
		if debug == "" {
			debug = ix.storedFile(id, hasDWARF)
		}
		if code == "" {
			code = ix.storedFile(id, isRuntime)
		}
		switch {
		case debug != "" && code != "":
			ix.queue.pushObject(0, func(w *fileReader) { w.pairedTypes(debug, code, id) })
		case p.debug[id] != nil:
			ix.sum.Skipped[SkipNoCode]++
		}
	}
	if ix.ctx.Err() == nil {
		ix.run()
	}
}

// at returns the path of a task, "" of none.
func (t *fileTask) at() string {
	if t == nil {
		return ""
	}
	return t.path
}

// storedFile returns the path of a file of an object that tables of the store were made from and that is as
// asked for; "" for none.
func (ix *index) storedFile(id buildid.ID, is func(*elf.File) bool) string {
	m, _, _ := store.FindOne(ix.view, id)
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

// pairedTypes adds the table of types of a debug file by the code of another file.
func (w *fileReader) pairedTypes(debug, code string, id buildid.ID) {
	f, ef, err := openELF(debug)
	if err == nil {
		defer f.Close()
		w.reads = &files.Reads{}
		s := sources{w: w, path: debug, runtime: code, data: w.reads.Of(f), size: ef.Size(), c: &store.Contribution{
			Manifest: store.Manifest{ID: id, Kind: kindOfObject(debug, ef), Machine: uint16(ef.Machine),
				Class: uint8(ef.Class), BigEndian: ef.BigEndian, Type: uint16(ef.Type)}}}
		s.typeTable(w.ix.ctx, ef, false)
		if err = s.err; len(s.c.Sources) > 0 && w.ix.ctx.Err() == nil {
			_ = w.ix.merge(s.c, true) // its error ends the run, or is of an object too large for the store
		}
	}
	if err != nil && w.ix.ctx.Err() == nil {
		w.ix.count(func(s *Summary) {
			s.Problems = append(s.Problems, Problem{Path: debug, Err: err, Kept: true})
		})
	}
}

// typeTable adds the table of types of a file with debug information. Code of a debug file is in the file
// that it was found as the debug file of; if it was found on its own, pairTypes finds that.
func (s *sources) typeTable(ctx context.Context, f *elf.File, runs bool) {
	if !hasDWARF(f) {
		return
	}
	code := f
	if !runs {
		if s.runtime == "" {
			s.w.ix.pairs.add(&s.w.ix.pairs.debug, s.c.Manifest.ID, s.w.task)
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
	s.w.ix.pairs.done(s.c.Manifest.ID)
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
