package cli

import (
	"context"
	"errors"

	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/db"
)

// StorePath returns the directory of the store: --store, else db.DefaultPath.
func (a *App) StorePath() (string, error) {
	if a.store != "" {
		return a.store, nil
	}
	if p := db.DefaultPath(a.Env.Getenv); p != "" {
		return p, nil
	}
	return "", texts.WithHint(errors.New("no directory for the store: HOME is not set"),
		"set --store DIR or $SYMBOLIZE_STORE")
}

// StoreError adds to an error of the store the hint that fixes it.
func StoreError(err error) error {
	switch {
	case errors.Is(err, store.ErrNoStore):
		return texts.WithHint(err, "run `symbolize index PATH…` to create one, or name another with --store")
	case errors.Is(err, store.ErrVersion):
		return texts.WithHint(err,
			"use the newer symbolize that wrote it, or another store with --store")
	case errors.Is(err, store.ErrOldSchema):
		return texts.WithHint(err, "index again into another directory (--store), or remove this one before")
	case errors.Is(err, store.ErrLocked):
		return texts.WithHint(err, "wait until it ends (--lock-timeout), or use another store (--store)")
	case errors.Is(err, store.ErrNoSpace):
		return texts.WithHint(err,
			"free some space, or use a store on another disk with --store; "+
				"earlier writes are complete")
	case errors.Is(err, store.ErrUnsafe):
		return texts.WithHint(err,
			"use a store in your own directory with --store, or run as the store's owner; "+
				"remove links and pipes in it; --shared-store trusts everyone who can write there")
	case errors.Is(err, store.ErrDamaged):
		return texts.WithHint(err, "run `symbolize store verify` to list the losses; "+
			"index into another --store")
	}
	return err
}

// OpenReader opens a store for reading.
func (a *App) OpenReader(path string) (*db.Reader, error) {
	r, err := db.OpenReader(path)
	if err == nil {
		a.WarnStore(r)
	}
	return r, err
}

// WarnStore prints the warnings of a store about damage.
func (a *App) WarnStore(s interface{ Warnings() []string }) {
	for _, text := range s.Warnings() {
		a.Warn("store: "+text, "`symbolize store verify` checks all of it")
	}
}

// WithReader runs body on the newest generation of the store.
func (a *App) WithReader(body func(r *db.Reader) error) error {
	path, err := a.StorePath()
	if err != nil {
		return err
	}
	r, err := a.OpenReader(path)
	if err != nil {
		return StoreError(err)
	}
	err = errors.Join(body(r), r.Close())
	a.WarnStore(r)
	return StoreError(err)
}

// OpenWriter opens the store for writing, and reports if it waits for another writer.
func (a *App) OpenWriter(ctx context.Context, path string, opts db.WriterOptions) (
	*db.Writer, error) {
	opts.Waiting = func(e *store.LockedError) { a.Note(e.Waiting()) }
	return db.OpenWriter(ctx, path, opts)
}

// WithWriter runs body on the store opened for writing, and publishes.
func (a *App) WithWriter(ctx context.Context, opts db.WriterOptions,
	body func(w *db.Writer) error) error {
	path, err := a.StorePath()
	if err != nil {
		return err
	}
	w, err := a.OpenWriter(ctx, path, opts)
	if err != nil {
		return StoreError(err)
	}
	err = errors.Join(body(w), w.Close())
	a.WarnStore(w)
	return StoreError(err)
}
