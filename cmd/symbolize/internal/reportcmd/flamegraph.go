package reportcmd

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"symbolize/analyze/advice"
	"symbolize/analyze/calltree"
	"symbolize/analyze/diff"
	"symbolize/analyze/flame"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

type flamegraphOptions struct {
	cli.InputOptions
	selectOptions
	output   string
	format   string
	reverse  bool
	minShare float64
	labels   []string

	base      []string
	normalize bool
	// labelsGiven is set where --labels is on the command line.
	labelsGiven bool
}

const flamegraphLong = `flamegraph draws a flame graph: the width of a frame is the weight of its samples, callees
included. The result is one HTML file that loads nothing: with zoom, search, callers and callees of
a function, a table of functions, the list of missing symbols, and the samples of one perf.data by
time: a range dragged there selects graph and table, and compares with another one. svg is a still picture; folded,
speedscope and gecko (Firefox Profiler) are files for other viewers. The format is --format, else it
follows from the name of the -o file, else html.

--base FILE draws a differential flame graph: widths show the new side, red frames grew, blue
frames shrank, and the page lists the calls that only the base has.` + cli.CaptureStatus

// flamegraphFormats are the formats of flamegraph.
var flamegraphFormats = []string{cli.HTML, cli.SVG, cli.Folded, cli.Speedscope, cli.Gecko}

// NewFlamegraph makes the command `flamegraph`.
func NewFlamegraph(a *cli.App) *cobra.Command {
	o := &flamegraphOptions{}
	cmd := &cobra.Command{
		Use:     "flamegraph [CAPTURE|PROFILE…]",
		Short:   "Draw a flame graph: an HTML page, or a file for another viewer",
		Long:    flamegraphLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize flamegraph -o x.html perf.data\n" +
			"  symbolize flamegraph --focus malloc -o x.svg x.pb.gz\n" +
			"  symbolize flamegraph --base before.data -o diff.html after.data",
	}
	cmd.RunE = a.RunE(func(ctx context.Context, args []string) error {
		o.labelsGiven = cmd.Flags().Changed("labels")
		if err := o.validate(args); err != nil {
			return err
		}
		if len(o.base) > 0 {
			return runDifferential(ctx, a, o, args)
		}
		return runFlamegraph(ctx, a, o, args)
	})
	o.addFlags(cmd)
	return cmd
}

func (o *flamegraphOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	cli.AddOutput(fs, &o.output)
	cli.AddFileFormat(cmd, &o.format, flamegraphFormats...)
	fs.StringArrayVar(&o.base, "base", nil,
		"draw the difference from `FILE`; may be repeated; the arguments are the new side")
	addNormalizeFlag(fs, &o.normalize)
	fs.BoolVar(&o.reverse, "reverse", false, "draw from the sampled functions to their callers")
	fs.Float64Var(&o.minShare, "min-share", 0,
		"leave out frames with less than `PCT` percent of each event")
	fs.StringSliceVar(&o.labels, "labels", []string{"pid", ingest.AllLabels},
		"`LABELS` that the page can choose by, those of resolve: label is all that a pprof file has, as far "+
			"as fit; the comm always is one")
	o.AddNoCommand(fs, false)
	o.selectOptions.addFlags(cmd)
	o.InputOptions.AddFlags(cmd)
	cli.AddNames(cmd, &o.Names, "`symbols` (default) or dwarf")
}

func (o *flamegraphOptions) validate(args []string) (err error) {
	if o.Keep, err = cli.ParseLabels(o.labels); err != nil {
		return err
	}
	return cmp.Or(
		o.InputOptions.Validate(args),
		cli.FormatByName(&o.format, o.output, false, flamegraphFormats...),
		o.validateSides(),
		checkShare(o.minShare),
		o.selectOptions.parse(&o.Keep),
	)
}

// validateSides checks the flags of a comparison.
func (o *flamegraphOptions) validateSides() error {
	page, svg := cli.HTML, cli.SVG
	switch {
	case len(o.base) == 0 && o.normalize:
		return cli.Usagef("--normalize needs --base")
	case len(o.base) == 0:
		return nil
	case o.labelsGiven:
		return cli.Usagef("--labels and --base are not for one graph")
	case o.format == cli.Folded:
		return texts.WithHint(cli.Usagef("--base: no folded stacks of two sides"),
			"`symbolize diff --format folded` writes them")
	case o.format != page && o.format != svg:
		return cli.Usagef("--base: --format %s has no place for two sides, only %s and %s have",
			o.format,
			page, svg)
	}
	return nil
}

func runFlamegraph(ctx context.Context, a *cli.App, o *flamegraphOptions, paths []string) error {
	if err := o.checkOutput(a, paths); err != nil {
		return err
	}
	o.noteWhole(a)
	return a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session, captures []string) error {
		why := o.untimed(captures)
		switch {
		case o.isPage():
			return writePage(ctx, s, captures, o.output, pageOptions{untimed: why != "",
				graph: func(p *ingest.Profile) *flame.Graph { return o.graph(a, s, p) }})
		case o.format == cli.Gecko && why == "":
			return runGecko(ctx, a, o, s, captures)
		case o.format == cli.Gecko:
			a.Note("times of samples are not those of the recording: " + why)
		}
		p, err := s.Load(ctx, captures)
		if err != nil {
			return err
		}
		s.PrintAdvice(p)
		s.PrintWarnings(p)
		if o.format == cli.Folded {
			return o.writeFolded(a, s, p)
		}
		g := o.graph(a, s, p)
		if o.format == cli.SVG {
			a.PrintOtherEvents(p, o.calls(s, p).Event)
		}
		return o.write(a, g)
	})
}

