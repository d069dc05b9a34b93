package main

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
	"symbolize/ingest/object/elf"
	"symbolize/ingest/regular"
	"symbolize/store"
)

// lookupObject is the object that addresses are looked up in.
type lookupObject struct {
	module   string // as the user named it
	view     store.View
	manifest *store.Manifest
	// place gives the table address of an address as the user has it.
	place func(uint64) (addr.Addr, bool)
	base  addr.Addr // ELF virtual address of a kernel's table address 0
	// peers waits for the symbols that the style's tool would choose; nil where no file
	// was named.
	peers func() (*resolve.PeerSymbols, error)

	damage string // of the symbols that peers waits for

	closers []io.Closer
}

// Close releases the store and the file.
func (o *lookupObject) Close() error {
	var err error
	for _, c := range slices.Backward(o.closers) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// openLookup finds the object that the options name.
func (a *app) openLookup(ctx context.Context, o *lookupOptions) (*lookupObject, error) {
	obj := &lookupObject{module: o.file}
	if err := a.findLookup(ctx, o, obj); err != nil {
		return nil, errors.Join(err, obj.Close())
	}
	return obj, nil
}

// lookupStore opens the store. Unless it is needed there may be none: nil then.
func (a *app) lookupStore(needed bool) (*store.Reader, error) {
	path, err := a.storePath()
	if err == nil {
		var reader *store.Reader
		if reader, err = store.OpenReader(path); err == nil {
			return reader, nil
		}
	}
	if needed || path != "" && !errors.Is(err, store.ErrNoStore) {
		return nil, storeError(err)
	}
	return nil, nil
}

func (a *app) findLookup(ctx context.Context, o *lookupOptions, obj *lookupObject) error {
	reader, err := a.lookupStore(o.file == "")
	if err != nil {
		return err
	}
	if reader != nil {
		obj.closers = append(obj.closers, reader)
		obj.view = reader
	}
	if o.file == "" {
		obj.module = o.buildID
		return obj.byID(o)
	}
	return a.byFile(ctx, o, obj)
}

// byID takes the object from the store.
func (obj *lookupObject) byID(o *lookupOptions) error {
	found, err := obj.view.Find(o.id)
	switch {
	case err != nil:
		return storeError(err)
	case len(found) == 0:
		return withHint(fmt.Errorf("no object with the build ID %s in the store", o.id),
			"`symbolize index PATH…` takes it in; `symbolize store ls` lists what is there")
	case len(found) > 1:
		return fmt.Errorf("%d objects match the build ID %s", len(found), o.id)
	}
	obj.manifest = found[0]
	var f *elf.File
	if obj.manifest.Kind == ingest.Kernel && !o.offsets || o.section != "" {
		f = obj.anySource()
	}
	return obj.prepare(o, f)
}

// anySource opens a file that the object's tables were made from, if it still is
// there: it knows where the kernel was linked to, and where sections begin.
func (obj *lookupObject) anySource() *elf.File {
	for _, s := range obj.manifest.Sources {
		f, err := obj.openFile(s.Path)
		if err == nil && f.ID.Matches(obj.manifest.ID) {
			return f
		}
	}
	return nil
}

// openFile opens an ELF file, plain or packed.
func (obj *lookupObject) openFile(path string) (*elf.File, error) {
	file, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	fi, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	obj.closers = append(obj.closers, file)
	data, size, _, err := elf.Unpack(path, file, fi.Size())
	if err != nil {
		return nil, err
	}
	f, err := elf.Open(path, data, size)
	if err != nil {
		return nil, fmt.Errorf("not a readable object: %w", err)
	}
	return f, nil
}

// byFile takes the object from the store if it is there with lines, else from the
// file, which it indexes for this run.
func (a *app) byFile(ctx context.Context, o *lookupOptions, obj *lookupObject) error {
	f, err := obj.openFile(o.file)
	if err != nil {
		return err
	}
	id := f.ID
	if id.IsZero() {
		if id, err = f.ContentID(); err != nil {
			return err
		}
	}
	if obj.manifest, err = findOne(obj.view, id); err != nil {
		return storeError(err)
	}
	if obj.manifest == nil || !hasLines(obj.manifest) {
		s := &session{
			a: a, o: &inputOptions{jobs: o.jobs, maxMemory: o.maxMemory, columns: true,
				relocatable: true},
			overlay: store.NewOverlay(),
		}
		if err := s.indexOverlay(ctx, []string{o.file}, buildid.ID{}); err != nil {
			return err
		}
		behind := obj.view
		obj.view = s.overlay
		if behind != nil {
			obj.view = store.Layer(s.overlay, behind)
		}
		if obj.manifest, err = findOne(obj.view, id); err != nil {
			return storeError(err)
		}
	}
	if obj.manifest == nil {
		return fmt.Errorf("%s: no object to look addresses up in", o.file)
	}
	if err := obj.prepare(o, f); err != nil {
		return err
	}
	if o.names == "" && o.style != styleGNU && obj.manifest.Kind != ingest.Module {
		obj.readPeers(f)
	}
	return nil
}

// readPeers begins to read the file's symbols, while the store's tables are read.
func (obj *lookupObject) readPeers(f *elf.File) {
	obj.peers = sync.OnceValues(func() (*resolve.PeerSymbols, error) {
		return resolve.NewPeerSymbols(f)
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		obj.peers()
	}()
	// The file must not be closed before.
	obj.closers = append(obj.closers, closerFunc(func() error { <-done; return nil }))
}

// closerFunc is a function as an io.Closer.
type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// findOne returns the object with an exact ID, nil if there is none.
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
		return s.Kind == store.DWARF || s.Kind == store.Pclntab
	})
}

