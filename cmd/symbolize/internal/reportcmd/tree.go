package reportcmd

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"symbolize/analyze/calltree"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
)

// defaultMin is the share in percent below which trees are pruned, as in perf.
const defaultMin = 0.5

type treeOptions struct {
	cli.InputOptions
	selectOptions
	cli.Result
	rows     int
	callers  bool
	minShare float64
	depth    int
}

const treeLong = `tree prints who calls whom as a tree: from the outermost functions to their callees or, with
--callers, from the sampled functions to their callers. Subtrees below --min-share are summed up in
a line under the tree.` + cli.CaptureStatus

// NewTree makes the command `tree`.
func NewTree(a *cli.App) *cobra.Command {
	o := &treeOptions{}
	cmd := &cobra.Command{
		Use:     "tree [CAPTURE|PROFILE…]",
		Short:   "Print who calls whom, as a tree",
		Long:    treeLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize tree perf.data\n" +
			"  symbolize tree --callers --focus malloc --min-share 2 x.pb.gz",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return runTree(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&o.callers, "callers", false, "print callers: from the sampled functions to the outermost")
	fs.Float64Var(&o.minShare, "min-share", defaultMin,
		"leave out subtrees with less than `PCT` percent of the selected samples")
	fs.IntVar(&o.depth, "max-depth", 0, "leave out calls deeper than `N`; 0 for no limit")
	cli.AddLimit(fs, &o.rows, 0, "print the `N` heaviest; 0 for all")
	o.Result.AddFlags(cmd, cli.Text, cli.JSON)
	o.selectOptions.addFlags(cmd)
	o.InputOptions.AddFlags(cmd)
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
	return cmd
}

func (o *treeOptions) validate(args []string) error {
	if o.depth < 0 {
		return cli.Usagef("--max-depth %d: it is at least 0", o.depth)
	}
	return cmp.Or(
		cli.CheckLimit(o.rows),
		o.InputOptions.Validate(args),
		o.Result.Check(args),
		checkShare(o.minShare),
		o.selectOptions.parse(&o.Keep),
	)
}

func runTree(ctx context.Context, a *cli.App, o *treeOptions, paths []string) error {
	return a.WithProfile(ctx, &o.InputOptions, paths, func(s *cli.Session,
		p *ingest.Profile) error {
		return writeReport(a, calltree.NewTree(p, o.treeCalls(s, p), calltree.TreeOptions{
			Reverse: o.callers, MinShare: o.minShare / 100, MaxDepth: o.depth,
			Limit: o.rows}), &o.Result)
	})
}
