package reportcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/analyze/calltree"
	"symbolize/analyze/diff"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

type diffOptions struct {
	structure string // of --struct
	cli.InputOptions
	selectOptions
	cli.Result
	base  []string
	lines bool
	judgeOptions
	normalize bool
	compared  bool // --normalize is given, true or false
}

// judgeOptions are the flags of comparisons that judge rows.
type judgeOptions struct {
	rows      int
	sort      string
	minShare  float64
	alpha     float64
	failAbove float64
	judged    bool // --fail-above is given
}

// check checks the flags, of which judged is set.
func (o *judgeOptions) check() error {
	switch {
	case !(o.alpha > 0 && o.alpha < 1):
		return cli.Usagef("--alpha %v: expected a number between 0 and 1", o.alpha)
	case !(o.failAbove >= 0):
		return cli.Usagef("--fail-above %v: it is at least 0", o.failAbove)
	}
	return cli.CheckLimit(o.rows)
}

// bound is --fail-above as a share; nil if it is not given.
func (o *judgeOptions) bound() *float64 {
	if !o.judged {
		return nil
	}
	above := o.failAbove / 100
	return &above
}

const diffLong = `diff compares two captures or profiles function by function: what grew, what shrank, what is new
and what is gone. Values are compared as measured; --normalize scales each profile to the base's
total, so that shares compare. Functions of two builds match by name, with --lines also by a line's
distance from the first line of its function.

With several profiles on a side (--base FILE for each of the base, the others as arguments) diff
prints medians with their spread and tests each function: p is the probability of such a difference
by chance, corrected for the number of functions.

--struct compares the layouts of a structure in two files: offsets, sizes, holes and cache lines.
Captures behind them add the samples of accesses to its members.

--fail-above fails if a growth is significant or, with one profile on a side, larger than the noise
of counting samples. It fails as well if the total did. If the totals differ by more than 5 %, a note
has both readings: values as measured, which are judged, and shares, which --normalize judges.

Exit status: 0 done; 1 failed; 2 usage; 3 a capture is damaged or unreadable, the others were used;
5 a function grew by more than --fail-above; 130 interrupted.`

// NewDiff makes the command `diff`.
func NewDiff(a *cli.App) *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:     "diff BASE NEW | diff --base BASE… NEW… | diff --struct NAME BASE NEW [CAPTURE…]",
		Short:   "Compare profiles, with a test of significance",
		Long:    diffLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize diff before.data after.data\n" +
			"  symbolize diff --base b1.pb.gz --base b2.pb.gz n1.pb.gz n2.pb.gz\n" +
			"  symbolize diff --fail-above 10 --normalize yesterday.pb.gz today.pb.gz\n" +
			"  symbolize diff --struct task_struct vmlinux-6.1 vmlinux-6.12 perf.data",
	}
	cmd.RunE = a.RunE(func(ctx context.Context, args []string) error {
		o.judged = cmd.Flags().Changed("fail-above")
		o.compared = cmd.Flags().Changed("normalize")
		if err := o.validate(args); err != nil {
			return err
		}
		if o.structure != "" {
			return runDiffStruct(ctx, a, o, args[0], args[1], args[2:])
		}
		return runDiff(ctx, a, o, args)
	})
	o.addFlags(cmd)
	return cmd
}

func (o *diffOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&o.base, "base", nil,
		"compare with `FILE`; may be repeated; the arguments are the new side")
	fs.StringVar(&o.structure, "struct", "",
		"compare the layout of structure `NAME` in two files with BTF or debug information instead")
	fs.BoolVar(&o.lines, "lines", false, "compare line by line; the same as --by line")
	cli.AddLimit(fs, &o.rows, defaultTopRows, "print the `N` heaviest; 0 for all")
	o.sort = topSorts[0]
	cli.AddChoice(cmd, &o.sort, "sort", "sort, test and judge by `COLUMN`: flat or cum", topSorts...)
	addNormalizeFlag(fs, &o.normalize)
	fs.Float64Var(&o.minShare, "min-share", defaultMin,
		"leave out functions with less than `PCT` percent of the total on both sides")
	fs.Float64Var(&o.alpha, "alpha", defaultAlpha,
		"a difference with a corrected p below `P` is significant")
	fs.Float64Var(&o.failAbove, "fail-above", 0,
		"exit with 5 if a function grew by more than `PCT` percent and by more than chance explains")
	o.Result.AddFlags(cmd, cli.Text, cli.JSON, cli.Folded)
	o.selectOptions.addFlags(cmd)
	o.InputOptions.AddFlags(cmd)
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
}

// addNormalizeFlag adds the flag of all comparisons.
func addNormalizeFlag(fs *pflag.FlagSet, normalize *bool) {
	fs.BoolVar(normalize, "normalize", false,
		"scale each profile to the base's total: compare shares")
}

// defaultAlpha is the usual level of tests: of twenty comparisons without a change one has a
// false alarm.
const defaultAlpha = 0.05

