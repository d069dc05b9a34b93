// Package batchcmd has the commands of `batch`: flags and words over analyze/batch.
package batchcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/analyze"
	"symbolize/analyze/advice"
	"symbolize/analyze/batch"
	"symbolize/analyze/demangle"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/process"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
)

const batchLong = `batch makes the profiles of many captures, grouped by service, host, day or any other key of the
captures, their paths or a manifest. Each symbol table of the store is opened once for all captures.

batch run does all of it on this machine. Engines with many machines run its three steps as tasks:
batch collect reads captures, batch name names one part of their locations, batch merge writes the
profiles. Each step can be killed and run again. batch status shows what is done.`

// New makes the command `batch` with its subcommands.
func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "batch",
		Short:   "Make the profiles of many captures, by service, host or day",
		Long:    batchLong,
		GroupID: cli.GroupMain,
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.NeedSubcommand,
	}
	cmd.AddCommand(newBatchRunCommand(a), newBatchCollectCommand(a), newBatchNameCommand(a),
		newBatchMergeCommand(a), newBatchPlanCommand(a), newBatchStatusCommand(a), newBatchPruneCommand(a))
	return cmd
}

// batchInputs are the flags of commands that read captures or files of a batch.
type batchInputs struct {
	filesFrom string
	shard     string
}

func (o *batchInputs) addFlags(fs *pflag.FlagSet, whatFor string) {
	o.addFilesFrom(fs)
	fs.StringVar(&o.shard, "shard", "",
		"do only share `I/N` "+whatFor+"; /N takes I, and / both, from the task of an engine's array")
}

func (o *batchInputs) addFilesFrom(fs *pflag.FlagSet) {
	fs.StringVar(&o.filesFrom, "files-from", "",
		"read more paths from `FILE`, one per line; - is standard input")
}

// paths returns the share of --shard of the files that the arguments and the lines of --files-from
// name, also below directories, and all of these files.
func (o *batchInputs) paths(a *cli.App, args []string) (own, all []string, err error) {
	if o.filesFrom != "" {
		in, err := a.OpenInput(o.filesFrom)
		if err != nil {
			return nil, nil, err
		}
		defer in.Close()
		more, err := batch.ReadList(in)
		if err != nil {
			return nil, nil, err
		}
		args = slices.Concat(args, more)
	}
	if len(args) == 0 && o.filesFrom == "" {
		return nil, nil, texts.WithHint(cli.Usagef("no capture is named"),
			"name files or directories, or a list of them with --files-from")
	}
	if all, err = batch.Captures(args); err != nil {
		return nil, nil, err
	}
	all = batch.WithRecordings(all)
	share, err := o.share(a)
	return batch.Of(share, all), all, err
}

// captures is like paths. No capture is an error: a night of none is a directory that is not
// mounted, or not filled yet.
func (o *batchInputs) captures(a *cli.App, args []string) (own, all []string, err error) {
	own, all, err = o.paths(a, args)
	if err == nil && len(all) == 0 {
		err = errors.New("there is no capture")
		if len(args) > 0 {
			err = fmt.Errorf("%s: no capture is in it", texts.Printable(args[0]))
		}
	}
	return own, all, err
}

// share reads --shard: "I/N", "/N" with the index of the engine's task, or "/" with its count,
// too.
func (o *batchInputs) share(a *cli.App) (batch.Shard, error) {
	if o.shard == "" {
		return batch.Shard{}, nil
	}
	text := o.shard
	if strings.HasPrefix(text, "/") {
		i, n, ok := batch.TaskIndex(a.Env.Getenv)
		if !ok {
			return batch.Shard{}, cli.Usagef("--shard %s: this is not a task of an array", o.shard)
		}
		if text == "/" && n > 0 {
			text = fmt.Sprintf("/%d", n)
		}
		text = fmt.Sprintf("%d%s", i, text)
	}
	share, err := batch.ParseShard(text)
	if err != nil {
		return share, cli.Usagef("--shard %s: %v", o.shard, err)
	}
	return share, nil
}

// batchGroups are the flags that select the captures of one profile.
type batchGroups struct {
	by       []string
	pattern  string
	manifest string
	formats  []string
	words    []string // that formats may have
	demangle string
}

