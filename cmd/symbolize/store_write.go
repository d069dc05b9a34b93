package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"symbolize/cmd/symbolize/internal/help"
	"symbolize/ingest"
	"symbolize/ingest/regular"
	"symbolize/store"
	"symbolize/store/bpfprog"
	"symbolize/store/db"
	"symbolize/store/indexer"
)

func newStoreRebuildCommand(a *app) *cobra.Command {
	var opts db.WriterOptions
	cmd := &cobra.Command{
		Use:         "rebuild",
		Annotations: map[string]string{writesAnnotation: "store"},
		Short:       "Make the tables of captured inputs anew",
		Long: `rebuild makes the tables of inputs that the store keeps, as kallsyms texts, anew with
this version's decoders. Tables of files are made anew by index, which reads them again.`,
		Args: help.NoArgs,
		RunE: a.runE(func(ctx context.Context, _ []string) error {
			return a.withExisting(ctx, opts, func(w *db.Writer) error {
				res, err := w.Rebuild(ctx, db.RebuildOptions{
					Table:    indexer.Rebuild,
					JIT:      bpfprog.Rebuild,
					File:     indexer.RebuildJITFile,
					Producer: func(store.SourceKind) uint32 { return store.Producer },
				})
				if res != nil {
					a.reportErrors(res.Problems, 0)
					a.note(fmt.Sprintf("%d captured inputs, %d tables have changed",
						res.Sources, res.Changed))
				}
				return err
			})
		}),
	}
	addWriterFlags(cmd.Flags(), &opts)
	return cmd
}

// reportErrors prints errors that kept single items from being done.
func (a *app) reportErrors(errs []error, more int) {
	for _, err := range errs {
		a.warn(err.Error(), "")
	}
	if more > 0 {
		a.warn(fmt.Sprintf("… and %d more", more), "")
	}
	a.partial = a.partial || len(errs) > 0
}

func newStoreImportCommand(a *app) *cobra.Command {
	var opts db.WriterOptions
	cmd := &cobra.Command{
		Use:         "import ARCHIVE…",
		Annotations: map[string]string{writesAnnotation: "store"},
		Short:       "Merge archives that export wrote; - is standard input",
		Args:        help.SomeArgs("FILE"),
		RunE: a.runE(func(ctx context.Context, args []string) error {
			return a.withWriter(ctx, opts, func(w *db.Writer) error {
				for _, path := range args {
					if err := a.importArchive(ctx, path, w); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
	addWriterFlags(cmd.Flags(), &opts)
	return cmd
}

func (a *app) importArchive(ctx context.Context, path string, to store.Sink) (err error) {
	var in io.Reader = a.env.Stdin
	if path != "-" {
		f, err := regular.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	res, err := db.Import(ctx, in, to)
	if res != nil {
		a.reportErrors(res.Problems, res.More)
		a.note(fmt.Sprintf("%s: %d objects, %d tables", path, res.Objects, res.Sources))
	}
	if err != nil && res != nil && res.Objects > 0 {
		return ingest.WithHint(fmt.Errorf("%s: %w", path, err),
			"what stands before that was imported")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
