package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/help"
	"symbolize/store"
	"symbolize/store/db"
)

const storeLong = `store looks into the store and keeps it in order. The commands that read work
on the newest published generation, also while another process writes.

Exit status: 0 done; 1 failed, or verify found damage; 2 usage; 3 partial; 130 interrupted.`

func newStoreCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "store",
		Short:   "Look into the store and keep it in order",
		Long:    storeLong,
		GroupID: groupLook,
		RunE:    needSubcommand,
		Args:    cobra.ArbitraryArgs,
	}
	cmd.SuggestionsMinimumDistance = help.SuggestionDistance
	cmd.AddCommand(
		newStoreLsCommand(a),
		newStoreShowCommand(a),
		newStoreStatsCommand(a),
		newStoreVerifyCommand(a),
		newStoreDigestCommand(a),
		newStoreRebuildCommand(a),
		newStoreRmCommand(a),
		newStoreGCCommand(a),
		newStoreExportCommand(a),
		newStoreImportCommand(a),
		newStorePushCommand(a),
		newStorePullCommand(a),
	)
	return cmd
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

// addWriterFlags adds the flags of all commands that write to the store.
func addWriterFlags(fs *pflag.FlagSet, o *db.WriterOptions) {
	fs.DurationVar(&o.LockTimeout, "lock-timeout", defaultLockTimeout,
		"wait for `TIME` for another writer; 0: not at all")
	fs.BoolVar(&o.Shared, "shared-store", false,
		"write although others can write to the store's directory, or to one above it")
}
