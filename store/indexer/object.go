package indexer

import (
	stdelf "debug/elf"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
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
// skips take none.
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
func (w *worker) contribution(path, runtime string, data io.ReaderAt, f *elf.File,
	id buildid.ID) (c *store.Contribution, looked []string, err error) {
	c = &store.Contribution{Manifest: store.Manifest{
		ID: id, Kind: kindOfObject(path, f), Machine: uint16(f.Machine), Class: uint8(f.Class),
		BigEndian: f.BigEndian, Type: uint16(f.Type),
	}}
	m := &c.Manifest
	s := sources{w: w, c: c, path: path, data: data, runtime: runtime,
		size: f.Size(), limit: w.ix.tableLimit(data, f)}
	runs := isRuntime(f)
	switch m.Kind {
	case ingest.Kernel:
		s.kernel(f)
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
	if w.ix.opts.UnwindOnly {
		s.unwindTable(f, runs)
		return c, s.looked, s.err
	}
	s.only = w.ix.only(m)
	elfKind := runs && m.Kind != ingest.Module
	all := !w.ix.opts.NamesOnly
	s.dwarf(f, 0)
	if all && elfKind && !s.has(store.DWARF) {
		s.pclntab(f)
	}
	full := s.add(store.Symtab, func(b *symtab.Builder) error {
		return addSymbols(b, f, elf.Symtab, 0)
	})
	if !full {
		s.add(store.Dynsym, func(b *symtab.Builder) error { return addDynamic(b, f) })
	}
	if elfKind {
		s.add(store.PLT, func(b *symtab.Builder) error {
			return f.PLT(func(sym elf.Symbol) bool {
				addSymbol(b, &sym, 0)
				return true
			})
		})
	}
	if all && elfKind && !full {
		s.ehFrame(f)
	}
	if m.Kind != ingest.Module && w.ix.wantsUnwind() {
		s.unwindTable(f, runs)
	}
	return c, s.looked, s.err
}

// wantsUnwind reports whether unwind tables are made. Tables of selected addresses (Options.Only)
// are made after the samples of a capture were read, so nothing remains to be unwound.
func (ix *index) wantsUnwind() bool { return !ix.opts.NoUnwind && ix.opts.Only == nil }

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
	return base == "vdso" && !idOfDir(path).IsZero() ||
		filepath.Base(dir) == "vdso" && strings.HasSuffix(base, ".so")
}

// sources collects the tables of one file.
type sources struct {
	w    *worker
	c    *store.Contribution
	path string
	data io.ReaderAt
	// runtime is the path of the file that this one was found as the debug file of, or "".
	runtime string

	size  int64 // of the file
	limit int64 // of the memory of a table that is made, in bytes
	// goProgram is set for files with Go's own table.
	goProgram bool
	err       error    // the first thing that went wrong
	looked    []string // places where parts of the debug information were looked for

	only   []addr.Addr  // of symtab.Builder.Only
	passed []addr.Range // of symtab.Builder.Passed
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
	b := s.w.takeBuilder()
	b.SetLimit(s.limit)
	b.Only(s.only)
	b.Demangle(s.demangler(kind))
	if err := fill(b); err != nil {
		s.fail(err)
	}
	defer s.w.giveBuilder()
	defer func() { s.leftOut(kind, b.LeftOut()) }()
	if b.Len() == 0 {
		return false
	}
	table, err := b.Encode()
	if err != nil {
		s.fail(err)
		return false
	}
	s.passed = append(s.passed, b.Passed()...)
	s.c.Sources = append(s.c.Sources, store.NewSource{
		Info:  store.SourceInfo{Kind: kind, Producer: Producer, Path: s.path},
		Table: table,
	})
	return true
}

// largeBuilder is the number of symbols from which a Builder is not kept: its buffers would
// outweigh all others for the rest of the run.
const largeBuilder = 64 << 10

// takeBuilder returns the worker's Builder, empty.
func (w *worker) takeBuilder() *symtab.Builder {
	if w.builder == nil {
		w.builder = w.ix.newBuilder()
	}
	return w.builder
}

func (ix *index) newBuilder() *symtab.Builder {
	return symtab.NewBuilder(symtab.Options{Columns: ix.opts.Columns})
}

// giveBuilder empties the Builder: names in it keep whole string tables alive.
func (w *worker) giveBuilder() {
	if w.builder.Len() > largeBuilder {
		w.builder = nil
		return
	}
	w.builder.Reset()
}

// addSymbol adds a symbol, moved down by base.
func addSymbol(b *symtab.Builder, sym *elf.Symbol, base addr.Addr) {
	if sym.Addr < base {
		return // per-CPU and absolute symbols of a kernel are below its text
	}
	if sym.End <= sym.Addr {
		return
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
}

func addSymbols(b *symtab.Builder, f *elf.File, table elf.Table, base addr.Addr) error {
	return f.Symbols(table, func(sym elf.Symbol) bool {
		addSymbol(b, &sym, base)
		return true
	})
}

// addDynamic unites .dynsym with .gnu_debugdata, which holds only symbols that the first
// lacks.
func addDynamic(b *symtab.Builder, f *elf.File) error {
	err := addSymbols(b, f, elf.Dynsym, 0)
	mini, done, err2 := f.DebugData()
	if err2 != nil {
		if err == nil {
			err = err2
		}
		return err
	}
	if mini == nil {
		return err
	}
	defer done()
	if err2 := addSymbols(b, mini, elf.Symtab, 0); err == nil {
		err = err2
	}
	return err
}
