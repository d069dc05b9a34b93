package indexer

import (
	"cmp"
	stdelf "debug/elf"
	"hash/fnv"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/cfi"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/gopclntab"
	"symbolize/store"
	"symbolize/store/symtab"
)

// skipReason is why an ELF file is not indexed, or "".
func (ix *index) skipReason(f *elf.File) string {
	switch {
	case f.Type == stdelf.ET_CORE:
		return SkipCore
	case f.Type == stdelf.ET_REL && !f.IsModule() && !ix.opts.Relocatable:
		return SkipRelocatable
	}
	return ""
}

// isRuntime reports whether a file is one that runs: only its layout counts.
func isRuntime(f *elf.File) bool { return f.HasCode() && !f.IsDebugOnly() }

// estimate is the memory of an object in work: names as they are read, and for 24 bytes of
// a symbol a candidate of 64 and its place in the table of names. Parts that a run for names only
// skips need none.
func estimate(data io.ReaderAt, f *elf.File, namesOnly bool) int64 {
	size := int64(256<<10) + 4*max(f.SymbolBytes(elf.Symtab), f.SymbolBytes(elf.Dynsym))
	if !namesOnly {
		size += debugEstimate(data, f) + goTableCost*gopclntab.Bytes(f)
	}
	for _, name := range []string{".eh_frame", ".debug_frame"} {
		if s := f.Section(name); s != nil && s.Type != stdelf.SHT_NOBITS {
			size += unwindCost * int64(min(s.Size, uint64(f.Size())))
		}
	}
	if s := f.Section(".gnu_debugdata"); s != nil {
		size += 20 * int64(min(s.Size, uint64(f.Size())))
	}
	return size
}

// unwindCost is the working memory per byte of an unwind table: itself, and its rows.
const unwindCost = 4

// goTableCost is the working memory per byte of a Go table: itself, and the builder's part.
const goTableCost = 4

// contribution makes of one ELF file, which data holds, its addition to the object id. With an
// error it holds the readable parts. looked are the places where files were not found that belong
// to the debug information. runtime is as in sources.
func (w *fileReader) contribution(path, runtime string, data io.ReaderAt, f *elf.File,
	id buildid.ID) (c *store.Contribution, looked []string, err error) {
	c = &store.Contribution{Manifest: store.Manifest{
		ID: id, Kind: kindOfObject(path, f), Machine: uint16(f.Machine), Class: uint8(f.Class),
		BigEndian: f.BigEndian, Type: uint16(f.Type),
	}}
	m := &c.Manifest
	opts := &w.ix.opts
	s := sources{w: w, c: c, path: path, data: data, runtime: runtime, size: f.Size(), pairs: &w.ix.pairs,
		limit: max(opts.MaxMemory, estimateSlack*estimate(data, f, opts.NamesOnly))}
	runs := isRuntime(f)
	switch m.Kind {
	case ingest.Kernel:
		s.kernel(f)
		if opts.Types && opts.Only == nil {
			s.typeTable(w.ix.ctx, f, runs)
		}
		return c, s.looked, s.err
	case ingest.Module:
		if runs {
			var err error
			if m.Sections, err = f.ModuleLayout(); err != nil {
				s.fail(err)
			}
		}
	default:
		if runs {
			m.Layout = f.Segments
		}
	}
	if opts.UnwindOnly {
		s.unwindTable(f, runs)
		return c, s.looked, s.err
	}
	s.only = w.ix.only(m)
	elfKind := runs && m.Kind != ingest.Module
	all := !opts.NamesOnly
	s.dwarf(f, 0)
	if all && elfKind && !s.has(store.DWARF) {
		s.pclntab(f)
	}
	full := s.add(store.Symtab, func(b *symtab.Builder) error {
		return f.Symbols(elf.Symtab, symbolAdder(b, 0))
	})
	if !full {
		s.add(store.Dynsym, func(b *symtab.Builder) error { return addDynamic(b, f) })
	}
	if elfKind {
		s.add(store.PLT, func(b *symtab.Builder) error { return f.PLT(symbolAdder(b, 0)) })
	}
	if all && elfKind && !full {
		s.ehFrame(f)
	}
	// Tables of selected addresses are made after the samples of a capture were read, so nothing
	// remains to be unwound.
	if m.Kind != ingest.Module && !opts.NoUnwind && opts.Only == nil {
		if rules := s.unwindTable(f, runs); rules != nil && runs && opts.Calls {
			s.callTable(f, rules)
		}
	}
	if opts.Types && opts.Only == nil && m.Kind != ingest.VDSO {
		s.typeTable(w.ix.ctx, f, runs)
	}
	return c, s.looked, s.err
}

