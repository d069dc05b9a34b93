package resolvecmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/analyze"
	"symbolize/analyze/code"
	"symbolize/analyze/pgo"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

// allObjects is the word of --object for all of them.
const allObjects = "all"

// listedObjects is how many objects a hint lists.
const listedObjects = 5

// compilerCounts are the counts of a profile for a format of compilers.
type compilerCounts struct {
	r       *resolveRun
	counts  *pgo.Profile
	encoder *pgo.Encoder
}

func (r *resolveRun) compilerCounts(p *ingest.Profile) *compilerCounts {
	event := r.s.Event(p)
	r.a.PrintOtherEvents(p, event)
	_, with := analyze.SplitBundles(r.s.Options.With)
	return &compilerCounts{r, pgo.New(p, r.s.View(), event), &pgo.Encoder{Format: cli.Extensions[r.o.format],
		GCOV: r.o.gcov, Workers: r.s.Options.Jobs, Code: code.Options{View: r.s.View(), Paths: slices.Concat(with, r.s.Options.Symfs),
			Recorded: r.a.Local(nil, r.s.Options.NoLocal) != nil}}}
}

// writeChosen writes the object of --object.
func (c *compilerCounts) writeChosen(ctx context.Context, w io.Writer) error {
	if c.r.o.object == allObjects && c.r.o.format == cli.Preagg {
		return c.write(ctx, w, pgo.All)
	}
	object, err := c.counts.Find(c.r.o.object)
	if err != nil {
		return hintObjects(err, c.counts)
	}
	if err := c.write(ctx, w, object); err != nil {
		return fmt.Errorf("%s: %w", texts.Printable(c.counts.Objects[object].File.Path), err)
	}
	return nil
}

// writeBuilds writes a file for each build of --object, or of all objects, into a directory.
func (c *compilerCounts) writeBuilds(ctx context.Context, dir string) error {
	if err := files.MakeDir(dir); err != nil {
		return err
	}
	name, written := c.r.o.object, 0
	if name == allObjects {
		name = ""
	}
	list, without := c.counts.Builds(name)
	for _, w := range without {
		c.r.a.Warn(w.Text, w.Hint)
	}
	for _, i := range list {
		o := &c.counts.Objects[i]
		err := c.r.a.WriteOutput(filepath.Join(dir, o.FileName(c.encoder.Format)), c.r.o.binary(),
			func(w io.Writer) error { return c.write(ctx, w, i) })
		switch {
		case err == nil:
			written++
		case ctx.Err() != nil || name != "":
			return err
		default:
			c.r.a.Warn(texts.Printable(o.File.Path)+": "+err.Error(), "")
		}
	}
	if written == 0 {
		_, err := c.counts.Find(name)
		return hintObjects(cmp.Or(err, pgo.ErrNoCounts), c.counts)
	}
	return nil
}

// write writes the counts of an object, or of pgo.All, and prints what was left out.
func (c *compilerCounts) write(ctx context.Context, w io.Writer, object int) error {
	stats, err := c.encoder.Write(ctx, w, c.counts, object)
	if err == nil {
		c.note(object, &stats)
	}
	return err
}

// hintObjects adds the names of the objects with most counts.
func hintObjects(err error, counts *pgo.Profile) error {
	var names []string
	for i := range counts.Objects {
		if o := &counts.Objects[i]; o.Counts > 0 && len(names) < listedObjects {
			names = append(names, texts.Printable(o.File.Path))
		}
	}
	if len(names) == 0 {
		return err
	}
	return texts.WithHint(err, "samples are in %s", strings.Join(names, ", "))
}

// note prints what was written and what was left out.
func (c *compilerCounts) note(object int, s *pgo.Stats) {
	name := "all objects"
	if object != pgo.All {
		name = c.counts.Objects[object].Text()
	}
	what := table.Thousands(s.Samples) + " samples"
	if s.Traces > 0 {
		what = table.Thousands(s.Traces) + " branches"
	}
	c.r.a.Note(fmt.Sprintf("%s: %s; left out: %s in other objects", name, what, table.Thousands(s.Others)))
	for _, w := range c.counts.Warnings(object, s) {
		c.r.a.Warn(w.Text, w.Hint)
	}
}
