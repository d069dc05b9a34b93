package storecmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"symbolize/analyze/inspect"
	"symbolize/analyze/lookup"
	"symbolize/buildid"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/texts"
	"symbolize/store/db"
)

func newStoreLsCommand(a *cli.App) *cobra.Command {
	var format string
	var ids bool
	cmd := &cobra.Command{
		Use:   "ls [PREFIX|TEXT…]",
		Short: "List the objects: build ID, kind, quality, size, path",
		Long: `ls lists the objects of the store, sorted by build ID. Arguments select objects by the beginning of
the build ID, a part of the path, or the tag of a BPF function. Quality is the best kind of source
that an object has. BPF functions have the kernel's name in place of a path; quality "probable"
marks an entry for functions that captures name without their code. Quality "alias" marks an ID of
profiles of OpenTelemetry.`,
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			process.SetLeanGC(a.Env.Getenv)
			return a.WithReader(func(r *db.Reader) error {
				return runStoreLs(ctx, a, r, format, ids, args)
			})
		}),
	}
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	cmd.Flags().BoolVar(&ids, "ids", false, "also list other IDs that lead to an object: htl:, of a "+
		"file's ends and size, and go:, a hash of Go's build ID")
	return cmd
}

func runStoreLs(ctx context.Context, a *cli.App, r *db.Reader, format string, ids bool,
	args []string) error {
	walks := 0
	tagged := make(map[buildid.ID]bool)
	for _, arg := range args {
		if tag, ok := bpf.ParseTag(arg); ok {
			for _, m := range lookup.Tagged(r, tag) {
				tagged[m.ID] = true
			}
		}
	}
	objects := func(yield func(*inspect.Stored, error) bool) {
		walks++
		for m, err := range r.Objects() {
			switch {
			case ctx.Err() != nil:
				yield(nil, ctx.Err())
				return
			case err != nil && walks == 1:
				a.Damage(err.Error(), "`symbolize store verify` lists the damage")
			case err != nil:
			case m.IsAlias() && !ids: // aliases come after all objects
				return
			default:
				o := inspect.NewStored(m)
				o.Complete(r)
				if (tagged[m.ID] || o.Matches(args)) && !yield(o, nil) {
					return
				}
			}
		}
	}
	return a.WriteOutput("", false, func(w io.Writer) error {
		if format == cli.JSON {
			return texts.WriteJSONList(w, "store-ls/1", "objects", objects)
		}
		return inspect.WriteList(w, objects)
	})
}

func newStoreShowCommand(a *cli.App) *cobra.Command {
	var format string
	var functions bool
	cmd := &cobra.Command{
		Use:   "show BUILD-ID|TAG",
		Short: "Show one object: its sources, layout and functions",
		Long: `show prints the sources and the layout of the object with this build ID or prefix, or of the BPF
function with this tag. --functions prints the functions of each source, in the order in which
sources are asked.`,
		Args: cli.OneArg("build ID"),
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			return a.WithReader(func(r *db.Reader) error {
				m, err := lookup.FindObject(r, args[0])
				if err != nil {
					return err
				}
				return a.WriteOutput("", false, func(w io.Writer) error {
					switch {
					case functions && format == cli.JSON:
						return inspect.WriteFunctionsJSON(ctx, w, r, m)
					case functions:
						return inspect.WriteFunctions(ctx, w, r, m)
					case format == cli.JSON:
						o := inspect.NewStored(m)
						o.Complete(r)
						return texts.WriteJSON(w, "store-show/1", o)
					}
					return inspect.WriteStored(w, r, m)
				})
			})
		}),
	}
	cmd.ValidArgsFunction = cli.CompleteStoredIDs(a, false)
	cli.AddFormat(cmd, &format, cli.Text, cli.JSON)
	cmd.Flags().BoolVar(&functions, "functions", false,
		"print all functions: source, address, size, name")
	return cmd
}
