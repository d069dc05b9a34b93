package code

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/files"
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
	m, _, _ := store.FindOne(opts.View, o.ID)
	if m == nil {
		m = new(store.Manifest)
	}
	var others []string
	for _, name := range opts.candidates(o, m) {
		err := provePath(name, o.ID)
		if err == nil {
			var any bool
			any, err = visitFile(ctx, name, index, visit)
			if any || ctx.Err() != nil {
				return err
			}
			if err == nil {
				err = fmt.Errorf("%s has no debug information", name)
			}
		}
		if !errors.Is(err, os.ErrNotExist) {
			others = append(others, err.Error())
		}
	}
	why := fmt.Sprintf("no file with build ID %s and debug information is at hand", o.ID)
	if len(others) > 0 {
		why += ": " + strings.Join(others[:min(len(others), maxOthers)], "; ")
	}
	return texts.WithHint(errors.New(why), "--with FILE names it")
}

// OpenFile opens the file with an object's code, looked for as code is. The caller closes it.
func (opts *Options) OpenFile(o *ingest.Object) (*elf.File, io.Closer, error) {
	m, _, _ := store.FindOne(opts.View, o.ID)
	if m == nil {
		m = new(store.Manifest)
	}
	var others []string
	for _, name := range opts.candidates(o, m) {
		f, closer, err := openCode(name, o.ID)
		if err == nil {
			return f, closer, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			others = append(others, err.Error())
		}
	}
	return nil, nil, noFile(o, others)
}

// provePath reports why the file at a path does not have a build ID.
func provePath(name string, want buildid.ID) error {
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		return err
	}
	f, err := unpackELF(name, file, fi.Size())
	if err != nil {
		return err
	}
	id := f.ID
	if id.IsZero() && want.Space() == buildid.Content {
		if id, err = f.ContentID(); err != nil {
			return err
		}
	}
	if !id.Matches(want) {
		return fmt.Errorf("%s has build ID %s", name, id)
	}
	return nil
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
