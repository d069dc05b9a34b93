package code

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"symbolize/analyze/annotate"
	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/machine"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// fileCode is the file that an object's code is read from.
type fileCode struct {
	closer   io.Closer
	file     *elf.File
	finder   *resolve.Finder
	manifest *store.Manifest
	base     addr.Addr // address, as linked, of a kernel's table address 0
	built    time.Time // when the file was written; zero if it comes out of a bundle
	ran      bool      // a copy of memory, of a kernel that ran
	unread   error     // why such a copy was not read
	err      error     // why there is no file
}

// Close closes the file.
func (f *fileCode) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// inFile returns the code of a function from the file that ran.
func (c *Finder) inFile(o *ingest.Object, f *annotate.HotFunction) (*annotate.Code, error) {
	if o.ID.IsZero() {
		return nil, texts.WithHint(errors.New("no build ID proves a file to be the one that ran"),
			"`perf record --buildid-mmap` records build IDs")
	}
	fc := c.files[o.ID.Key()]
	if fc == nil {
		fc = c.openFor(o)
		c.files[o.ID.Key()] = fc
	}
	if fc.err != nil {
		return nil, fc.err
	}
	start, size, err := fc.extent(c.o.Names, o, f)
	if err != nil {
		return nil, err
	}
	code, err := fc.read(o, start, size)
	if err != nil {
		return nil, err
	}
	return &annotate.Code{
		Machine: machineOf(fc.file), PC: addr.PC(start + fc.base), Bytes: code,
		Origin: fc.file.Name, Notes: fc.notes(o),
		Lines:   func(offsets []int) []annotate.CodeLine { return c.fileLines(fc, start, offsets) },
		Symbols: func(pcs []addr.PC) []annotate.CodeSymbol { return fc.symbols(c.o.Names, pcs) },
	}, nil
}

// notes lists possible differences of a file's code to the code that ran.
func (f *fileCode) notes(o *ingest.Object) []string {
	switch {
	case f.ran:
		return nil
	case o.Kind == ingest.Kernel:
		notes := []string{"code of the file: the running kernel patches alternatives, static " +
			"calls and tracing into its own"}
		if f.unread != nil {
			notes = append(notes, "not the code of the recording: "+f.unread.Error())
		}
		return notes
	case o.Kind == ingest.Module:
		return []string{"code of the file, with relocations inside the module applied: calls " +
			"of the kernel and of other modules are not linked"}
	}
	return nil
}

// machineOf names a file's machine as uname -m does.
func machineOf(f *elf.File) string { return machine.Name(f.Machine, f.Class, f.BigEndian) }

// openFor opens a file with the build ID and the code of an object.
func (c *Finder) openFor(o *ingest.Object) *fileCode {
	m, _, _ := store.FindOne(c.o.View, o.ID)
	if m == nil {
		return &fileCode{err: fmt.Errorf("the store does not know build ID %s", o.ID)}
	}
	if f := c.inBundles(o.ID); f != nil {
		return &fileCode{file: f, manifest: m, finder: resolve.NewFinder(c.o.View, m)}
	}
	copied, unread := c.kernelCode(o, m)
	if copied != nil {
		return copied
	}
	f, closer, others := c.o.openCode(o, m)
	if f == nil {
		if unread != nil {
			others = slices.Insert(others, 0, unread.Error())
		}
		return &fileCode{err: noFile(o, others)}
	}
	fc := &fileCode{file: f, closer: closer, manifest: m, unread: unread,
		finder: resolve.NewFinder(c.o.View, m)}
	if fi, err := closer.Stat(); err == nil {
		fc.built = fi.ModTime()
	}
	if o.Kind == ingest.Kernel {
		var why error
		if fc.base, why = resolve.LinkedText(f); why != nil {
			return &fileCode{err: why, closer: closer}
		}
	}
	return fc
}

// openCode opens the first candidate with the code of an object. Without one it returns what is wrong
// with those that exist.
func (opts *Options) openCode(o *ingest.Object, m *store.Manifest) (f *elf.File, closer *os.File, others []string) {
	others = opts.search(o, m, func(name string) (err error) {
		f, closer, err = openProven(name, o.ID, true)
		return err
	})
	return f, closer, others
}

// search tries the candidates up to one without an error. Others are the errors of those that exist.
func (opts *Options) search(o *ingest.Object, m *store.Manifest, try func(name string) error) (others []string) {
	for _, name := range opts.candidates(o, m) {
		err := try(name)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrNotExist) {
			others = append(others, err.Error())
		}
	}
	return others
}

