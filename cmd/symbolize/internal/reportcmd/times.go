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

// runGecko writes a file for the Firefox Profiler of one capture with its samples at their times.
func runGecko(ctx context.Context, a *cli.App, o *flamegraphOptions, s *cli.Session,
	captures []string) error {
	return s.Each(ctx, captures, func(c *input.Capture, p *ingest.Profile) error {
		if _, err := s.Name(ctx, p); err != nil {
			return err
		}
		s.PrintAdvice(p)
		s.PrintWarnings(p)
		g := o.graph(a, s, p)
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
