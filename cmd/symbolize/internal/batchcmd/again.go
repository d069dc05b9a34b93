package batchcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"symbolize/analyze"
	"symbolize/analyze/batch"
	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/texts"
)

// nameAgain names finished runs with the symbols that the store has now.
func nameAgain(ctx context.Context, a *cli.App, o *batchNameOptions, dirs []string) error {
	if len(dirs) == 0 || o.out != "" || o.part >= 0 || o.filesFrom != "" {
		return texts.WithHint(cli.Usagef("--again needs directories alone"),
			"name the outputs of \"batch run\", or a directory with several")
	}
	chains, err := chainsOf(&o.InputOptions)
	if err != nil {
		return err
	}
	nights, err := batch.Nights(dirs, func(err error) { reportNight(a, err) })
	if err != nil {
		return err
	}
	s, err := openBatchSession(ctx, a, &o.InputOptions)
	if err != nil {
		return err
	}
	total := &batch.Summary{}
	for _, n := range nights {
		if o.since > 0 && n.Last < o.since.Since().Format(time.DateOnly) {
			continue
		}
		if o.chained() {
			n.Chains = chains
		}
		err = againOne(ctx, a, s, n, o.Jobs, total)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, batch.ErrFormat) { // in its own files
			reportNight(a, err)
			err = nil
		}
		if err != nil {
			break
		}
	}
	err = errors.Join(err, s.Close())
	reportAgain(a, total)
	return batchError(err)
}

// reportNight reports a run that has lost files, or has damaged ones: the others go on.
func reportNight(a *cli.App, err error) {
	a.PrintError(texts.WithHint(err, "`symbolize batch run` makes them again"))
	a.Partial = true
}

// againOne names one run, and adds its figures to those of all.
func againOne(ctx context.Context, a *cli.App, s *analyze.Session, n *batch.Night, jobs int,
	total *batch.Summary) error {
	mode, err := cli.ParseDemangle(n.Style, "simple")
	if err != nil {
		return err
	}
	progress := a.StartSteps()
	hooks := batchHooks(a, false)
	hooks.Step, hooks.Done = progress.Step, progress.One
	sum, err := n.Name(ctx, s, batch.RunOptions{Workers: jobs, Hooks: hooks,
		Demangler: func() *demangle.Demangler { return demangle.New(mode) }})
	progress.Stop()
	if sum != nil {
		total.AddNight(sum)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.Out, err)
	}
	if sum.Outdated > 0 {
		a.Warn(fmt.Sprintf("%s: %s stacks that the store could unwind further now", n.Out,
			table.Count(sum.Outdated, "capture has", "captures have")),
			"`symbolize batch run` reads these again")
	}
	return nil
}

// reportAgain prints the results, and enters them into the summary.
func reportAgain(a *cli.App, sum *batch.Summary) {
	reportBatch(a, sum)
	if a.Quiet {
		return
	}
	for _, g := range sum.Gained {
		fmt.Fprintf(a.Env.Stderr, "named      %s %s: %d of its locations, before %d\n",
			texts.Printable(g.File), g.BuildID, g.Now, g.Before)
	}
}
