package main

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"symbolize/analyze/report"
)

// defaultTopRows is how many rows top prints: a screenful.
const defaultTopRows = 30

type topOptions struct {
	inputOptions
	format   string
	rows     int
	sort     string
	count    bool
	demangle string

	mode report.Mode // demangle parsed
}

const topLong = `top prints a table of functions: flat is what was sampled in the function itself,
cum what was sampled in it and in what it called. It takes captures, and pprof files that
resolve wrote.

Exit status: 0 done; 1 failed; 2 usage; 3 a capture could not be read or was damaged, the rest
was done; 130 interrupted.`

// The words of --sort.
var topSorts = []string{"flat", "cum"}

func newTopCommand(a *app) *cobra.Command {
	o := &topOptions{}
	cmd := &cobra.Command{
		Use:     "top CAPTURE|PROFILE…",
		Short:   "Print a table of functions, heaviest first",
		Long:    topLong,
		GroupID: groupMain,
		Example: "  symbolize top perf.data\n  symbolize top -n 10 --sort cum x.pb.gz",
		RunE: a.runE(func(ctx context.Context, args []string) error {
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
	fs.IntVarP(&o.rows, "rows", "n", defaultTopRows, "print `N` rows; 0 for all")
	fs.StringVar(&o.sort, "sort", topSorts[0], "sort by `flat` or cum")
	completeFixed(cmd, "sort", topSorts)
	addFormatFlag(cmd, &o.format, formatText, formatJSON)
	o.inputOptions.addFlags(cmd)
	addCountFlag(fs, &o.count)
	addDemangleFlag(cmd, &o.demangle, "simple")
	addNamesFlag(cmd, &o.names, "`symbols` (default) or dwarf")
}

func (o *topOptions) validate(args []string) (err error) {
	if o.rows < 0 {
		return usagef("-n %d: it is at least 0", o.rows)
	}
	if err := cmp.Or(
		o.inputOptions.validate(args),
		checkFormat(o.format, formatText, formatJSON),
		checkWord("--sort", o.sort, topSorts),
	); err != nil {
		return err
	}
	o.mode, err = parseDemangle(o.demangle, "simple")
	return err
}

func runTop(ctx context.Context, a *app, o *topOptions, paths []string) error {
	paths = o.takeBundles(ctx, paths)
	defer o.opened.Close()
	s, err := a.openSession(ctx, &o.inputOptions)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := s.load(ctx, paths)
	if err != nil {
		return err
	}
	a.printWarnings(p)
	event := s.event(p)
	top := report.NewTop(p, report.TopOptions{
		Event: event, Count: o.count, Limit: o.rows, Cum: o.sort == "cum",
		Demangler: report.NewDemangler(o.mode),
	})
	return a.writeOutput("", false, func(w io.Writer) error {
		if o.format == formatJSON {
			return top.WriteJSON(w)
		}
		return top.WriteText(w)
	})
}
