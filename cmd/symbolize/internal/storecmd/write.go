package storecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/bpfprog"
	"symbolize/store/db"
	"symbolize/store/indexer"
)

func newStoreRebuildCommand(a *cli.App) *cobra.Command {
	var opts db.WriterOptions
	var format string
	cmd := &cobra.Command{
		Use:         "rebuild",
		Annotations: map[string]string{cli.WritesAnnotation: "store"},
		Short:       "Make the tables of captured inputs again",
		Long: `rebuild makes the tables of inputs that the store keeps, such as kallsyms texts, again with the
decoders of this version. Tables of files are made again by index.`,
		Args: cli.NoArgs,
		RunE: a.RunE(func(ctx context.Context, _ []string) error {
			return withExisting(ctx, a, opts, func(w *db.Writer) error {
				res, err := w.Rebuild(ctx, db.RebuildOptions{
					Table:    indexer.Rebuild,
					JIT:      bpfprog.Rebuild,
					File:     indexer.RebuildJITFile,
					Producer: func(store.SourceKind) uint32 { return store.Producer },
				})
				if res == nil {
					return err
				}
				a.ReportErrors(res.Problems, 0)
				return errors.Join(err, writeNoted(a, format, "store-rebuild/1",
					rebuildFacts{res.Sources, res.Changed, errorTexts(res.Problems)},
					fmt.Sprintf("%s, %s", table.Count(res.Sources, "captured input", "captured inputs"),
						table.Count(res.Changed, "table has changed", "tables have changed"))))
			})
		}),
	}
	cli.AddWriter(cmd.Flags(), &opts)
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	return cmd
}

func newStoreImportCommand(a *cli.App) *cobra.Command {
	var opts db.WriterOptions
	var format string
	cmd := &cobra.Command{
		Use:         "import ARCHIVE…",
		Annotations: map[string]string{cli.WritesAnnotation: "store"},
		Short:       "Merge archives of export; - is standard input",
		Args:        cli.SomeArgs("FILE"),
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			merged := []*importFacts{}
			err := a.WithWriter(ctx, opts, func(w *db.Writer) error {
				for _, path := range args {
					facts, err := importArchive(ctx, a, path, w)
					merged = append(merged, facts)
					if err != nil {
						return err
					}
					if format != cli.JSON {
						a.Note(facts.text())
					}
				}
				return nil
			})
			if format == cli.JSON {
				err = errors.Join(err, a.WriteFacts(format, "store-import/1", imported{merged}, nil))
			}
			return err
		}),
	}
	cli.AddWriter(cmd.Flags(), &opts)
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	return cmd
}

func (f *importFacts) text() string {
	return fmt.Sprintf("%s: %s, %s", f.Archive, table.Count(f.Objects, "object", "objects"),
		table.Count(f.Sources, "table", "tables"))
}

func importArchive(ctx context.Context, a *cli.App, path string, to store.InputSink) (
	facts *importFacts, err error) {
	facts = &importFacts{Archive: path, Problems: []string{}}
	in, err := a.OpenInput(path)
	if err != nil {
		return facts, err
	}
	defer in.Close()
	res, err := store.Import(ctx, in, to)
	if res != nil {
		a.ReportErrors(res.Problems, res.More)
		facts.Objects, facts.Sources, facts.More = res.Objects, res.Sources, res.More
		facts.Problems = errorTexts(res.Problems)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
		if facts.Objects > 0 {
			a.Note(facts.text())
			err = texts.WithHint(err, "the archive up to there was imported")
		}
	}
	return facts, err
}

// withExisting is cli.App.WithWriter for commands that do not create a store.
func withExisting(ctx context.Context, a *cli.App, opts db.WriterOptions,
	body func(w *db.Writer) error) error {
	path, err := a.StorePath()
	if err != nil {
		return err
	}
	r, err := db.OpenReader(path)
	if err == nil {
		err = r.Close()
	}
	// The error of a damaged store comes from opening it for writing.
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return cli.StoreError(err)
	}
	return a.WithWriter(ctx, opts, body)
}