// noFile is the error if no file has the code of an object, with the defects of the candidates.
func noFile(o *ingest.Object, others []string) error {
	if o.Kind == ingest.Kernel {
		return absent(fmt.Sprintf("no vmlinux with build ID %s is at hand", o.ID), others, "--vmlinux FILE names it")
	}
	return absent(fmt.Sprintf("no file with build ID %s and its code is at hand", o.ID), others,
		"--with FILE names the file that ran")
}

// absent is the error if no candidate is the right one.
func absent(why string, others []string, hint string) error {
	if len(others) > 0 {
		why += ": " + strings.Join(others[:min(len(others), maxOthers)], "; ")
	}
	return texts.WithHint(errors.New(why), "%s", hint)
}

// maxOthers bounds how many files a reason lists.
const maxOthers = 3

// candidates are the possible paths of an object's file: the user's paths, the capture's
// path, and the paths that the store's tables come from.
func (opts *Options) candidates(o *ingest.Object, m *store.Manifest) []string {
	var list []string
	recorded := o.File.Path
	if !path.IsAbs(recorded) {
		recorded = ""
	}
	for _, name := range opts.Paths {
		if fi, err := os.Stat(name); err != nil || !fi.IsDir() {
			list = append(list, name)
			continue
		}
		if recorded != "" {
			list = append(list, path.Join(name, recorded), path.Join(name, path.Base(recorded)))
		}
		if h := o.ID.Hex(); len(h) > 2 {
			at := path.Join(name, ".build-id", h[:2], h[2:])
			list = append(list, at, path.Join(at, "elf"))
		}
	}
	if opts.Recorded && recorded != "" && !o.File.Deleted {
		list = append(list, recorded)
	}
	for i := range m.Sources {
		if !m.Sources[i].Kind.List() {
			list = append(list, m.Sources[i].Path)
		}
	}
	return slices.DeleteFunc(unique(list), func(s string) bool { return s == "" })
}

// unique leaves the first of equal texts.
func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		was := seen[s]
		seen[s] = true
		return was
	})
}

// openProven opens a file and proves it to be the object: by its build ID, and if code is set with code
// in it.
func openProven(name string, want buildid.ID, code bool) (*elf.File, *os.File, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, nil, err
	}
	fi, err := file.Stat()
	var f *elf.File
	if err == nil {
		f, err = readProven(name, file, fi.Size(), want, code)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return f, file, nil
}

// inBundles returns the vdso image of this build ID in an open bundle; nil if none has it.
func (c *Finder) inBundles(id buildid.ID) *elf.File {
	for _, capture := range c.o.Bundles {
		b := capture.Bundle()
		name := bundle.VDSOName(id.Hex())
		if b == nil || !b.Has(name) {
			continue
		}
		r, size, err := b.Entry(name)
		if err != nil {
			continue
		}
		if f, err := readProven(b.Name+": "+name, r, size, id, true); err == nil {
			return f
		}
	}
	return nil
}

// unpackELF opens an ELF file, plain or compressed.
func unpackELF(name string, r io.ReaderAt, size int64) (*elf.File, error) {
	data, size, _, err := files.Unpack(name, r, size)
	if err != nil {
		return nil, err
	}
	return elf.Open(name, data, size)
}

func readProven(name string, r io.ReaderAt, size int64, want buildid.ID, code bool) (*elf.File, error) {
	f, err := unpackELF(name, r, size)
	if err != nil {
		return nil, err
	}
	id := f.ID
	if id.IsZero() && want.Space() == buildid.Content {
		if id, err = f.ContentID(); err != nil {
			return nil, err
		}
	}
	switch {
	case id.IsZero():
		return nil, fmt.Errorf("%s has no build ID", name)
	case !id.Matches(want):
		return nil, fmt.Errorf("%s has build ID %s", name, id)
	case code && !f.HasCode():
		return nil, fmt.Errorf("%s has no code: it is a debug file", name)
	}
	return f, nil
}

// table gives the table address of an offset in an object.
func (f *fileCode) table(o *ingest.Object, off addr.Offset) (addr.Addr, error) {
	addrs, reason := resolve.NewFileAddresses(o, f.manifest, f.file.Segments)
	if reason != ingest.ReasonNone && o.Kind == ingest.Kernel {
		return 0, fmt.Errorf("no address of %s in the kernel's symbols", cmp.Or(o.RefSymbol, "_text"))
	}
	if at, ok := addrs.Of(off); ok && reason == ingest.ReasonNone {
		return at, nil
	}
	return 0, fmt.Errorf("%s: no segment has file offset %#x", f.file.Name, uint64(off))
}