func (o *batchGroups) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&o.by, "by", nil,
		"one profile for the captures with equal `KEYS`: host, day, main (the main program's build ID), "+
			"those of --path and --manifest; or for the samples with equal comm or other label (default: "+
			"one for all)")
	fs.StringVar(&o.pattern, "path", "",
		"take keys from the captures' paths: `PATTERN`, as {service}/{host}/{day}.data")
	fs.StringVar(&o.manifest, "manifest", "",
		"take keys from `FILE`: a table with tabs, a line of names, the first path")
	fs.StringSliceVar(&o.formats, "format", []string{cli.Pprof}, "`FORMATS` of the profiles: "+strings.Join(o.words, ", "))
	cli.Complete(cmd, "format", o.words)
	cli.AddDemangle(cmd, &o.demangle, "simple")
}

var batchFormats = []string{cli.Pprof, cli.Folded, cli.Parquet}

// compilerFormats are the formats for compilers: they count branches, if captures have them, and have a
// file for each build.
var compilerFormats = []string{cli.Preagg, cli.Fdata, cli.LLVM, cli.GCOV}

// grouping checks the flags and reads the manifest.
func (o *batchGroups) grouping() (g batch.Grouping, extensions []string, err error) {
	g = batch.Grouping{Keys: o.by, Pattern: o.pattern}
	for _, f := range o.formats {
		if err := cli.CheckWord("--format", f, o.words); err != nil {
			return g, nil, err
		}
		extensions = append(extensions, cli.Extensions[f])
	}
	if o.manifest != "" {
		if g.Manifest, err = batch.ReadManifest(o.manifest); err != nil {
			return g, nil, err
		}
	}
	return g, extensions, nil
}

// demangler returns the function that makes the demanglers of groups.
func (o *batchGroups) demangler() (func() *demangle.Demangler, error) {
	mode, err := cli.ParseDemangle(o.demangle, "simple")
	return func() *demangle.Demangler { return demangle.New(mode) }, err
}

// defaultParts is into how many parts the locations of a batch are cut: those of one are in memory at
// a time.
const defaultParts = 8

// batchCaptures are the flags of commands that read captures, see batch.Collector.
type batchCaptures struct {
	batchInputs
	cli.InputOptions
	parts  int
	labels []string
}

func (o *batchCaptures) addFlags(fs *pflag.FlagSet) {
	o.parts = defaultParts
	o.batchInputs.addFlags(fs, "of the captures")
	cli.AddLabels(fs, &o.labels)
	cli.AddGroup(fs, cli.GroupSymbols, o.AddPods)
	addBatchSessionFlags(fs, &o.InputOptions)
}

// session checks the flags and returns the options of each capture's session.
func (o *batchCaptures) session(a *cli.App) (opts analyze.Options, err error) {
	if o.Keep, err = cli.ParseLabels(o.labels); err != nil {
		return opts, err
	}
	if err := cmp.Or(cli.CheckJobs(o.Jobs), o.Pods.Read()); err != nil {
		return opts, err
	}
	if o.parts < 1 {
		return opts, cli.Usagef("--parts %d: it is at least 1", o.parts)
	}
	return batchSession(a, &o.InputOptions)
}

// warnPods warns of a file of --pods without the pods of the captures that were read.
func (o *batchCaptures) warnPods(a *cli.App, read int) {
	if text := o.Pods.Unused(); text != "" && read > 0 {
		a.Warn(text, "")
	}
}

// config is a text of the options that change the reading of a capture.
func (o *batchCaptures) config() string {
	text := fmt.Sprintf("%v %q %v %v", o.Keep, o.Event, o.TrustPaths, o.NoCommand) + o.Pods.Digest()
	if o.Branches != input.NoBranches {
		text += " branches"
	}
	return text
}

type batchRunOptions struct {
	batchCaptures
	batchGroups
	out string
}

