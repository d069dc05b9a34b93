package batchcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/analyze/batch"
	"symbolize/analyze/demangle"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

type batchCollectOptions struct {
	batchCaptures
	out     string
	lenient bool
}

func newBatchCollectCommand(a *cli.App) *cobra.Command {
	o := &batchCollectOptions{}
	cmd := &cobra.Command{
		Use:   "collect -o DIR CAPTURE|DIR…",
		Short: "Read captures and cut their locations into parts",
		Long: `collect reads captures, and all captures below directories, and writes packs of them: the stacks of
each, and the distinct locations of all, cut into parts by build ID. It prints the paths of the
packs. Captures that an earlier run has read, and would read in the same way, are not read again.`,
		Example: "  symbolize batch collect --parts 4 -o collected captures",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			return runBatchCollect(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.out, "output", "o", "", "write the files to `DIR`")
	o.batchCaptures.addFlags(fs)
	fs.IntVar(&o.parts, "parts", defaultParts,
		"cut the locations into `N` parts, for as many tasks of \"batch name\"")
	addLenient(fs, &o.lenient)
	return cmd
}

func runBatchCollect(ctx context.Context, a *cli.App, o *batchCollectOptions, args []string) error {
	if o.out == "" {
		return texts.WithHint(cli.Usagef("no directory is named"), "name one with -o DIR")
	}
	opts, err := o.session(a)
	if err != nil {
		return err
	}
	captures, all, err := o.captures(a, args)
	if err != nil {
		return err
	}
	if err := files.MakeDir(o.out); err != nil {
		return err
	}
	process.LimitMemory(int64(o.MaxMemory))
	process.SetGC(a.Env.Getenv, process.FoldGC)
	c := &batch.Collector{Session: opts, Dir: o.out, Parts: o.parts, Workers: o.Jobs,
		Config: o.config(), Hooks: batchHooks(a, o.lenient)}
	progress := a.StartSteps()
	c.Step, c.Done = progress.Step, progress.One
	files, st, err := c.Collect(ctx, captures, all)
	err = errors.Join(err, st.Err())
	progress.Stop()
	run := a.Facts()
	run.Captures, run.Failed, run.Samples, run.Batch = st.Captures, st.Failed, st.Samples, &st
	o.warnPods(a, st.Read)
	for _, f := range files {
		fmt.Fprintln(a.Stdout(), f)
	}
	return batchError(err)
}

type batchNameOptions struct {
	batchInputs
	out   string
	part  int
	again bool
	allow bool
	since cli.Days
	cli.InputOptions

	chained func() bool // a flag of stacks is set
}

func newBatchNameCommand(a *cli.App) *cobra.Command {
	o := &batchNameOptions{}
	cmd := &cobra.Command{
		Use:   "name {--part R -o FILE DIR|FILE…|--again DIR…}",
		Short: "Name one part of the locations of collected captures",
		Long: `name reads the locations of one part from all files of batch collect, joins them with the store,
each symbol table once, and writes the names to a file. Without --part the part has the number of
the engine's task. --chains and --gaps are the same for each part.

--again names the objects of finished runs of which the store has other symbols now, and replaces
the profiles that have them. It reads no captures. With --chains it treats stacks otherwise than the run.`,
		Example: "  symbolize batch name --part 0 -o 0.names collected\n" +
			"  symbolize batch name --again --since 30d /srv/profiles",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			if o.again {
				return nameAgain(ctx, a, o, args)
			}
			return runBatchName(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.out, "output", "o", "", "write the names to `FILE`")
	fs.IntVar(&o.part, "part", -1, "number of the part, from 0, as `R`")
	fs.BoolVar(&o.again, "again", false,
		"name finished outputs of \"batch run\", or those below a directory, with new symbols")
	fs.Var(&o.since, "since", "with --again: only runs with captures of the last `TIME`, such as 30d")
	addAllowMissing(fs, &o.allow)
	o.addFilesFrom(fs)
	o.AddChains(fs, "recorded (default), proven")
	o.chained = func() bool { return fs.Changed("chains") || fs.Changed("gaps") }
	o.Remote.AddFlag(fs)
	cli.AddJobs(fs, &o.Jobs)
	return cmd
}

func runBatchName(ctx context.Context, a *cli.App, o *batchNameOptions, args []string) error {
	if o.out == "" {
		return texts.WithHint(cli.Usagef("no file is named"), "name one with -o FILE")
	}
	if o.part < 0 {
		index, _, ok := batch.TaskIndex(a.Env.Getenv)
		if !ok {
			return cli.Usagef("no part is named: --part R")
		}
		o.part = index
	}
	chains, err := chainsOf(&o.InputOptions)
	if err != nil {
		return err
	}
	collected, _, err := o.collected(a, args, o.allow)
	if err != nil {
		return gaps(a, err)
	}
	s, err := openBatchSession(ctx, a, &o.InputOptions)
	if err != nil {
		return err
	}
	if err := files.MakeDir(filepath.Dir(o.out)); err != nil {
		return errors.Join(err, s.Close())
	}
	st, err := batch.Name(ctx, s, o.part, collected, o.out,
		batch.NameOptions{Workers: o.Jobs, Chains: chains})
	a.NotePulled(s)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	for _, w := range st.Warnings {
		a.Warn(w.Text, w.Hint)
		a.Partial = a.Partial || w.Partial
	}
	run := a.Facts()
	run.Captures, run.Tables, run.Batch = len(collected), st.Tables, st
	a.Note(fmt.Sprintf("part %d: %d locations in %d objects, %d tables opened", o.part,
		st.Locations,
		st.Objects, st.Tables))
	return nil
}

// addAllowMissing adds the flag for batches with gaps.
func addAllowMissing(fs *pflag.FlagSet, allow *bool) {
	fs.BoolVar(allow, "allow-missing", false,
		"go on although captures are not collected; comments of the profiles have their share")
}

// collected lists the packs of "batch collect" that paths name or that are below directories. All
// captures must be collected, unless gaps are allowed: note describes them.
func (o *batchInputs) collected(a *cli.App, args []string, allow bool) (
	packs []string, note string, err error) {
	_, all, err := o.paths(a, args)
	if err != nil {
		return nil, "", err
	}
	var notes []string
	for _, path := range all {
		switch filepath.Ext(path) {
		case batch.ShareExtension, batch.PlanExtension:
			notes = append(notes, path)
		default:
			packs = append(packs, path)
		}
	}
	p, err := batch.ReadProgress(notes, packs)
	if err != nil {
		return nil, "", err
	}
	a.Facts().Absent = len(p.Missing)
	if err := p.Complete(); err != nil && !allow {
		return nil, "", err
	}
	if len(packs) == 0 {
		return nil, "", errors.New("no file of \"batch collect\" is there")
	}
	return packs, p.Note(), nil
}

// gaps prints the error of a batch that is not complete: the exit status is 3, as others may be able
// to go on.
func gaps(a *cli.App, err error) error {
	if !errors.Is(err, batch.ErrGaps) {
		return err
	}
	a.PrintError(err)
	a.Partial = true
	return nil
}

type batchMergeOptions struct {
	batchInputs
	batchGroups
	out     string
	names   []string
	allow   bool
	lenient bool
}

func newBatchMergeCommand(a *cli.App) *cobra.Command {
	o := &batchMergeOptions{}
	o.words = batchFormats
	cmd := &cobra.Command{
		Use:   "merge --names FILE… -o DIR DIR|FILE…",
		Short: "Write the profiles of collected captures and their names",
		Long: `merge writes a profile for each group of the captures that batch collect read, with the names that
batch name wrote. It reads the store only for the labels type, field and data.`,
		Example: "  symbolize batch merge --names names --by host -o profiles collected",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			return runBatchMerge(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.out, "output", "o", "", "write the profiles to `DIR`")
	fs.StringSliceVar(&o.names, "names", nil, "files of \"batch name\", or `DIR` with them")
	o.batchGroups.addFlags(cmd)
	o.batchInputs.addFlags(fs, "of the groups")
	addAllowMissing(fs, &o.allow)
	addLenient(fs, &o.lenient)
	return cmd
}

func runBatchMerge(ctx context.Context, a *cli.App, o *batchMergeOptions, args []string) error {
	if o.out == "" || len(o.names) == 0 {
		return texts.WithHint(cli.Usagef("--output and --names are both needed"),
			"-o DIR for the profiles, --names DIR with the files of \"batch name\"")
	}
	by, formats, err := o.grouping()
	if err != nil {
		return err
	}
	demangler, err := o.demangler()
	if err != nil {
		return err
	}
	collected, note, err := o.collected(a, args, o.allow)
	if err != nil {
		return gaps(a, err)
	}
	if note != "" {
		a.Warn(note, "")
	}
	if err := files.CheckLinks(o.out); err != nil {
		return err
	}
	share, err := o.share(a)
	if err != nil {
		return err
	}
	names, err := batch.Captures(o.names)
	if err != nil {
		return err
	}
	grouped, err := by.Groups(collected)
	if err != nil {
		return batchError(err)
	}
	warnCaptures(a, grouped.Lacking, grouped.Equal)
	groups := batch.Of(share, grouped.Groups)
	answers, err := batch.OpenAnswers(names)
	if err != nil {
		return err
	}
	d := demangler()
	out := batch.Output{Dir: o.out, Formats: formats, Comment: note, Hooks: batchHooks(a, o.lenient),
		Demangler: func() *demangle.Demangler { return d }}
	if slices.ContainsFunc(groups, (*batch.Group).Accesses) {
		if out.Session, err = openBatchSession(ctx, a, &cli.InputOptions{}); err != nil {
			return errors.Join(err, answers.Close())
		}
		defer out.Session.Close()
	}
	err = batch.WriteAll(ctx, groups, answers, out, func(g *batch.Group, w *batch.Written) {
		a.Facts().Captures += len(g.Collected)
		for _, f := range w.Files {
			fmt.Fprintln(a.Stdout(), filepath.Join(o.out, f.Path))
		}
	})
	return batchError(errors.Join(err, answers.Close()))
}