// extent returns where a function begins, as tables have it, and how long it is.
func (f *fileCode) extent(names resolve.NamePolicy, o *ingest.Object, fn *annotate.HotFunction) (
	start addr.Addr, size uint64, err error) {
	at, err := f.table(o, fn.Start+addr.Offset(fn.Places[0].Offset))
	if err != nil {
		return 0, 0, err
	}
	f.finder.Join([]addr.Addr{at})
	p := f.finder.Place(0)
	name, start := f.finder.Function(p, names)
	switch {
	case name == 0:
		return 0, 0, errors.New("no table has its end")
	case start == p.SymbolStart && p.SymbolSize > 0:
		size = p.SymbolSize
	default:
		size = p.FuncSize
	}
	if size == 0 || size > annotate.MaxCode {
		return 0, 0, fmt.Errorf("a function of %d bytes", size)
	}
	return start, size, nil
}

// read returns the bytes of a function, as many as the file has.
func (f *fileCode) read(o *ingest.Object, start addr.Addr, size uint64) ([]byte, error) {
	if o.Kind == ingest.Module {
		return f.readModule(start, size)
	}
	off, n, ok := f.file.Mapped(start + f.base)
	if !ok {
		return nil, fmt.Errorf("%s has no contents at %#x", f.file.Name, uint64(start+f.base))
	}
	code := make([]byte, min(n, size))
	if err := f.file.ReadBytes(off, code); err != nil {
		return nil, err
	}
	return code, nil
}

// readModule returns the bytes of a module's function, relocated if the module knows
// the addresses itself.
func (f *fileCode) readModule(start addr.Addr, size uint64) ([]byte, error) {
	layout, err := f.file.ModuleLayout()
	if err != nil {
		return nil, err
	}
	placed := make(map[int]addr.Addr, len(layout))
	for _, s := range layout {
		placed[s.Index] = s.Addr
	}
	for _, s := range layout {
		if start < s.Addr || uint64(start-s.Addr) >= s.Size {
			continue
		}
		code, err := f.file.Data(&f.file.Sections[s.Index], 0)
		if err != nil {
			return nil, err
		}
		r, err := f.file.Relocator(func(i int) (addr.Addr, bool) {
			a, ok := placed[i]
			return a, ok
		})
		if err == nil {
			err = r.Apply(s.Index, code)
		}
		if err != nil && !errors.Is(err, elf.ErrUnsupported) {
			return nil, err
		}
		from := min(uint64(start-s.Addr), uint64(len(code)))
		return code[from:min(from+size, uint64(len(code)))], nil
	}
	return nil, fmt.Errorf("%s: no section lies at %#x of the module", f.file.Name, uint64(start))
}

// fileLines gives the source of instructions by the tables.
func (c *Finder) fileLines(f *fileCode, start addr.Addr, offsets []int) []annotate.CodeLine {
	addrs := make([]addr.Addr, len(offsets))
	for i, off := range offsets {
		addrs[i] = start + addr.Addr(off)
	}
	f.finder.Join(addrs)
	lines := make([]annotate.CodeLine, len(offsets))
	for i := range lines {
		frames := f.finder.Frames(f.finder.Place(i))
		if len(frames) == 0 {
			continue
		}
		l, inner := &lines[i], &frames[0]
		l.File, l.Line, l.Column = f.finder.Text(inner.File), inner.Line, inner.Column
		l.Source, l.FileLines = c.sources.line(l.File, l.Line, f.file.Name, f.built)
		for k := len(frames) - 2; k >= 0 && !c.o.NoInlines; k-- {
			l.Inlined = append(l.Inlined, f.finder.Text(frames[k].Name))
		}
	}
	return lines
}

// symbols names addresses of the file.
func (f *fileCode) symbols(names resolve.NamePolicy, pcs []addr.PC) []annotate.CodeSymbol {
	addrs := make([]addr.Addr, len(pcs))
	for i, pc := range pcs {
		addrs[i] = addr.Addr(pc) - f.base
	}
	slices.Sort(addrs) // a kernel's may have wrapped
	f.finder.Join(addrs)
	list := make([]annotate.CodeSymbol, len(pcs))
	for i, pc := range pcs {
		at, _ := slices.BinarySearch(addrs, addr.Addr(pc)-f.base)
		if name, start := f.finder.Function(f.finder.Place(at), names); name != 0 {
			list[i] = annotate.CodeSymbol{Name: f.finder.Text(name),
				Offset: uint64(addrs[at] - start)}
		}
	}
	return list
}
