package lookup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"symbolize/analyze/resolve"
	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// IDError reports a build ID that does not select exactly one object of the store.
type IDError struct {
	ID      buildid.ID
	Matches int // objects: 0, or more than one
}

// Error implements error.
func (e *IDError) Error() string {
	if e.Matches == 0 {
		return fmt.Sprintf("no object with the build ID %s in the store", e.ID)
	}
	return fmt.Sprintf("%d objects match the build ID %s", e.Matches, e.ID)
}

// Object is one object to look addresses up in. Close releases its file; the view that it was
// opened from stays open.
type Object struct {
	// Module is the object as the user named it.
	Module   string
	view     store.View
	manifest *store.Manifest
	// place returns the table address of an address in the user's form.
	place func(uint64) (addr.Addr, bool)
	base  addr.Addr // ELF virtual address of a kernel's table address 0
	// llvm waits for the symbols that llvm-symbolizer would print; nil without a file.
	llvm func() (*llvmSymbols, error)

	damage string // of the symbols that llvm waits for

	opened  []*elf.File // of files, nil before it is called
	closers []io.Closer
}

// Close releases the object's file.
func (o *Object) Close() error {
	var err error
	for _, c := range slices.Backward(o.closers) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// OpenID opens the one object of a store with this build ID. name is printed as its module.
// The error is an *IDError or one of the store.
func OpenID(view store.View, id buildid.ID, name string, opts *Options) (*Object, error) {
	obj := &Object{Module: name, view: view}
	err := obj.byID(id, opts)
	if err != nil {
		return nil, errors.Join(err, obj.Close())
	}
	return obj, nil
}

func (obj *Object) byID(id buildid.ID, opts *Options) error {
	found, err := obj.view.Find(id)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return &IDError{ID: id, Matches: len(found)}
	}
	obj.manifest = found[0]
	var f *elf.File
	if obj.manifest.Kind == ingest.Kernel && !opts.Offsets || opts.Section != "" {
		f = obj.anySource()
	}
	return obj.prepare(opts, f)
}

// anySource opens a file that the object's tables were made from, if it still exists: it has
// the kernel's link address and the starts of sections.
func (obj *Object) anySource() *elf.File {
	for _, s := range obj.manifest.Sources {
		f, err := obj.openFile(s.Path)
		if err == nil && f.ID.Matches(obj.manifest.ID) {
			return f
		}
	}
	return nil
}

// openFile opens an ELF file, plain or packed.
func (obj *Object) openFile(path string) (*elf.File, error) {
	data, size, err := obj.openData(path)
	if err != nil {
		return nil, err
	}
	f, err := elf.Open(path, data, size)
	if err != nil {
		return nil, fmt.Errorf("not a readable object: %w", err)
	}
	return f, nil
}

// openData opens a file, plain or packed, up to Close.
func (obj *Object) openData(path string) (data io.ReaderAt, size int64, err error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, 0, err
	}
	fi, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	obj.closers = append(obj.closers, file)
	data, size, _, err = files.Unpack(path, file, fi.Size())
	return data, size, err
}

// identify returns the build ID of a file, or the hash of its content.
func identify(f *elf.File) (buildid.ID, error) {
	if f.ID.IsZero() {
		return f.ContentID()
	}
	return f.ID, nil
}

// Index indexes a file with its debug files for one run, and returns a view of the result. only is
// as of indexer.Options.
type Index func(ctx context.Context, path string,
	only func(*store.Manifest) (addrs []addr.Addr, all bool)) (store.View, error)

// OpenFile opens the object in a file, plain or packed. Its symbols come from view, which may
// be nil, if it has the object with lines; otherwise index reads the file.
func OpenFile(ctx context.Context, view store.View, path string, index Index,
	opts *Options) (*Object, error) {
	obj := &Object{Module: path, view: view}
	if err := obj.byFile(ctx, index, opts); err != nil {
		return nil, errors.Join(err, obj.Close())
	}
	return obj, nil
}

func (obj *Object) byFile(ctx context.Context, index Index, opts *Options) error {
	f, err := obj.openFile(obj.Module)
	if err != nil {
		return err
	}
	id, err := identify(f)
	if err != nil {
		return err
	}
	if obj.manifest, err = findOne(obj.view, id); err != nil {
		return err
	}
	if obj.manifest == nil || !hasLines(obj.manifest) {
		if err := obj.indexFile(ctx, index, id, obj.only(opts, f)); err != nil {
			return err
		}
	}
	if obj.manifest == nil {
		return fmt.Errorf("%s: no object to look addresses up in", obj.Module)
	}
	if err := obj.prepare(opts, f); err != nil {
		return err
	}
	if !opts.OwnNames && opts.Style != GNU && obj.manifest.Kind != ingest.Module {
		obj.readLLVM(f)
	}
	return nil
}

