package remote

import (
	"context"
	"errors"
	"fmt"

	"symbolize/buildid"
	"symbolize/store"
	"symbolize/store/db"
)

// PullStore pulls objects to the store at a path, which is made if there is none. It is opened for
// writing only when something is to be fetched, and again by others when PullStore returns. Errors
// of the store wrap those of db.OpenWriter; parts that came before are kept.
func PullStore(ctx context.Context, from Bucket, ids []buildid.ID, path string, jobs int,
	writer db.WriterOptions) (*PullResult, error) {
	var view store.View = store.NewOverlay()
	reader, err := db.OpenReader(path)
	switch {
	case err == nil:
		view = reader
	case !errors.Is(err, store.ErrNoStore):
		return &PullResult{}, err
	}
	writer.Pulled = true
	var w *db.Writer
	res, err := Pull(ctx, from, ids, PullOptions{View: view, Jobs: jobs,
		Notes: func() string { return db.RemoteNotes(path) },
		Open: func(ctx context.Context) (store.Sink, store.View, error) {
			var err error
			if w, err = db.OpenWriter(ctx, path, writer); err != nil {
				return nil, nil, fmt.Errorf("keeping what comes from %s: %w", from.URL(""), err)
			}
			return w, w, nil
		}})
	if w != nil {
		err = errors.Join(err, w.Close())
	}
	if reader != nil {
		err = errors.Join(err, reader.Close())
	}
	return res, err
}
