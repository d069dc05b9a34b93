package reportcmd

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/calltree"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/suggest"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

type peekOptions struct {
	cli.InputOptions
	selectOptions
	cli.Result
	rows int

	function *regexp.Regexp
}

const peekLong = `peek prints the direct callers and callees of the functions that match a regular expression,
callers first, each with the weight of the samples in that call. ^name$ selects one function.

Exit status: 0 done; 1 failed, or no function matches; 2 usage; 3 a capture is damaged or unreadable,
the others were used; 130 interrupted.`

// NewPeek makes the command `peek`.
func NewPeek(a *cli.App) *cobra.Command {
	o := &peekOptions{}
	cmd := &cobra.Command{
		Use:     "peek FUNCTION [CAPTURE|PROFILE…]",
		Short:   "Print the callers and callees of a function",
		Long:    peekLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize peek '^malloc$' perf.data",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return runPeek(ctx, a, o, args[1:])
		}),
	}
	cli.AddLimit(cmd.Flags(), &o.rows, 0, "print the `N` heaviest; 0 for all")
	o.Result.AddFlags(cmd, cli.Text, cli.JSON)
	o.selectOptions.addFlags(cmd)
	o.InputOptions.AddFlags(cmd)
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
	cmd.ValidArgsFunction = cli.CompleteFunctionFirst(a, &cli.InputOptions{})
	return cmd
}

func (o *peekOptions) validate(args []string) (err error) {
	if len(args) == 0 {
		return texts.WithHint(cli.Usagef("no function is named"),
			"name it before the captures: `symbolize peek FUNCTION perf.data`")
	}
	if len(args) > 1 && cli.IsFile(args[0]) && !cli.IsFile(args[len(args)-1]) {
		return texts.WithHint(cli.Usagef("%s is a file, and %s is not", args[0],
			args[len(args)-1]),
			"the function comes first: `symbolize peek FUNCTION %s`", texts.ShellWord(args[0]))
	}
	if o.function, err = regexp.Compile(args[0]); err != nil {
		return cli.Usagef("FUNCTION: %w", expressionError(err))
	}
	return cmp.Or(
		cli.CheckLimit(o.rows),
		o.InputOptions.Validate(args[1:]),
		o.Result.Check(args[1:]),
		o.selectOptions.parse(&o.Keep),
	)
}

func runPeek(ctx context.Context, a *cli.App, o *peekOptions, paths []string) error {
	return a.WithProfile(ctx, &o.InputOptions, paths, func(s *cli.Session,
		p *ingest.Profile) error {
		r := calltree.NewPeek(p, o.function, o.calls(s, p))
		r.Cut(o.rows)
		if err := writeReport(a, r, &o.Result); err != nil || len(r.Functions) > 0 {
			return err
		}
		err := fmt.Errorf("no function of the samples matches %q", o.function.String())
		var names []string
		for _, row := range calltree.NewTop(p, calltree.TopOptions{Options: o.calls(s, p)}).Rows {
			names = append(names, row.Name)
		}
		if near := suggest.Nearest(strings.Trim(o.function.String(), "^$"), names); len(near) > 0 {
			return texts.WithHint(err, "did you mean %s?", strings.Join(near, ", "))
		}
		return texts.WithHint(err, "`symbolize top -n 0` lists the names")
	})
}
