package storecmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/store/db"
)

// dropOptions are options of the commands that drop objects.
type dropOptions struct {
	writer db.WriterOptions
	dryRun bool
	format string
}

func (o *dropOptions) addFlags(cmd *cobra.Command) {
	cli.AddWriter(cmd.Flags(), &o.writer)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list the objects to remove, and change nothing")
	cli.AddFormat(cmd, &o.format, cli.Text, cli.JSON)
}

func newStoreGCCommand(a *cli.App) *cobra.Command {
	var o dropOptions
	var unreferenced bool
	var keep cli.Days
	cmd := &cobra.Command{
		Use:         "gc",
		Annotations: map[string]string{cli.WritesAnnotation: "store"},
		Short:       "Drop unused and damaged contents",
		Long: `gc drops leftovers of interrupted runs, damaged tables and rows of vanished paths, and joins the
facts of all runs. Files that a running command still reads are deleted after it has ended. --unreferenced also drops objects without a file;
kernels and captured inputs stay, because they cannot be made again.

--keep 30d drops every object, captured ones too, that index has not met and no report or look-up has
used for 30 days. Use is noted once a day by processes that may write to the store. Objects without
a note count as used today.`,
		Args: cli.NoArgs,
		RunE: a.RunE(func(ctx context.Context, _ []string) error {
			opts := db.GCOptions{Unreferenced: unreferenced}
			if keep > 0 {
				opts.Since = keep.Since()
			}
			return drop(ctx, a, &o, opts)
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&unreferenced, "unreferenced", false,
		"also drop objects without a file")
	cmd.Flags().Var(&keep, "keep",
		"also drop objects neither indexed nor used for `TIME`, such as 30d or 8w")
	cmd.Flags().Var((*daysOnly)(&keep), "keep-days", "the same as --keep `N`d")
	o.addFlags(cmd)
	return cmd
}

// drop has the store drop the objects that opts ask for, or lists them.
func drop(ctx context.Context, a *cli.App, o *dropOptions, opts db.GCOptions) error {
	process.SetLeanGC(a.Env.Getenv)
	gone := []goneObject{}
	if o.dryRun || o.format == cli.JSON {
		opts.Gone = func(g db.Gone) { gone = append(gone, newGone(g)) }
	}
	if o.dryRun {
		return a.WithReader(func(r *db.Reader) error {
			res, err := r.PlanGC(ctx, opts)
			if err != nil {
				return err
			}
			err = a.WriteFacts(o.format, "store-gc/1", newGCFacts(res, true, gone), func(w io.Writer) error {
				return writeGone(w, gone)
			})
			a.Note("nothing was changed; " + gcText(res, "would be dropped", "would be about"))
			return err
		})
	}
	path, err := a.StorePath()
	if err != nil {
		return err
	}
	before, err := db.DiskUse(path) // without the writer's own database
	if err != nil {
		return err
	}
	var res *db.GCResult
	err = withExisting(ctx, a, o.writer, func(w *db.Writer) (err error) {
		res, err = w.GC(ctx, opts)
		return err
	})
	if err != nil {
		return err
	}
	res.Before = before
	if res.After, err = db.DiskUse(path); err != nil {
		return err
	}
	if o.format != cli.JSON && a.Silent() && res.Dropped+res.Superseded+res.Damaged+res.RowsDropped == 0 {
		return nil
	}
	return writeNoted(a, o.format, "store-gc/1", newGCFacts(res, false, gone), gcText(res, "dropped", "is"))
}

// writeGone writes a row for each object that is dropped.
func writeGone(w io.Writer, gone []goneObject) error {
	if len(gone) == 0 {
		return nil
	}
	t := table.New(false, false, false, true, false).Names(4)
	t.Row("BUILD ID", "KIND", "LAST USED", "SIZE", "PATH")
	for _, g := range gone {
		t.Row(g.BuildID, g.Kind, cmp.Or(g.LastUsed, "not known"), table.Bytes(g.Size), g.Path)
	}
	return t.Print(w)
}

func gcText(r *db.GCResult, dropped, is string) string {
	count := table.Count[int]
	text := fmt.Sprintf("%s kept; %s: %s, %s, %s, %s; disk %s %s, was %s: %s freed",
		count(r.Objects, "object", "objects"), dropped, count(r.Dropped, "object", "objects"),
		count(r.Superseded, "superseded table", "superseded tables"),
		count(r.Damaged, "damaged value", "damaged values"),
		count(r.RowsDropped, "path row", "path rows"), is, table.Bytes(r.After),
		table.Bytes(r.Before), table.Bytes(max(0, r.Before-r.After)))
	if r.Undated > 0 {
		text += fmt.Sprintf("; %s without a day of use, taken for used today",
			table.Count(r.Undated, "object", "objects"))
	}
	return text
}

// daysOnly is a cli.Days without a unit.
type daysOnly cli.Days

// Set implements pflag.Value.
func (d *daysOnly) Set(text string) error {
	if (*cli.Days)(d).Set(text+"d") != nil {
		return fmt.Errorf("a number of days as 30")
	}
	return nil
}

// String implements pflag.Value.
func (d *daysOnly) String() string {
	if *d == 0 {
		return ""
	}
	return strconv.Itoa(int(*d))
}

// Type implements pflag.Value.
func (d *daysOnly) Type() string { return "days" }