// kindOfObject is the kind of an object by its file.
func kindOfObject(path string, f *elf.File) ingest.ObjectKind {
	switch {
	case f.Type == stdelf.ET_REL:
		return ingest.Module
	case f.IsKernelImage():
		return ingest.Kernel
	case isVDSOPath(path):
		return ingest.VDSO
	}
	return ingest.ELF
}

// isVDSOPath reports whether a file is a vdso by its path: in perf's cache ([vdso]/BUILDID/vdso),
// or beside a kernel's modules (vdso/vdso64.so).
func isVDSOPath(path string) bool {
	dir, base := filepath.Split(path)
	return base == "vdso" && !buildid.OfDir(path).IsZero() ||
		filepath.Base(dir) == "vdso" && strings.HasSuffix(base, ".so")
}

// sources collects the tables of one file.
type sources struct {
	w    *fileReader
	c    *store.Contribution
	path string
	data io.ReaderAt
	// runtime is the path of the file that this one was found as the debug file of, or "".
	runtime string

	pairs     *typePairs
	variables bool                             // openDebug reads what is known of variables, too
	image     bool                             // openDebug places the data of a module
	size      int64                            // of the file
	limit     int64                            // of the memory of a table that is made, in bytes
	findGo    func() (*gopclntab.Table, error) // of goTable
	err       error                            // the first thing that went wrong
	looked    []string                         // places where parts of the debug information were looked for

	only    []addr.Addr  // of symtab.Builder.Only
	covered []addr.Range // of symtab.Builder.Covered, of all tables
}

func (s *sources) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// has reports whether there is a table of that kind.
func (s *sources) has(kind store.SourceKind) bool {
	return slices.ContainsFunc(s.c.Sources, func(n store.NewSource) bool {
		return n.Info.Kind == kind
	})
}

// add makes one table and reports whether there was anything to put into it.
func (s *sources) add(kind store.SourceKind, fill func(b *symtab.Builder) error) bool {
	b := s.w.acquireBuilder()
	b.SetLimit(s.limit)
	b.Only(s.only)
	b.Demangle(s.demangler(kind))
	if err := fill(b); err != nil {
		s.fail(err)
	}
	defer s.w.releaseBuilder()
	defer func() { s.leftOut(kind, b.LeftOut()) }()
	if b.Len()+len(b.Covered()) == 0 { // with Covered it is Only that leaves the table empty
		return false
	}
	s.c.Sources = append(s.c.Sources, store.SourceOf(kind, s.path, b.Encode()))
	s.covered = append(s.covered, b.Covered()...)
	return true
}

// largeBuilder is the number of symbols from which a Builder is not kept: its buffers would
// outweigh all others for the rest of the run.
const largeBuilder = 64 << 10

// acquireBuilder returns the worker's Builder, empty.
func (w *fileReader) acquireBuilder() *symtab.Builder {
	if w.builder == nil {
		w.builder = symtab.NewBuilder(symtab.Options{Columns: w.ix.opts.Columns})
	}
	return w.builder
}

// releaseBuilder empties the Builder: names in it keep whole string tables alive.
func (w *fileReader) releaseBuilder() {
	if w.builder.Len() > largeBuilder {
		w.builder = nil
		return
	}
	w.builder.Reset()
}

// symbolAdder returns a function that adds a symbol, moved down by base.
func symbolAdder(b *symtab.Builder, base addr.Addr) func(elf.Symbol) bool {
	return func(sym elf.Symbol) bool {
		if sym.Addr < base || sym.End <= sym.Addr {
			return true // per-CPU and absolute symbols of a kernel are below its text
		}
		f := symtab.Func{Start: sym.Addr - base, Size: uint64(sym.End - sym.Addr), Name: sym.Name}
		if sym.Size == 0 {
			f.Flags = symtab.Unsized
		}
		if stdelf.SymType(sym.Type) == stdelf.STT_NOTYPE {
			f.Flags |= symtab.NoType
		}
		switch stdelf.SymBind(sym.Bind) {
		case stdelf.STB_LOCAL:
			f.Flags |= symtab.Local
		case stdelf.STB_WEAK:
			f.Flags |= symtab.Weak
		}
		b.Add(f)
		return true
	}
}