// prepare sets the way from the user's addresses to those of the tables. f may be
// nil where only a build ID was named.
func (obj *lookupObject) prepare(o *lookupOptions, f *elf.File) error {
	m := obj.manifest
	if m.Kind == ingest.Kernel && !o.offsets {
		base, err := textOf(f)
		if err != nil {
			return err
		}
		obj.base = base
	}
	switch {
	case o.section != "":
		start, size, err := obj.sectionOf(o.section, f)
		if err != nil {
			return err
		}
		obj.place = func(v uint64) (addr.Addr, bool) { return start + addr.Addr(v), v < size }
	case o.offsets && m.Kind != ingest.Kernel && m.Kind != ingest.Module:
		place := resolve.FileOffsets(m.Layout)
		if place == nil {
			err := fmt.Errorf("%s: layout unknown: a debug file does not tell file offsets",
				obj.module)
			return withHint(err, "index the file that runs, or look up virtual addresses")
		}
		obj.place = func(v uint64) (addr.Addr, bool) { return place(addr.Offset(v)) }
	default:
		obj.place = func(v uint64) (addr.Addr, bool) { return addr.Addr(v) - obj.base, true }
	}
	return nil
}

// textOf returns where a kernel was linked to: the address of _text, which tables of
// kernels count from.
func textOf(f *elf.File) (addr.Addr, error) {
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
	return 0, withHint(errors.New("the store does not know where this kernel was linked to"),
		"name its vmlinux with -e, or look up --offsets from _text")
}

// sectionOf returns where a section begins in the tables, and its size.
func (obj *lookupObject) sectionOf(name string, f *elf.File) (addr.Addr, uint64, error) {
	for _, s := range obj.manifest.Sections {
		if s.Name == name {
			return s.Addr, s.Size, nil
		}
	}
	if f != nil && obj.manifest.Kind != ingest.Module {
		if s := f.Section(name); s != nil {
			return s.Addr - obj.base, s.Size, nil
		}
	}
	return 0, 0, fmt.Errorf("%s: no section %s with code", obj.module, name)
}
