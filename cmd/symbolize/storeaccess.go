package main

import (
	"context"
	"errors"

	"symbolize/analyze"
	"symbolize/ingest"
	"symbolize/store"
	"symbolize/store/db"
)

// storePath returns where the store lies: --store, else the default of db.DefaultPath.
func (a *app) storePath() (string, error) {
	if a.store != "" {
		return a.store, nil
	}
	if p := db.DefaultPath(a.env.Getenv); p != "" {
		return p, nil
	}
	return "", ingest.WithHint(errors.New("there is no place for the store: HOME is not set"),
		"name one with --store DIR or $SYMBOLIZE_STORE")
}

// storeError adds to an error of the store the hint that fixes it.
func storeError(err error) error {
	switch {
	case errors.Is(err, store.ErrNoStore):
		return ingest.WithHint(err, "`symbolize index PATH…` makes one; --store names another")
	case errors.Is(err, store.ErrVersion):
		return ingest.WithHint(err,
			"use the newer symbolize that wrote it, or name another with --store")
	case errors.Is(err, store.ErrLocked):
		return ingest.WithHint(err, "wait until it is done; --lock-timeout sets how long, "+
			"--store names another")
	case errors.Is(err, store.ErrNoSpace):
		return ingest.WithHint(err,
			"free some space, or name a store on another disk with --store; "+
				"what was written before is whole")
	case errors.Is(err, store.ErrUnsafe):
		return ingest.WithHint(err,
			"name a store in a directory of your own with --store, or run as its "+
				"owner; a link or pipe in it somebody put there: remove it; --shared-store trusts "+
				"all who can write there")
	case errors.Is(err, store.ErrDamaged):
		return ingest.WithHint(err, "`symbolize store verify` lists the losses; "+
			"index into another --store")
	}
	return err
}

// openReader opens a store for reading. It may answer less than was indexed,
// where a damaged generation was passed over, and names then come from lesser sources: the
// result is partial.
func (a *app) openReader(path string) (*db.Reader, error) {
	r, err := db.OpenReader(path)
	if err == nil && len(r.PassedOver()) > 0 {
		a.partial = true
		a.warnStore(r)
	}
	return r, err
}

// warnStore prints the warnings of a store: damage that it got around.
func (a *app) warnStore(s interface{ Warnings() []string }) {
	for _, text := range s.Warnings() {
		a.warn("store: "+text, "`symbolize store verify` lists the losses")
	}
}

// closeUsed notes the objects that were used, as sessions do, and closes the store.
func (a *app) closeUsed(r *db.Reader) error {
	if err := r.MarkUsed(); err != nil {
		a.warn(err.Error(), analyze.MarkHint)
	}
	return r.Close()
}

// withReader runs body on the newest generation of the store.
func (a *app) withReader(body func(r *db.Reader) error) error {
	path, err := a.storePath()
	if err != nil {
		return err
	}
	r, err := a.openReader(path)
	if err != nil {
		return storeError(err)
	}
	err = errors.Join(body(r), r.Close())
	a.warnStore(r)
	return storeError(err)
}

// openWriter opens the store for writing, and reports if another writer must be waited for.
func (a *app) openWriter(ctx context.Context, path string, opts db.WriterOptions) (*db.Writer, error) {
	opts.Waiting = func(e *store.LockedError) { a.note(e.Waiting()) }
	return db.OpenWriter(ctx, path, opts)
}

// withWriter runs body on the store opened for writing, and publishes.
func (a *app) withWriter(ctx context.Context, opts db.WriterOptions,
	body func(w *db.Writer) error) error {
	path, err := a.storePath()
	if err != nil {
		return err
	}
	w, err := a.openWriter(ctx, path, opts)
	if err != nil {
		return storeError(err)
	}
	err = errors.Join(body(w), w.Close())
	a.warnStore(w)
	return storeError(err)
}

// withExisting is withWriter for commands that make no store where there is none.
func (a *app) withExisting(ctx context.Context, opts db.WriterOptions,
	body func(w *db.Writer) error) error {
	path, err := a.storePath()
	if err != nil {
		return err
	}
	r, err := db.OpenReader(path)
	if err == nil {
		err = r.Close()
	}
	// These commands repair damaged generations.
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return storeError(err)
	}
	return a.withWriter(ctx, opts, body)
}