// addDynamic unites .dynsym with .gnu_debugdata, which holds only symbols that the first
// lacks.
func addDynamic(b *symtab.Builder, f *elf.File) error {
	err := f.Symbols(elf.Dynsym, symbolAdder(b, 0))
	mini, done, miniErr := f.DebugData()
	if mini == nil {
		return cmp.Or(err, miniErr)
	}
	defer done()
	return cmp.Or(err, mini.Symbols(elf.Symtab, symbolAdder(b, 0)))
}

// only returns the addresses that the tables of an object are limited to, nil for all.
func (ix *index) only(m *store.Manifest) []addr.Addr {
	if ix.opts.Only == nil {
		return nil
	}
	addrs, all := ix.opts.Only(m)
	switch {
	case all:
		return nil
	case addrs == nil:
		return []addr.Addr{}
	}
	return addrs
}

// demangler returns the demangler for a table's names: the names of debug information, and symbols
// that debug information lacks (it has most constructors under another name). Objects without lines
// need none: their names are not looked up by the hundred thousand.
func (s *sources) demangler(kind store.SourceKind) *symtab.Demangler {
	by := s.w.ix.demangler(s.c.Manifest.ID)
	if by == nil {
		return nil
	}
	switch kind {
	case store.DWARF:
		return by
	case store.Symtab, store.Dynsym:
		if known := s.knownNames(); known != nil {
			return &symtab.Demangler{ID: by.ID, Name: func(name string) string {
				if known[hashOf(name)] {
					return name
				}
				return by.Name(name)
			}}
		}
	}
	return nil
}

// knownNames returns the hashes of the names in the object's table of debug information, nil
// without one. Of two names with one hash, one would be demangled when it is looked up.
func (s *sources) knownNames() map[uint64]bool {
	for i := range s.c.Sources {
		src := &s.c.Sources[i]
		if src.Info.Kind != store.DWARF {
			continue
		}
		t, err := symtab.Open(src.Table.Header, src.Table)
		if err != nil {
			s.fail(err)
			return nil
		}
		known := make(map[uint64]bool, t.NumNames())
		for n := range t.NumNames() {
			name, err := t.Name(symtab.NameID(n))
			if err != nil {
				s.fail(err)
				return nil
			}
			known[hashOf(name)] = true
		}
		return known
	}
	return nil
}

func hashOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// ehFrame adds the functions that only the unwind table knows, under names made of
// their addresses: the last resort for stripped programs.
func (s *sources) ehFrame(f *elf.File) {
	table, err := cfi.FindEHFrame(f)
	if err != nil {
		s.fail(incompleteError(err.Error()))
	}
	if table == nil {
		return
	}
	covered := addr.AppendUnion(nil, s.covered)
	s.add(store.EhFrame, func(b *symtab.Builder) error {
		lost, err := table.Frames(func(r cfi.CodeRange) bool {
			if !overlaps(covered, r.Range) && inCode(f, r.Range) {
				prefix := ingest.MadePrefix
				if r.Signal {
					prefix = ingest.SignalPrefix
				}
				b.Add(symtab.Func{
					Start: r.Start, Size: uint64(r.End - r.Start),
					Name: string(strconv.AppendUint([]byte(prefix), uint64(r.Start), 16)),
				})
			}
			return true
		})
		return lostEntries(lost, err)
	})
}

// overlaps reports whether r shares an address with one of sorted, disjoint ranges.
func overlaps(ranges []addr.Range, r addr.Range) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].End > r.Start })
	return i < len(ranges) && ranges[i].Start < r.End
}

// inCode reports whether a range is within a code section. In a file without section headers every
// range is.
func inCode(f *elf.File, r addr.Range) bool {
	for i := range f.Sections {
		s := &f.Sections[i]
		if s.IsCode() && r.Start >= s.Addr && uint64(r.End-s.Addr) <= s.Size {
			return true
		}
	}
	return len(f.Sections) <= 1
}