// noteWhole names the flags that only change the page and the picture.
func (o *flamegraphOptions) noteWhole(a *cli.App) {
	if o.isPage() || o.format == "svg" {
		return
	}
	if o.reverse {
		a.Note("--reverse: --format " + o.format + " has stacks from the root on")
	}
	if o.minShare > 0 {
		a.Note("--min-share: --format " + o.format + " has all frames")
	}
}

// graph makes the graph of a profile.
func (o *flamegraphOptions) graph(a *cli.App, s *cli.Session, p *ingest.Profile) *flame.Graph {
	opts := o.treeCalls(s, p)
	if o.format == cli.Gecko { // which has the comm besides
		opts.By = o.parsed.By
	}
	if opts.Latency {
		p = p.Latency()
	}
	g := flame.New(p, flame.Options{Event: -1, Shown: opts.Event, Count: opts.Count,
		Cover: pageCoverage(s, p, opts.Count), Keep: o.Keep, By: opts.By, Filter: opts.Filter, Demangler: opts.Demangler,
		MinShare: o.minShare / 100, Reverse: o.reverse})
	warnUnmatched(a, g.Unmatched())
	return g
}

// pageCoverage is the coverage in a page, without the list of objects, which the page has itself.
func pageCoverage(s *cli.Session, p *ingest.Profile, count bool) *advice.Coverage {
	c := s.Coverage(p, count)
	c.Objects = nil
	return c
}

// isPage reports whether the output is a page, which is too long for a terminal.
func (o *flamegraphOptions) isPage() bool { return o.format == flamegraphFormats[0] }

func (o *flamegraphOptions) checkOutput(a *cli.App, paths []string) error {
	return cmp.Or(a.RefuseTerminal(o.output, o.isPage(), cli.FoldedHint),
		cli.RefuseOverwrite(paths, []string{o.output}))
}

// write writes the graph in its format.
func (o *flamegraphOptions) write(a *cli.App, g *flame.Graph) error {
	return a.WriteOutput(o.output, o.isPage(), func(w io.Writer) error { return flamegraphWriters[o.format](g, w) })
}

// writeFolded writes the stacks of a profile below their comms.
func (o *flamegraphOptions) writeFolded(a *cli.App, s *cli.Session, p *ingest.Profile) error {
	opts := o.calls(s, p)
	if len(opts.By) == 0 {
		opts.By = []calltree.By{calltree.Function}
	}
	opts.By = slices.Concat([]calltree.By{calltree.Comm}, opts.By)
	stacks := calltree.Fold(p, &opts)
	warnUnmatched(a, stacks.Unmatched)
	a.PrintOtherEvents(p, opts.Event)
	return a.WriteOutput(o.output, false, func(w io.Writer) error {
		return stacks.WriteFolded(w, calltree.FoldedOptions{Comm: true})
	})
}

// runDifferential draws the difference between --base and the new side.
func runDifferential(ctx context.Context, a *cli.App, o *flamegraphOptions, paths []string) error {
	if err := o.checkOutput(a, slices.Concat(o.base, paths)); err != nil {
		return err
	}
	return withSides(ctx, a, &o.InputOptions, o.base, paths, func(s *cli.Session, before,
		after []diff.Input) error {
		opts := o.treeCalls(s, profilesOf(after, before)...)
		both, err := diff.Fold(before, after, opts)
		if err != nil {
			return err
		}
		warnFolded(a, both)
		a.PrintOtherEvents(after[0].Profile, opts.Event)
		c := flame.Comparison{New: both.New, Base: both.Base, Normalize: o.normalize,
			Reverse: o.reverse, MinShare: o.minShare / 100,
			Cover:     pageCoverage(s, after[0].Profile, opts.Count),
			BaseCover: pageCoverage(s, before[0].Profile, opts.Count)}
		c.Tests = o.tests(both, opts)
		base, sides := both.Sides()
		c.Title = sides.Title() + " against " + base.Title()
		unit := both.New[0].Unit
		c.About = slices.Concat(factsOf("base", base.Lines(unit)),
			factsOf("new", sides.Lines(unit)), factsOf("filter", opts.Filter.Active()))
		return o.write(a, flame.NewDifferential(c))
	})
}

// tests tests functions as diff does by default: by samples in them, and by the total.
func (o *flamegraphOptions) tests(f *diff.Folded, opts calltree.Options) *flame.Tests {
	var t *flame.Tests
	for _, cum := range []bool{false, true} {
		d := f.Diff(diff.Options{Options: opts, Normalize: o.normalize, Cum: cum,
			Alpha: defaultAlpha, MinShare: defaultMin / 100})
		if !d.Tested {
			return nil
		}
		list := make(map[calltree.NodeID]flame.Test, len(d.Rows))
		for i := range d.Rows {
			r := &d.Rows[i]
			v := r.Value()
			list[r.Node()] = flame.Test{Base: v.Base, New: v.New, BaseSpread: v.BaseSpread,
				NewSpread: v.NewSpread, P: *r.P}
		}
		if cum {
			t.Cum = list
		} else {
			t = &flame.Tests{Base: len(f.Base), New: len(f.New), Total: d.Total, Alpha: d.Alpha,
				Flat: list}
		}
	}
	return t
}

func factsOf(name string, list []string) (facts []flame.Fact) {
	for _, text := range list {
		facts = append(facts, flame.Fact{Name: name, Text: texts.Printable(text)})
	}
	return facts
}

// flamegraphWriters are by format; folded stacks are not made of a graph.
var flamegraphWriters = map[string]func(*flame.Graph, io.Writer) error{
	cli.HTML: (*flame.Graph).WriteHTML, cli.SVG: (*flame.Graph).WriteSVG,
	cli.Speedscope: (*flame.Graph).WriteSpeedscope, cli.Gecko: (*flame.Graph).WriteGecko}
