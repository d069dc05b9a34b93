package main

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"symbolize/analyze/flame"
	"symbolize/analyze/report"
)

type flamegraphOptions struct {
	inputOptions
	output   string
	count    bool
	minShare float64
	labels   []string
	demangle string

	mode report.Mode // demangle parsed
}

const flamegraphLong = `flamegraph draws where time went: each frame is as wide as what was sampled in it
and in what it called. The result is one file of HTML that loads nothing and opens in any
browser: with zoom, search, callers and callees of a function, a table of functions, and the list
of what is missing. It takes captures, and pprof files that resolve wrote.

Exit status: 0 done; 1 failed; 2 usage; 3 a capture could not be read or was damaged, the rest
was done; 130 interrupted.`

func newFlamegraphCommand(a *app) *cobra.Command {
	o := &flamegraphOptions{}
	cmd := &cobra.Command{
		Use:     "flamegraph CAPTURE|PROFILE…",
		Short:   "Draw a flame graph: one page of HTML",
		Long:    flamegraphLong,
		GroupID: groupMain,
		Example: "  symbolize flamegraph -o x.html perf.data\n" +
			"  symbolize flamegraph --event cycles -o x.html x.pb.gz",
		RunE: a.runE(func(ctx context.Context, args []string) error {
			if err := o.validate(args); err != nil {
				return err
			}
			return runFlamegraph(ctx, a, o, args)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *flamegraphOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	addOutputFlag(fs, &o.output)
	fs.Float64Var(&o.minShare, "min-share", 0,
		"leave out frames with less than `PCT` percent of each event (default: what has no room)")
	o.inputOptions.addFlags(cmd)
	addCountFlag(fs, &o.count)
	fs.StringSliceVar(&o.labels, "labels", []string{"pid"},
		"`LABELS` that the page can choose by: comm, pid, tid, cpu; the comm always is one")
	addDemangleFlag(cmd, &o.demangle, "simple")
	addNamesFlag(cmd, &o.names, "`symbols` (default) or dwarf")
}

func (o *flamegraphOptions) validate(args []string) (err error) {
	if err := o.inputOptions.validate(args); err != nil {
		return err
	}
	if o.minShare < 0 || o.minShare > 100 {
		return usagef("--min-share %v: it is a percentage", o.minShare)
	}
	if o.keep, err = parseLabels(o.labels); err != nil {
		return err
	}
	o.mode, err = parseDemangle(o.demangle, "simple")
	return err
}

func runFlamegraph(ctx context.Context, a *app, o *flamegraphOptions, paths []string) error {
	named := paths
	paths = o.takeBundles(ctx, paths)
	defer o.opened.Close()
	err := cmp.Or(a.refuseTerminal(o.output, true), refuseOverwrite(named, []string{o.output}))
	if err != nil {
		return err
	}
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
	demangler := report.NewDemangler(o.mode)
	demangler.Warm(p)
	g := flame.New(p, flame.Options{Event: -1, Count: o.count, Keep: o.keep,
		Name: demangler.Name, MinShare: o.minShare / 100})
	return a.writeOutput(o.output, true, func(w io.Writer) error { return g.WriteHTML(w) })
}
