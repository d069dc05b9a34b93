// Package resolvecmd has the commands that name captures: `resolve`, `missing` for locations that
// are left, and perf_to_profile as pprof calls it.
package resolvecmd

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"symbolize/analyze/demangle"
	"symbolize/analyze/pgo"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

type resolveOptions struct {
	cli.InputOptions
	output      string
	format      string
	each        bool
	count       bool
	minResolved float64
	labels      []string
	allLabels   bool // of pprof files: --labels is not given
	demangle    string
	annotate    bool
	addresses   bool
	srcline     bool
	object      string
	gcov        uint32

	mode   demangle.Mode // demangle parsed
	chosen bool          // --format, -o or --each is given
}

const resolveLong = `resolve reads captures, joins their addresses with the store by build ID, and writes a profile with
names. A capture is a perf.data file, a pprof file with build IDs in its mappings, a bundle of
capture --stacks, or a dump of BPF stack maps: of bpftool, bpftrace, systing, memleak or Inspektor
Gadget. Several captures become one profile; --each writes one for each. The coverage is printed on
stderr.

The format is --format, else it follows from the name of the -o file (.pb.gz, .pgo, .folded, .json,
.txt for the layout of perf script, .otlp and .otlp.json for OpenTelemetry, .parquet for queries in
SQL, of compilers .llvmprof, .gcov, .preagg, .fdata, .afdo), else pprof. On a terminal, without -o
and --format, the heaviest functions are printed, as by top. Profiles of OpenTelemetry are copied to
such files with names added. Those for compilers have the counts of one program, by its build ID.

Exit status: 0 done, even if frames have no names; 1 failed; 2 usage; 3 a capture is damaged or
unreadable, the others were used; 4 fewer samples have names than --min-resolved; 130 interrupted.`

// NewResolve makes the command `resolve`.
func NewResolve(a *cli.App) *cobra.Command {
	o := &resolveOptions{}
	cmd := &cobra.Command{
		Use:     "resolve [CAPTURE…]",
		Short:   "Name the addresses of captures: as pprof, folded stacks and others",
		Long:    resolveLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize resolve -o x.pb.gz perf.data\n" +
			"  symbolize resolve --counts counts.json --btf prog.bpf.o stacks.json\n" +
			"  symbolize resolve --format folded perf.data\n" +
			"  symbolize resolve -o x.pb.gz perf.data capture.data\n" +
			"  symbolize resolve --with ./build --min-resolved 95 -o x.pb.gz perf.data",
	}
	cmd.RunE = a.RunE(func(ctx context.Context, args []string) error {
		o.allLabels = !cmd.Flags().Changed("labels") && !cmd.Flags().Changed("keep")
		if err := o.validate(args); err != nil {
			return err
		}
		return runResolve(ctx, a, o, args)
	})
	o.addFlags(cmd)
	return cmd
}

func (o *resolveOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	cli.AddOutput(fs, &o.output)
	cli.AddFileFormat(cmd, &o.format, resolveFormats...)
	fs.BoolVar(&o.each, "each", false,
		"write one file for each capture: next to it, or in the directory of -o")
	o.InputOptions.AddFlags(cmd)
	cli.AddCount(fs, &o.count)
	fs.Float64Var(&o.minResolved, "min-resolved", 0,
		"exit with 4 if less than `PCT` percent of the samples, by weight, have a named innermost frame")
	cli.AddLabels(fs, &o.labels)
	cli.AddDemangle(cmd, &o.demangle, "simple; script: templates, as perf; json: full")
	fs.BoolVar(&o.annotate, "annotate", false,
		"folded: mark kernel and BPF frames with _[k], JIT frames with _[j], inlined ones with _[i]")
	fs.BoolVar(&o.addresses, "addresses", false,
		"folded: print frames without names with their offsets, [libc.so.6+0x27220]")
	fs.BoolVar(&o.srcline, "srcline", false,
		"script: print the source file and line of each frame below it, as perf script -F +srcline")
	fs.StringVar(&o.object, "object", "",
		"of a format for compilers: the program or library, by `NAME`, path or build ID; preagg: or all\n"+
			"(default: the one with most branches or samples)")
	fs.Uint32Var(&o.gcov, "gcov-version", pgo.GCOV2, "gcov: version `N`: 2 for gcc 12 to 15, 3 for gcc 16")
	fs.BoolVar(&o.NoInlines, "no-inlines", false,
		"leave out inlined calls; lines are then those of the calls")
	o.AddNoCommand(fs, false)
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
}

