// Package reportcmd has the commands that show the samples of captures: top, tree, peek, diff,
// flamegraph, heatmap, timeline, report, annotate, web.
package reportcmd

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"symbolize/analyze/calltree"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

// defaultTopRows is how many rows top prints: a screenful.
const defaultTopRows = 30

type topOptions struct {
	cli.InputOptions
	selectOptions
	cli.Result
	rows     int
	minShare float64
	sort     string
	branch   bool
}

const topLong = `top prints a table of functions. flat is the weight of the samples in the function itself, cum
includes the functions that it called. Arguments are captures, and pprof files that resolve wrote.
Shares refer to all samples of the event.` + cli.CaptureStatus

// The words of --sort.
var topSorts = []string{"flat", "cum"}

// NewTop makes the command `top`.
func NewTop(a *cli.App) *cobra.Command {
	o := &topOptions{}
	cmd := &cobra.Command{
		Use:     "top [CAPTURE|PROFILE…]",
		Short:   "Print a table of functions, heaviest first",
		Long:    topLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize top perf.data\n  symbolize top -n 10 --sort cum x.pb.gz\n" +
			"  symbolize top --focus malloc --by object perf.data",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return runTop(ctx, a, o, args)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *topOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	cli.AddLimit(fs, &o.rows, defaultTopRows, "print the `N` heaviest; 0 for all")
	o.sort = topSorts[0]
	cli.AddChoice(cmd, &o.sort, "sort", "sort by `COLUMN`: flat or cum", topSorts...)
	fs.BoolVar(&o.branch, "branches", false,
		"print the branches of perf record -b by source and target, with the share of mispredictions")
	fs.Float64Var(&o.minShare, "min-share", 0, "leave out functions with less than `PCT` percent of the total")
	o.Result.AddFlags(cmd, cli.Text, cli.JSON)
	o.selectOptions.addFlags(cmd)
	o.InputOptions.AddFlags(cmd)
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
}

func (o *topOptions) validate(args []string) error {
	return cmp.Or(
		cli.CheckLimit(o.rows),
		o.InputOptions.Validate(args),
		o.Result.Check(args),
		checkShare(o.minShare),
		o.selectOptions.parse(&o.Keep),
		o.parseBranches(),
		o.keepAccess(),
	)
}

// parseBranches sets the options that --branches needs: one frame for each end.
func (o *topOptions) parseBranches() error {
	if !o.branch {
		return nil
	}
	if by := o.parsed.By; len(by) > 1 || by[0] != calltree.Function && by[0] != calltree.Line {
		return cli.Usagef("--branches --by %s: it is function or line", o.by)
	}
	o.Branches, o.NoInlines = input.BranchEntries, true
	return nil
}

// keepAccess keeps what the columns of rows of data need.
func (o *topOptions) keepAccess() error {
	o.Keep.Access = o.ofData()
	return nil
}

// ofData reports whether rows are of data, so that what was recorded of accesses has columns.
func (o *topOptions) ofData() bool {
	return slices.ContainsFunc(o.parsed.By, func(by calltree.By) bool {
		return ingest.DataTag(string(by)) || string(by) == ingest.AddressTag
	})
}

func runTop(ctx context.Context, a *cli.App, o *topOptions, paths []string) error {
	return a.WithProfile(ctx, &o.InputOptions, paths, func(s *cli.Session,
		p *ingest.Profile) error {
		if o.branch {
			return writeReport(a, calltree.NewBranches(p, o.calls(s, p), o.rows), &o.Result)
		}
		return writeReport(a, calltree.NewTop(p, calltree.TopOptions{Options: o.calls(s, p),
			Limit: o.rows, MinShare: o.minShare / 100, Cum: o.sort == "cum", Memory: o.ofData()}), &o.Result)
	})
}
