package code

import (
	"context"
	"errors"
	"fmt"
	"io"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/indexer"
)

// VisitUnits reads the debug information of an object's file again, for what its tables lack. The file
// is looked for as the code of an object is, and has the object's build ID; its separate debug file is
// found as by index. Units are visited in order; they are valid until the visit returns.
func (opts *Options) VisitUnits(ctx context.Context, o *ingest.Object, index indexer.Options,
	visit func(*dwarf.Unit) error) error {
	if o.ID.IsZero() {
		return texts.WithHint(errors.New("no build ID proves a file to be the one that ran"),
			"`perf record --buildid-mmap` records build IDs")
	}
	found := false
	var failed error
	others := opts.search(o, opts.manifest(o), func(name string) error {
		f, file, err := openProven(name, o.ID, false)
		if err != nil {
			return err
		}
		probes := f.Section(".pseudo_probe") != nil
		file.Close() // nothing was written
		if found, err = visitFile(ctx, name, index, visit); found || ctx.Err() != nil {
			found, failed = true, err
			return nil
		}
		switch {
		case err != nil:
		case probes:
			err = fmt.Errorf("%s has no debug information, but pseudo probes, which are not read", name)
		default:
			err = fmt.Errorf("%s has no debug information", name)
		}
		return err
	})
	if found {
		return failed
	}
	return absent(fmt.Sprintf("no file with build ID %s and debug information is at hand", o.ID), others,
		"--with FILE names it")
}

// OpenFile opens the file with an object's code and its symbol table, looked for as code is. The caller
// closes it.
func (opts *Options) OpenFile(o *ingest.Object) (f *elf.File, closer io.Closer, err error) {
	others := opts.search(o, opts.manifest(o), func(name string) error {
		opened, file, err := openProven(name, o.ID, true)
		switch {
		case err != nil:
			return err
		case opened.Section(".symtab") == nil:
			return errors.Join(fmt.Errorf("%s has no symbol table", name), file.Close())
		}
		f, closer = opened, file
		return nil
	})
	if f == nil {
		return nil, nil, absent(fmt.Sprintf("no file with build ID %s, its code and its symbol table is at hand", o.ID),
			others, "--with FILE names the file that ran, as it was before strip")
	}
	return f, closer, nil
}

// manifest is the manifest of an object, an empty one for none.
func (opts *Options) manifest(o *ingest.Object) *store.Manifest {
	if m, _, _ := store.FindOne(opts.View, o.ID); m != nil {
		return m
	}
	return new(store.Manifest)
}

// visitFile reads the debug information of one file, and reports whether it has units with code.
func visitFile(ctx context.Context, name string, index indexer.Options, visit func(*dwarf.Unit) error) (
	any bool, err error) {
	index.NoUnwind = true
	index.Only = func(*store.Manifest) ([]addr.Addr, bool) { return []addr.Addr{0}, false }
	var failed error
	index.Units = func(u *dwarf.Unit) error {
		any = any || len(u.Functions) > 0
		failed = visit(u)
		return failed
	}
	sink := store.NewOverlay()
	sum, err := indexer.Index(ctx, []string{name}, nil, func() (store.Sink, error) { return sink, nil }, index)
	switch {
	case err != nil:
		return any, err
	case failed != nil:
		return any, failed
	}
	for _, p := range sum.Problems {
		if !any {
			return any, p
		}
	}
	return any, nil
}