func newBatchRunCommand(a *cli.App) *cobra.Command {
	o := &batchRunOptions{}
	cmd := &cobra.Command{
		Use:   "run -o DIR CAPTURE|DIR…",
		Short: "Collect, name and merge on this machine",
		Long: `run reads captures, and all captures below directories, and writes a profile for each group:
DIR/SERVICE/HOST.pb.gz with --by service,host. DIR/.batch keeps what was done, so that another run
continues, and reads only new captures. A bundle completes the captures in its directory. Unreadable
captures are listed and left out. Formats for compilers have a file a build: DIR/HOST/APP-ID.preagg.`,
		Example: "  symbolize batch run -o profiles captures\n" +
			"  symbolize batch run --by service,day --path '{service}/{host}/{day}.data' \\\n" +
			"      -o profiles captures",
		RunE: a.RunE(func(ctx context.Context, args []string) error {
			return runBatch(ctx, a, o,
				args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.out, "output", "o", "", "write the profiles to `DIR`")
	o.words = slices.Concat(batchFormats, compilerFormats)
	o.batchGroups.addFlags(cmd)
	o.batchCaptures.addFlags(fs)
	o.AddChains(fs, "recorded (default), proven")
	return cmd
}

// chainsOf are the options of --chains and --gaps.
func chainsOf(o *cli.InputOptions) (batch.Chains, error) {
	if o.Chains == cli.ChainsLikely {
		return batch.Chains{}, cli.Usagef("--chains likely: batch has recorded and proven")
	}
	proven := o.Chains == cli.ChainsProven
	return batch.Chains{Proven: proven, Gaps: proven && o.Gaps}, o.CheckChains()
}

// addBatchSessionFlags adds the flags of InputOptions that are of use for many captures.
func addBatchSessionFlags(fs *pflag.FlagSet, o *cli.InputOptions) {
	fs.StringVar(&o.Event, "event", "", "only samples of this `EVENT`")
	fs.BoolVar(&o.TrustPaths, "trust-paths", false,
		"where a capture has no build ID, take the file now at the path for the one that ran")
	o.AddNoCommand(fs, true)
	o.Remote.AddFlag(fs)
	cli.AddWork(fs, &o.Jobs, &o.MaxMemory)
}

func runBatch(ctx context.Context, a *cli.App, o *batchRunOptions, args []string) error {
	if o.out == "" {
		return texts.WithHint(cli.Usagef("no directory is named"), "name one with -o DIR")
	}
	opts, err := o.options(a)
	if err != nil {
		return err
	}
	captures, _, err := o.captures(a, args)
	if err != nil {
		return err
	}
	process.LimitMemory(int64(o.MaxMemory))
	process.SetGC(a.Env.Getenv, process.FoldGC)
	progress := a.StartSteps()
	opts.Step, opts.Done = progress.Step, progress.One
	sum, err := batch.Run(ctx, captures, opts)
	progress.Stop()
	if err != nil && !errors.Is(err, batch.ErrOutput) {
		return batchError(err)
	}
	warnCaptures(a, sum.Lacking, sum.Equal)
	o.warnPods(a, sum.Read)
	if err != nil {
		reportBatch(a, sum)
		return batchError(err)
	}
	if sum.Captures == sum.Failed && sum.Captures > 0 {
		return texts.WithHint(errors.New("no capture could be read"), "each has its reason above")
	}
	reportBatch(a, sum)
	if sum.Samples == 0 {
		return texts.WithHint(errors.New("no capture has a sample: the profiles are empty"),
			"`symbolize info FILE` counts the records of a capture")
	}
	return nil
}

// options are the options of the run.
func (o *batchRunOptions) options(a *cli.App) (opts batch.RunOptions, err error) {
	if opts.By, opts.Formats, err = o.grouping(); err != nil {
		return opts, err
	}
	if o.Branches, err = batch.CheckFormats(opts.Formats); err != nil {
		return opts, cli.Usagef("--format: %v", err)
	}
	if opts.Demangler, err = o.demangler(); err != nil {
		return opts, err
	}
	if opts.Session, err = o.session(a); err != nil {
		return opts, err
	}
	if opts.Chains, err = chainsOf(&o.InputOptions); err != nil {
		return opts, err
	}
	if err := opts.By.Labels(&opts.Session.Keep); err != nil {
		return opts, batchError(err)
	}
	o.Keep = opts.Session.Keep
	opts.Out, opts.Parts, opts.Workers = o.out, o.parts, o.Jobs
	opts.Config, opts.Style = o.config(), o.demangle
	opts.Hooks = batchHooks(a, false)
	return opts, nil
}

// addLenient adds the flag for tasks of an engine that treats every status but 0 as a failure.
func addLenient(fs *pflag.FlagSet, lenient *bool) {
	fs.BoolVar(lenient, "lenient", false,
		"exit with 0, not 3, where captures cannot be read or are damaged: for tasks that others wait for")
}

// batchHooks print the events of a run. Captures that cannot be read make the result partial,
// unless it is lenient.
func batchHooks(a *cli.App, lenient bool) *batch.Hooks {
	return &batch.Hooks{
		OnFailed: func(capture string, err error) {
			if !strings.Contains(err.Error(), capture) {
				err = fmt.Errorf("%s: %w", capture, err)
			}
			a.Partial = a.Partial || !lenient
			a.FailInput(capture, err)
		},
		OnUnwritten: func(err error) { a.PrintError(err) },
		OnWarn: func(capture string, w ingest.Warning) {
			a.Partial = a.Partial || w.Partial && !lenient
			if !w.Partial {
				a.WarnAlike(capture, w.Text, w.Hint)
				return
			}
			if !strings.Contains(w.Text, capture) {
				w.Text = capture + ": " + w.Text
			}
			a.Warn(w.Text, w.Hint)
		},
		Facts: func(p *ingest.Profile) []byte {
			var b bytes.Buffer
			c := advice.NewCoverage(p, advice.CoverageOptions{})
			if err := texts.NewJSONEncoder(&b).Encode(c); err != nil {
				panic(err) // no value in it fails
			}
			return b.Bytes()
		},
		OnFacts: func(facts []byte) {
			var c advice.Coverage
			if json.Unmarshal(facts, &c) == nil {
				a.Facts().Add(&c)
			}
		},
	}
}

// batchSession are the options of a session for one of many captures. Files of this host are not
// searched: results must not depend on the machine that runs the batch.
func batchSession(a *cli.App, o *cli.InputOptions) (opts analyze.Options, err error) {
	opts = a.SessionOptions(o)
	opts.Local = nil
	opts.Warn = func(w analyze.Warning) {
		a.Partial = a.Partial || w.Partial
		a.SessionWarning(w)
	}
	if opts.Remote, err = a.OpenRemote(&o.Remote); err != nil {
		return opts, err
	}
	opts.Store, err = a.StorePath()
	return opts, err
}

// openBatchSession opens the session of a step that reads no captures.
func openBatchSession(ctx context.Context, a *cli.App, o *cli.InputOptions) (*analyze.Session, error) {
	opts, err := batchSession(a, o)
	if err != nil {
		return nil, err
	}
	s, err := analyze.Open(ctx, opts)
	return s, cli.SessionError(err)
}

// batchError adds hints in the words of the command line.
func batchError(err error) error {
	if errors.Is(err, batch.ErrGrouping) {
		return texts.WithHint(cli.Usagef("%v", err),
			"--by names keys; host, day and main need no --path or --manifest")
	}
	if errors.Is(err, batch.ErrOutput) {
		return texts.WithHint(err, "run it again when that is possible: what was done is not done again")
	}
	return cli.SessionError(err)
}

// warnCaptures reports captures without a value for a key, and captures given twice.
func warnCaptures(a *cli.App, lacking []string, equal [][2]string) {
	for _, paths := range equal {
		a.Warn(fmt.Sprintf("%s has the content of %s: it counts once", texts.Printable(paths[0]),
			texts.Printable(paths[1])), "")
	}
	for _, text := range lacking {
		a.Warn("no value of the key for "+text,
			"it counts as unknown; --path and --manifest give values")
	}
}

// reportBatch prints the results of a run, and enters them into the summary.
func reportBatch(a *cli.App, sum *batch.Summary) {
	run := a.Facts()
	run.Captures, run.Failed, run.Tables, run.Batch = sum.Captures, sum.Failed, sum.Tables, sum
	if run.Samples > 0 && run.NamedSamples == 0 {
		a.Warn(fmt.Sprintf("none of %d samples has a name", run.Samples),
			"`symbolize missing CAPTURE` lists the files that are to be indexed")
	}
	if a.Silent() {
		return
	}
	damaged := ""
	if sum.Damaged > 0 {
		damaged = fmt.Sprintf(" %d damaged,", sum.Damaged)
	}
	fmt.Fprintf(a.Env.Stderr, "captures   %d, %d failed,%s %d collected before; %d samples\n",
		sum.Captures, sum.Failed, damaged, sum.Kept, sum.Samples)
	fmt.Fprintf(a.Env.Stderr, "locations  %d in %d objects; %d tables opened\n",
		sum.Locations, sum.Objects, sum.Tables)
	if sum.Remote.Asked > 0 {
		fmt.Fprintf(a.Env.Stderr, "remote     %s\n", cli.PulledText(&sum.Remote))
	}
	fmt.Fprintf(a.Env.Stderr, "profiles   %d, %d written before\n", sum.Groups, sum.GroupsKept)
}
