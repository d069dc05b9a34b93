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
	reader, err := db.OpenReader(path)
	if errors.Is(err, store.ErrNoStore) {
		res, _, err := PullTo(ctx, from, ids, store.NewOverlay(), path, opts, writer)
		return res, err
	}
	if err != nil {
		return &PullResult{}, err
	}
	res, _, err := PullTo(ctx, from, ids, reader, path, opts, writer)
	return res, errors.Join(err, reader.Close())
}

// PullTo is PullStore for a caller that has opened the newest generation of the store as view, and
// has checked the bucket. wrote is true if the store was opened for writing: then there may be a
// newer generation.
func PullTo(ctx context.Context, from Bucket, ids []buildid.ID, view store.View, path string,
	opts PullOptions, writer db.WriterOptions) (res *PullResult, wrote bool, err error) {
	var w *db.Writer
	opts.View, opts.Checked = view, true
	opts.Notes = func() string { return db.RemoteNotes(path) }
	opts.Open = func(ctx context.Context) (store.Sink, store.View, error) {
		var err error
		if w, err = db.OpenWriter(ctx, path, writer); err != nil {
			return nil, nil, fmt.Errorf("keeping what comes from %s: %w", from.URL(""), err)
		}
		return w, w, nil
	}
	res, err = Pull(ctx, from, ids, opts)
	if w != nil {
		err = errors.Join(err, w.Close())
	}
	return res, w != nil, err
}