func (o *diffOptions) validate(args []string) error {
	if two := len(args) == 2 || o.structure != "" && len(args) > 2; len(o.base) == 0 && !two || len(args) == 0 {
		return texts.WithHint(cli.Usagef("%s named: it takes two",
			table.Count(len(args), "capture is", "captures are")),
			"`symbolize diff BASE NEW`, or --base FILE for each base and then the new ones")
	}
	if o.structure != "" && len(o.base) > 0 {
		return cli.Usagef("--struct compares two files, which are the arguments")
	}
	if err := o.Result.Check(slices.Concat(o.base, args)); err != nil {
		return err
	}
	if o.Format == cli.Folded && o.judged {
		return cli.Usagef("--fail-above needs --format text or json")
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.lines {
		o.by = calltree.Line.String()
	}
	o.Keep.Access = o.structure != ""
	return cmp.Or(
		o.InputOptions.Validate(args),
		checkShare(o.minShare),
		o.selectOptions.parse(&o.Keep),
	)
}

func runDiff(ctx context.Context, a *cli.App, o *diffOptions, args []string) error {
	base, sides := o.base, args
	if len(base) == 0 {
		base, sides = args[:1], args[1:]
	}
	return withSides(ctx, a, &o.InputOptions, base, sides, func(s *cli.Session, before,
		after []diff.Input) error {
		if o.Format == cli.Folded {
			return writeFolded(a, s, o, before, after)
		}
		opts := o.options(o.treeCalls(s, profilesOf(after, before)...))
		f, err := diff.Fold(before, after, opts.Options)
		if err != nil {
			return err
		}
		warnModes(a, f)
		d := f.Diff(opts)
		if err := writeReport(a, d, &o.Result); err != nil {
			return err
		}
		if o.judged && !o.compared && d.TotalsDiffer() {
			opts.Normalize = true
			a.Note(d.Readings(f.Diff(opts)))
		}
		return judgeDiff(a, d, o.failAbove)
	})
}

// withSides names the profiles of both sides and calls body with them.
func withSides(ctx context.Context, a *cli.App, o *cli.InputOptions, base, sides []string,
	body func(s *cli.Session, before, after []diff.Input) error) error {
	return a.WithSession(ctx, o, slices.Concat(base, sides), func(s *cli.Session,
		captures []string) error {
		before, err := capturesOf(base, captures)
		if err != nil {
			return err
		}
		after, err := capturesOf(sides, captures)
		if err != nil {
			return err
		}
		baseInputs, err := loadSide(ctx, s, before)
		if err != nil {
			return err
		}
		inputs, err := loadSide(ctx, s, after)
		if err != nil {
			return err
		}
		return body(s, baseInputs, inputs)
	})
}

// capturesOf returns the captures of a side. The others are bundles without stacks, which serve
// both sides.
func capturesOf(side, captures []string) ([]string, error) {
	own := slices.DeleteFunc(slices.Clone(side), func(path string) bool {
		return !slices.Contains(captures, path)
	})
	if len(own) == 0 {
		return nil,
			texts.WithHint(cli.Usagef("%s has no samples to compare",
				side[0]),
				"name a capture for each side, and the bundle with --with %s", texts.ShellWord(side[0]))
	}
	return own, nil
}

// profilesOf returns the profiles of sides.
func profilesOf(sides ...[]diff.Input) (profiles []*ingest.Profile) {
	for _, in := range slices.Concat(sides...) {
		profiles = append(profiles, in.Profile)
	}
	return profiles
}

func (o *diffOptions) options(opts calltree.Options) diff.Options {
	return diff.Options{Options: opts, Normalize: o.normalize, Cum: o.sort == "cum",
		MinShare: o.minShare / 100, Limit: o.rows, Alpha: o.alpha, FailAbove: o.bound()}
}

// writeFolded writes the stacks of both sides.
func writeFolded(a *cli.App, s *cli.Session, o *diffOptions, before, after []diff.Input) error {
	f, err := diff.Fold(before, after, o.treeCalls(s, profilesOf(after, before)...))
	if err != nil {
		return err
	}
	warnFolded(a, f)
	return a.WriteOutput(o.Output, false, func(w io.Writer) error {
		return f.WriteFolded(w, o.normalize)
	})
}

// loadSide names the profiles of one side, each for itself. A capture that cannot be read is
// left out if there are others.
func loadSide(ctx context.Context, s *cli.Session, paths []string) ([]diff.Input, error) {
	var inputs []diff.Input
	err := s.LoadEach(ctx, paths, func(path string, p *ingest.Profile) error {
		inputs = append(inputs, diff.Input{Name: path, Profile: p})
		return nil
	})
	return inputs, err
}

// judgeDiff lists the functions that grew too much.
func judgeDiff(a *cli.App, d *diff.Diff, above float64) error {
	if text := d.NoiseText(); text != "" {
		a.Note(text)
	}
	if len(d.Failed) > 0 && d.Uneven() {
		a.Note("samples differ widely in value: name several profiles on each side (--base), " +
			"because one understates chance")
	}
	total := ""
	if d.TotalFailed != nil {
		total = "the total"
		a.Print("error", d.TotalText())
	}
	for i := range d.Failed {
		a.Print("error", d.FailedText(&d.Failed[i]))
	}
	return failGrown(above, total, len(d.Failed))
}

// failGrown is the exit status of functions that grew too much, which is one of its own. total is
// "the total" if that did, too.
func failGrown(above float64, total string, failed int) error {
	if failed == 0 && total == "" {
		return nil
	}
	return &cli.ExitError{Code: cli.Grown, Err: fmt.Errorf("more than --fail-above %v: %s", above,
		table.Join(", ", total, table.Some(failed, "function", "functions")))}
}
