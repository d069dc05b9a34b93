package reportcmd

import (
	"cmp"
	"context"
	"errors"

	"symbolize/analyze/annotate"
	"symbolize/analyze/calltree"
	"symbolize/analyze/code"
	"symbolize/analyze/demangle"
	"symbolize/analyze/flame"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

// codeFunctions is how many functions are annotated; the page has as many as fit.
const codeFunctions = 100

// pageOptions say in what the page of a command differs.
type pageOptions struct {
	// graph makes the graph of the named profile; nil is all of it, by programs and functions.
	graph     func(*ingest.Profile) *flame.Graph
	keep      ingest.Keep
	count     bool
	demangler *demangle.Demangler
	code      bool // whether the page has the code of captures without names of their own
	sourceDir []string
	view      string // flame.Graph.View, which needs times
	rows      string // of the timeline: a word of timelineRows
	of        string // has rows of times or values of samples in place of these: heatmap's --of
	untimed   bool   // the samples of the graph have no times
}

// writePage writes the page of the captures. Of a capture without samples, which is an error, there is
// a page of its BPF programs.
func writePage(ctx context.Context, s *cli.Session, captures []string, output string, o pageOptions) error {
	g, err := makePage(ctx, s, captures, o)
	if g == nil {
		return err
	}
	return cmp.Or(s.App.WriteOutput(output, true, g.WriteHTML), err)
}

// makePage reads and names the captures and makes their page: of a single one with its samples by
// time; the clocks of several may differ.
func makePage(ctx context.Context, s *cli.Session, captures []string, o pageOptions) (
	g *flame.Graph, err error) {
	if len(captures) > 1 && !o.code {
		p, err := s.Load(ctx, captures)
		if err != nil {
			return nil, err
		}
		return o.page(ctx, s, p, nil, nil)
	}
	var finder *code.Finder
	if o.code {
		finder = code.NewFinder(ctx, codeOptions(s, o.sourceDir))
		defer finder.Close()
	}
	var profiles []*ingest.Profile
	var single *input.Capture
	withCode := false
	page := func() error {
		p, err := s.Name(ctx, profiles...)
		if err != nil {
			return err
		}
		if !withCode {
			finder = nil
		} else {
			finder.Machine = p.Meta.Arch
		}
		g, err = o.page(ctx, s, p, single, finder)
		return err
	}
	err = s.Each(ctx, captures, func(c *input.Capture, p *ingest.Profile) error {
		if o.code && p.Names == nil {
			addCode(finder, c, p)
			withCode = true
		}
		profiles = append(profiles, p)
		if len(captures) > 1 {
			return nil
		}
		single = c
		return page()
	})
	if err == nil && len(captures) > 1 {
		err = page()
	}
	return g, err
}

// page makes the page of a named profile: with code, if the finder is not nil, and with the times of
// the samples of its capture, if that is not nil.
func (o *pageOptions) page(ctx context.Context, s *cli.Session, p *ingest.Profile, c *input.Capture,
	finder *code.Finder) (g *flame.Graph, err error) {
	s.PrintAdvice(p)
	s.PrintWarnings(p)
	event := s.Event(p)
	if o.graph != nil {
		g = o.graph(p)
	} else {
		g = flame.New(p, flame.Options{Event: -1, Shown: event, Count: o.count,
			By:    calltree.TreeBy(event, p),
			Cover: pageCoverage(s, p, o.count), Keep: o.keep, Demangler: o.demangler})
	}
	g.Tables, g.View = bpfTables(s), o.view
	var line func(ingest.LocationID) uint32
	if finder != nil {
		code := annotate.New(p, finder, annotate.Options{Event: event, Count: o.count,
			Limit: codeFunctions, Demangler: o.demangler})
		if g.Code, err = annotate.NewParts(code); err != nil {
			return nil, err
		}
		line = code.Lines(p)
		noteNewer(s.App, finder)
	}
	if c != nil && !o.untimed {
		if err := o.addTimes(ctx, s, c, p, g, line); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// addTimes gives a page the samples of its capture in order of time. Of a capture with too many
// samples it has only the counts of an event, if it has code or is a view of times, and of one
// without single samples nothing, which is an error in a view of times.
func (o *pageOptions) addTimes(ctx context.Context, s *cli.Session, c *input.Capture, p *ingest.Profile,
	g *flame.Graph, line func(ingest.LocationID) uint32) error {
	event := s.Event(p)
	var times *flame.Times
	if !g.ManySamples() {
		times = g.SetRanges(line)
	} else if !o.code && o.view == "" {
		return nil
	}
	heat, rows := flame.NewHeatOffsets(), flame.NewHeatRows(flame.PageColumns)
	var waits *latencies
	if o.of != "" {
		waits = newLatencies(p, max(event, 0), o.of)
	}
	err := c.Replay(ctx, func(s *input.ReplaySample) error {
		if int(s.Event) == event {
			heat.Add(s.Time, "")
			switch {
			case waits != nil:
				waits.add(s)
			case o.view == flame.Timeline:
				rows.Add(s.Time, rowOf(o.rows, s))
			}
		}
		if times == nil {
			return nil
		}
		err := times.Add(s)
		if errors.Is(err, flame.ErrManyLabels) {
			g.DropTimes()
			times, err = nil, nil
		}
		return err
	})
	if errors.Is(err, input.ErrNoReplay) && o.view == "" {
		g.DropTimes()
		return nil // a file of sums: its page has no times
	}
	g.Heat = heat.Grid()
	g.Heat.SetLives(livesOf(c, s.View()))
	switch {
	case waits != nil:
		waits.finish(s.App, c, p)
		waits.show(g)
	case o.view == flame.Timeline && (o.rows != timelineRows[0] || times == nil):
		g.Rows, g.RowsBy = rows.Grid(), o.rows+", heaviest first"
	}
	return err
}