// indexFile adds the tables of the file before the tables of the store.
func (obj *Object) indexFile(ctx context.Context, index Index, id buildid.ID,
	only func(*store.Manifest) ([]addr.Addr, bool)) error {
	view, err := index(ctx, obj.Module, only)
	if err != nil {
		return err
	}
	if obj.view != nil {
		view = store.Layer(view, obj.view)
	}
	obj.view = view
	obj.manifest, err = findOne(view, id)
	return err
}

// only returns the places of Options.Only in the tables of an object, for Index.
func (obj *Object) only(opts *Options, f *elf.File) func(*store.Manifest) ([]addr.Addr, bool) {
	if opts.Only == nil {
		return nil
	}
	return func(m *store.Manifest) (addrs []addr.Addr, all bool) {
		o := Object{Module: obj.Module, manifest: m}
		if o.prepare(opts, f) != nil {
			return nil, true
		}
		for _, text := range opts.Only {
			v, valid := parseAddress([]byte(text))
			if at, ok := o.place(v); valid && ok {
				addrs = append(addrs, at)
			}
		}
		slices.Sort(addrs)
		return addrs, false
	}
}

// readLLVM starts reading the file's symbols, while the store's tables are read.
func (obj *Object) readLLVM(f *elf.File) {
	obj.llvm = sync.OnceValues(func() (*llvmSymbols, error) { return readLLVMSymbols(f) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		obj.llvm()
	}()
	// The file must not be closed before.
	obj.closers = append(obj.closers, closerFunc(func() error { <-done; return nil }))
}

// closerFunc is a function as an io.Closer.
type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// findOne returns the object with an exact ID, nil for none.
func findOne(v store.View, id buildid.ID) (*store.Manifest, error) {
	if v == nil {
		return nil, nil
	}
	found, err := v.Find(id)
	for _, m := range found {
		if m.ID == id {
			return m, nil
		}
	}
	return nil, err
}

// hasLines reports whether an object has debug information, of Go at least its own.
func hasLines(m *store.Manifest) bool {
	return slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind.Debug()
	})
}

// prepare sets the conversion from the user's addresses to addresses of the tables. f may be nil
// where only a build ID was named.
func (obj *Object) prepare(opts *Options, f *elf.File) error {
	m := obj.manifest
	if m.Kind == ingest.Kernel && !opts.Offsets {
		base, err := resolve.LinkedText(f)
		if err != nil {
			return err
		}
		obj.base = base
	}
	switch {
	case opts.Section != "":
		start, size, err := obj.sectionOf(opts.Section, f)
		if err != nil {
			return err
		}
		obj.place = func(v uint64) (addr.Addr, bool) { return start + addr.Addr(v), v < size }
	case opts.Offsets && m.Kind != ingest.Kernel && m.Kind != ingest.Module:
		addrs, reason := resolve.NewAddresses(&ingest.Object{Kind: m.Kind}, m)
		if reason != ingest.ReasonNone {
			err := fmt.Errorf("%s: layout unknown: a debug file has no file offsets",
				obj.Module)
			return texts.WithHint(err, "index the file that runs, or look up virtual addresses")
		}
		obj.place = func(v uint64) (addr.Addr, bool) { return addrs.Of(addr.Offset(v)) }
	default:
		obj.place = func(v uint64) (addr.Addr, bool) { return addr.Addr(v) - obj.base, true }
	}
	return nil
}

// sectionOf returns where a section begins in the tables, and its size.
func (obj *Object) sectionOf(name string, f *elf.File) (addr.Addr, uint64, error) {
	for _, s := range obj.manifest.Sections {
		if s.Name == name {
			return s.Addr, s.Size, nil
		}
	}
	if f != nil && obj.manifest.Kind == ingest.Module { // only its debug file is known
		placed, err := f.ModuleLayout()
		if err != nil {
			return 0, 0, err
		}
		for _, s := range placed {
			if s.Name == name {
				return s.Addr, s.Size, nil
			}
		}
	} else if f != nil {
		if s := f.Section(name); s != nil {
			return s.Addr - obj.base, s.Size, nil
		}
	}
	return 0, 0, fmt.Errorf("%s: no section %s with code", obj.Module, name)
}