func (o *resolveOptions) validate(args []string) (err error) {
	if err := o.InputOptions.Validate(args); err != nil {
		return err
	}
	o.chosen = o.format != "" || o.output != "" || o.each
	if err := cli.FormatByName(&o.format, o.output, o.each, resolveFormats...); err != nil {
		return err
	}
	if o.Payloads = o.format == cli.Script; o.Payloads {
		o.Chains = cli.ChainsRecorded // perf's addresses, one by one
	}
	o.Branches = formatBranches[o.format]
	if o.object != "" && o.Branches == input.NoBranches {
		return cli.Usagef("--object: of formats for compilers only: autofdo, preagg, fdata, llvm-profile, gcov")
	}
	if o.gcov != pgo.GCOV2 && (o.gcov != pgo.GCOV3 || o.format != cli.GCOV) {
		return cli.Usagef("--gcov-version %d: it is 2 or 3, of --format gcov only", o.gcov)
	}
	if o.srcline && o.format != cli.Script {
		return cli.Usagef("--srcline: of --format script only")
	}
	if o.minResolved < 0 || o.minResolved > 100 {
		return cli.Usagef("--min-resolved %v: it is a percentage", o.minResolved)
	}
	o.Unnamed = o.Branches != input.NoBranches && o.minResolved == 0
	if o.Keep, err = cli.ParseLabels(o.labels); err != nil {
		return err
	}
	if o.allLabels && (o.format == cli.Pprof || o.format == cli.JSON || o.format == cli.Parquet ||
		o.otlp()) {
		if err := o.Keep.Add(ingest.AllLabels); err != nil {
			return err
		}
	}
	o.mode, err = cli.ParseDemangle(o.demangle, formatDemangle[o.format])
	return err
}

// formatBranches is how the formats for compilers use branch stacks.
var formatBranches = map[string]input.BranchMode{
	cli.AutoFDO: input.BranchRuns, cli.Preagg: input.BranchTraces, cli.LLVM: input.BranchTraces,
	cli.GCOV: input.BranchTraces, cli.Fdata: input.BranchTraces,
}

// builds reports whether the profile of each build of an object goes into a file of its own, in the
// directory -o.
func (o *resolveOptions) builds() bool {
	if o.each || formatBranches[o.format] == input.NoBranches {
		return false
	}
	fi, err := os.Stat(o.output)
	return strings.HasSuffix(o.output, "/") || err == nil && fi.IsDir()
}

// otlp reports whether the format is one of OpenTelemetry.
func (o *resolveOptions) otlp() bool { return o.format == cli.OTLP || o.format == cli.OTLPJSON }

// binary reports whether the format is no text.
func (o *resolveOptions) binary() bool {
	return o.format == cli.Pprof || o.format == cli.OTLP || o.format == cli.Parquet || o.format == cli.GCOV
}

// formatDemangle is how much of a name each format shows by default: script as much as
// perf script, JSON all, since programs read it.
var formatDemangle = map[string]string{
	cli.Pprof: "simple", cli.Folded: "simple", cli.Script: "templates", cli.JSON: "full",
	cli.AutoFDO: "none", cli.Preagg: "none", cli.LLVM: "none", cli.Fdata: "none", cli.GCOV: "none",
	cli.OTLP: "simple", cli.OTLPJSON: "simple", cli.Parquet: "simple",
}

// resolveFormats are the formats of resolve.
var resolveFormats = []string{cli.Pprof, cli.Folded, cli.JSON, cli.Script, cli.AutoFDO, cli.Preagg,
	cli.Fdata, cli.LLVM, cli.GCOV, cli.OTLP, cli.OTLPJSON, cli.Parquet}

func runResolve(ctx context.Context, a *cli.App, o *resolveOptions, paths []string) error {
	named := paths
	paths = o.SplitBundles(ctx, paths)
	defer o.Opened.Close()
	outputs, err := o.outputs(paths)
	if err != nil {
		return err
	}
	screen := a.Env.StdoutTerminal && !o.chosen
	err = cmp.Or(
		a.RefuseTerminal(outputs[0], o.binary() && !screen, cli.FoldedHint),
		cli.RefuseOverwrite(named, outputs))
	if err != nil {
		return err
	}
	s, err := a.OpenSession(ctx, &o.InputOptions)
	if err != nil {
		return err
	}
	defer s.Close()
	r := &resolveRun{a: a, o: o, s: s, demangler: demangle.New(o.mode), screen: screen}
	return cmp.Or(r.run(ctx, paths, outputs), r.below)
}

// run writes the results in their format.
func (r *resolveRun) run(ctx context.Context, paths, outputs []string) error {
	switch {
	case r.o.format == cli.Script:
		return r.script(ctx, paths, outputs)
	case r.o.each:
		return r.each(ctx, paths, outputs)
	}
	return r.merged(ctx, paths, outputs[0])
}
