package remote

import (
	"context"
	"errors"
	"fmt"

	"symbolize/buildid"
	"symbolize/store"
	"symbolize/store/db"
)

// PullStore pulls objects to the store at a path, which is made if it is missing. Of opts it uses Jobs
// and Progress. The store is
// opened for writing only if something must be fetched, and closed when PullStore returns. Errors
// of the store wrap the errors of db.OpenWriter; parts fetched before an error are kept.
func PullStore(ctx context.Context, from Bucket, ids []buildid.ID, path string, opts PullOptions,
	writer db.WriterOptions) (*PullResult, error) {
	if err := Check(ctx, from); err != nil {
		return &PullResult{Asked: len(ids)}, err
	}
	here := Target{View: store.NewOverlay()}
	reader, err := db.OpenReader(path)
	switch {
	case err == nil:
		defer reader.Close()
		here = Here(reader, reader)
	case !errors.Is(err, store.ErrNoStore):
		return &PullResult{}, err
	}
	res, _, err := PullTo(ctx, from, ids, here, path, opts, writer)
	return res, err
}

// Here returns the PullOptions.Here of a store that is read through a view.
func Here(r *db.Reader, view store.View) Target { return Target{View: view, Noted: r.Noted} }

// PullTo is PullStore for a caller that has opened the newest generation of the store, and has checked
// the bucket. wrote is true if the store was opened for writing: then there may be a newer
// generation.
func PullTo(ctx context.Context, from Bucket, ids []buildid.ID, here Target, path string,
	opts PullOptions, writer db.WriterOptions) (res *PullResult, wrote bool, err error) {
	var w *db.Writer
	opts.Here, opts.Checked = here, true
	opts.Open = func(ctx context.Context) (Target, error) {
		var err error
		if w, err = db.OpenWriter(ctx, path, writer); err != nil {
			return Target{}, fmt.Errorf("keeping what comes from %s: %w", from.URL(""), err)
		}
		return Target{Sink: w, View: w, Note: w.Note, Noted: w.Noted}, nil
	}
	res, err = Pull(ctx, from, ids, opts)
	if w != nil {
		err = errors.Join(err, w.Close())
	}
	return res, w != nil, err
}
