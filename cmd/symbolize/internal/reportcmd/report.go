package reportcmd

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"symbolize/analyze/annotate"
	"symbolize/analyze/calltree"
	"symbolize/analyze/code"
	"symbolize/analyze/flame"
	"symbolize/analyze/report"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

// reportFunctions is how many functions are annotated; the page has as many as fit.
const reportFunctions = 100

type reportOptions struct {
	cli.InputOptions
	output    string
	count     bool
	demangle  string
	sourceDir []string

	mode report.Mode // demangle parsed
}

const reportLong = `report writes one HTML page about captures that loads nothing: what was recorded and where, the
share of samples with names, a flame graph, the code of the hottest functions, the cost of BPF
programs, a heat map, and the missing symbols with the commands that fix them.` + cli.CaptureStatus

// NewReport makes the command `report`.
func NewReport(a *cli.App) *cobra.Command {
	o := &reportOptions{}
	cmd := &cobra.Command{
		Use:     "report [CAPTURE…]",
		Short:   "Write one HTML page about captures",
		Long:    reportLong,
		GroupID: cli.GroupMain,
		Example: "  symbolize report -o report.html perf.data",
		RunE: a.RunE(func(ctx context.Context, args []string) (err error) {
			if o.mode, err = cli.ParseDemangle(o.demangle, "simple"); err != nil {
				return err
			}
			o.Keep = ingest.Keep{PID: true, Tags: ingest.AllLabels}
			if err := o.InputOptions.Validate(args); err != nil {
				return err
			}
			return runReport(ctx, a, o, args)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	cli.AddOutput(fs, &o.output)
	fs.Var((*cli.Dirs)(&o.sourceDir), "source-dir",
		"search `DIR` for source files; may be repeated")
	cli.AddCount(fs, &o.count)
	cli.AddDemangle(cmd, &o.demangle, "simple")
	o.AddNoCommand(fs, false)
	o.InputOptions.AddFlags(cmd)
	return cmd
}

func runReport(ctx context.Context, a *cli.App, o *reportOptions, paths []string) error {
	err := cmp.Or(a.RefuseTerminal(o.output, true,
		"; `symbolize top` prints text, as perf report does"), cli.RefuseOverwrite(paths, []string{o.output}))
	if err != nil {
		return err
	}
	return a.WithSession(ctx, &o.InputOptions, paths, func(s *cli.Session,
		captures []string) error {
		return o.write(ctx, s, captures)
	})
}

// write writes the page about captures: of a single one with its samples by time; the clocks of
// several may differ.
func (o *reportOptions) write(ctx context.Context, s *cli.Session, captures []string) error {
	finder := code.NewFinder(ctx, codeOptions(s, o.sourceDir))
	defer finder.Close()
	if len(captures) > 1 {
		p, err := loadCode(ctx, s, captures, finder)
		if err != nil {
			return err
		}
		return o.writePage(ctx, s, finder, p, nil)
	}
	return s.Each(ctx, captures, func(c *input.Capture, p *ingest.Profile) error {
		addCode(finder, c, p)
		p, err := nameCode(ctx, s, finder, p)
		if err != nil {
			return err
		}
		return o.writePage(ctx, s, finder, p, c)
	})
}

// writePage writes the page about a profile, and about the times of the samples of a capture.
func (o *reportOptions) writePage(ctx context.Context, s *cli.Session, finder *code.Finder,
	p *ingest.Profile, c *input.Capture) error {
	s.PrintWarnings(p)
	g, err := newReport(ctx, s, p, c, finder, reportPage{keep: o.Keep, count: o.count,
		demangler: report.NewDemangler(o.mode)})
	if err != nil {
		return err
	}
	noteNewer(s.App, finder)
	return s.App.WriteOutput(o.output, true, func(w io.Writer) error { return g.WriteHTML(w) })
}

// reportPage are the options of newReport.
type reportPage struct {
	keep      ingest.Keep
	count     bool
	demangler *report.Demangler
}

// newReport makes the page of a named profile: with code, if the finder is not nil, and with the
// times of the samples of its capture, if that is not nil.
func newReport(ctx context.Context, s *cli.Session, p *ingest.Profile, c *input.Capture,
	finder *code.Finder, o reportPage) (g *flame.Graph, err error) {
	event := s.Event(p)
	g = flame.New(p, flame.Options{Event: -1, Shown: event, Count: o.count,
		By:    calltree.TreeBy(event, p),
		Cover: pageCoverage(s, p, o.count), Keep: o.keep, Demangler: o.demangler})
	g.Kind, g.Tables = "Report", bpfTables(s)
	var line func(ingest.LocationID) uint32
	if finder != nil {
		code := annotate.New(p, finder, annotate.Options{Event: event, Count: o.count,
			Limit: reportFunctions, Demangler: o.demangler})
		if g.Code, err = annotate.NewParts(code); err != nil {
			return nil, err
		}
		line = code.Lines(p)
	}
	if c != nil {
		err = addRanges(ctx, c, g, line, true)
	}
	return g, err
}
