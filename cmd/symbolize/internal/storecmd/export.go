package storecmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"symbolize/analyze/table"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/texts"
	"symbolize/store"
	"symbolize/store/db"
)

func newStoreExportCommand(a *cli.App, index func(context.Context, *cli.App, []string) error) *cobra.Command {
	var output, format string
	var captures []string
	var noLocal bool
	cmd := &cobra.Command{
		Use:         "export",
		Short:       "Write objects into one archive, compressed with zstd",
		Annotations: map[string]string{cli.WritesAnnotation: "store"},
		Long: `export writes all objects of the store to one archive, which import merges into another store. With
--for it indexes the files of this host that captures need, as index --for does, and writes the
objects of the captures, so that the archive names them on any host. Equal objects give equal bytes.`,
		Example: `  symbolize store export --for perf.data -o symbols.zst`,
		Args:    cli.NoArgs,
		RunE: a.RunE(func(ctx context.Context, _ []string) error {
			if format == cli.JSON && (output == "" || output == "-") {
				return texts.WithHint(cli.Usagef("--format json: standard output has the archive"),
					"name a file with -o FILE")
			}
			if err := a.RefuseTerminal(output, true, ""); err != nil {
				return err
			}
			if len(captures) > 0 && !noLocal {
				if err := index(ctx, a, captures); err != nil {
					return err
				}
			}
			want, err := neededObjects(ctx, a, captures)
			if err != nil {
				return err
			}
			return a.WithReader(func(r *db.Reader) error {
				objects := 0
				err := a.WriteOutput(output, true, func(w io.Writer) (err error) {
					objects, err = store.Export(ctx, w, r, want)
					return err
				})
				if err != nil {
					return err
				}
				return writeNoted(a, format, "store-export/1", exportFacts{output, objects},
					table.Count(objects, "object", "objects"))
			})
		}),
	}
	cmd.Flags().StringArrayVar(&captures, "for", nil,
		"only the objects that `CAPTURE` needs; may be repeated")
	cmd.Flags().BoolVar(&noLocal, "no-local", false,
		"with --for: write what the store has, without the files of this host")
	cli.AddOutput(cmd.Flags(), &output)
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	return cmd
}

// neededObjects returns a filter for the objects that captures need; nil without captures, for all.
func neededObjects(ctx context.Context, a *cli.App, captures []string) (
	want func(*store.Manifest) bool, err error) {
	if len(captures) == 0 {
		return nil, nil
	}
	o := &cli.InputOptions{NoLocal: true}
	captures = o.SplitBundles(ctx, captures)
	defer o.Opened.Close()
	s, err := a.OpenSession(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := s.Load(ctx, captures)
	if err != nil {
		return nil, err
	}
	warnAbsent(a, p)
	used := make(map[buildid.ID]bool)
	for _, id := range s.State().Used() {
		used[id] = true
	}
	return func(m *store.Manifest) bool { return used[m.ID] }, nil
}

// warnAbsent warns of objects that captures need and the store lacks.
func warnAbsent(a *cli.App, p *ingest.Profile) {
	absent := make(map[buildid.ID]bool)
	for l := range p.Locations {
		switch p.Names.Reasons[l] {
		case ingest.NotIndexed, ingest.Mismatch:
			absent[p.Objects[p.Locations[l].Object].ID] = true
		}
	}
	if len(absent) > 0 {
		a.Warn(fmt.Sprintf("%s not in the store, nor in the archive",
			table.Count(len(absent), "object of the captures is", "objects of the captures are")),
			"run it on the host that recorded, or `symbolize fetch` downloads them")
	}
}
