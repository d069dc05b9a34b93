package reportcmd

import (
	"context"
	"errors"
	"slices"

	"symbolize/analyze/calltree"
	"symbolize/analyze/flame"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

// runTimed writes a graph of one capture with its samples at their times.
func runTimed(ctx context.Context, a *cli.App, o *flamegraphOptions, s *cli.Session,
	captures []string) error {
	return s.Each(ctx, captures, func(c *input.Capture, p *ingest.Profile) error {
		if _, err := s.Name(ctx, p); err != nil {
			return err
		}
		s.PrintAdvice(p)
		s.PrintWarnings(p)
		g := o.graph(a, s, p)
		if o.isPage() {
			if err := addRanges(ctx, c, g, nil, false); err != nil {
				return err
			}
			return o.write(a, g)
		}
		err := c.Replay(ctx, g.SetTimes().Add)
		switch {
		case errors.Is(err, input.ErrNoReplay):
			err = nil
			noteTimes(a, "a capture of this kind has none", g)
		case errors.Is(err, flame.ErrManySamples):
			err = nil
			noteTimes(a, flame.ErrManySamples.Error()+"; --time selects some", g)
		case err == nil && !g.Timed():
			noteTimes(a, "it has none", g)
		}
		if err != nil {
			return err
		}
		return o.write(a, g)
	})
}

// addRanges gives a page the samples of its capture in order of time. Of a capture with too many
// samples it has only their counts, if these are requested, and of one without single samples
// nothing.
func addRanges(ctx context.Context, c *input.Capture, g *flame.Graph,
	line func(ingest.LocationID) uint32, counts bool) error {
	counter := flame.NewHeatOffsets()
	var times *flame.Times
	if !g.ManySamples() {
		times = g.SetRanges(line)
	} else if !counts {
		return nil
	}
	err := c.Replay(ctx, func(s *input.ReplaySample) error {
		counter.Add(s.Time, "")
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
	if errors.Is(err, input.ErrNoReplay) {
		g.DropTimes()
		return nil // a file of sums: its page has no times
	}
	g.Heat = counter.Grid()
	return err
}

// noteTimes drops the times of a graph with a note.
func noteTimes(a *cli.App, why string, g *flame.Graph) {
	g.DropTimes()
	a.Note("times of samples are not those of the recording: " + why)
}

// untimed returns why the samples of a graph cannot be drawn at their times, "" if they can.
func (o *flamegraphOptions) untimed(paths []string) string {
	_, tags := o.Keep.LabelWords()
	f := &o.parsed.Filter
	switch {
	case len(paths) > 1:
		return "the clocks of several captures may differ"
	case len(tags) > 0 || slices.ContainsFunc(o.parsed.By, func(b calltree.By) bool {
		return b.OfSample() && b != calltree.Comm
	}):
		return "--by and --labels of samples have none"
	case f.TagFocus != nil || f.TagIgnore != nil:
		return "samples of --tag-focus and --tag-ignore have none"
	}
	return ""
}
