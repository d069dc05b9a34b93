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
	"symbolize/analyze/advice"
	"symbolize/analyze/code"
	"symbolize/analyze/pgo"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/texts"
	"symbolize/store/indexer"
)

// allObjects is the word of --object for all of them.
const allObjects = "all"

// listedObjects is how many objects a hint lists.
const listedObjects = 5

// compilerCounts are the counts of a profile for a format of compilers.
type compilerCounts struct {
	r      *resolveRun
	p      *ingest.Profile
	counts *pgo.Profile
}

func (r *resolveRun) compilerCounts(p *ingest.Profile) *compilerCounts {
	event := r.s.Event(p)
	r.a.PrintOtherEvents(p, event)
	return &compilerCounts{r, p, pgo.New(p, r.s.View(), event)}
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
	return c.write(ctx, w, object)
}

// writeBuilds writes a file for each build of --object, or of all objects, into a directory.
func (c *compilerCounts) writeBuilds(ctx context.Context, dir string) error {
	if err := files.MakeDir(dir); err != nil {
		return err
	}
	name, written := c.r.o.object, 0
	for i := range c.counts.Objects {
		o := &c.counts.Objects[i]
		if o.Counts == 0 || name != "" && name != allObjects && !o.Named(name) {
			continue
		}
		if o.ID.IsZero() {
			c.r.a.Warn(texts.Printable(o.File.Path)+" has no build ID, and no file is written of it", "")
			continue
		}
		path := filepath.Join(dir, ingest.BaseName(o.File.Path)+"-"+o.ID.Hex()+cli.Extensions[c.r.o.format])
		err := c.r.a.WriteOutput(path, c.r.o.binary(), func(w io.Writer) error { return c.write(ctx, w, i) })
		switch {
		case err == nil:
			written++
		case ctx.Err() != nil || name != "" && name != allObjects:
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

// write writes the counts of an object, or of pgo.All.
func (c *compilerCounts) write(ctx context.Context, w io.Writer, object int) error {
	r := c.r
	switch {
	case object == pgo.All:
		r.a.Warn("perf2bolt 22 and older ignore build IDs and add up the counts of all objects",
			"--object NAME writes one")
	case c.counts.Objects[object].ID.IsZero():
		r.a.Warn(texts.Printable(c.counts.Objects[object].File.Path)+
			" has no build ID: the counts can be those of another build", "")
	}
	switch r.o.format {
	case cli.LLVM:
		return c.byLines(ctx, object, pgo.Packed, func(s *pgo.Sites) error { return s.WriteLLVM(w) })
	case cli.Fdata:
		return c.fdata(w, object)
	case cli.GCOV:
		return c.byLines(ctx, object, pgo.Plain, func(s *pgo.Sites) error { return s.WriteGCOV(w) })
	}
	stats, err := c.counts.Preagg(w, object)
	c.note(object, stats)
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
func (c *compilerCounts) note(object int, s pgo.Stats) {
	r, counts := c.r, c.counts
	name := "all objects"
	if object != pgo.All {
		o := &counts.Objects[object]
		name = strings.TrimSuffix(texts.Printable(o.File.Path)+" "+o.ID.Hex(), " ")
	}
	what := table.Thousands(s.Samples) + " samples"
	if s.Traces > 0 {
		what = table.Thousands(s.Traces) + " branches"
	}
	r.a.Note(fmt.Sprintf("%s: %s; left out: %s in other objects", name, what, table.Thousands(s.Others)))
	if s.NoBranches > 0 {
		r.a.Warn(table.Thousands(s.NoBranches)+" samples without branch stacks are left out", "")
	}
	if s.NoAddress > 0 && object != pgo.All {
		o := &counts.Objects[object]
		step := advice.Case{Reason: o.Reason, Object: o.Object, Captures: c.p.Meta.Captures}
		r.a.Warn(fmt.Sprintf("%s samples are left out: their offsets have no address: %s",
			table.Thousands(s.NoAddress), o.Reason), step.Step())
	}
}

// byLines writes the counts of one object by lines.
func (c *compilerCounts) byLines(ctx context.Context, object int, coding pgo.Discriminators,
	write func(*pgo.Sites) error) error {
	sites := c.counts.Sites(object, coding)
	if err := c.r.visitUnits(ctx, c.counts.Objects[object].Object, sites.Unit); err != nil {
		return err
	}
	err := write(sites)
	c.note(object, sites.Stats())
	if sites.NoLine > 0 {
		c.r.a.Warn(table.Thousands(sites.NoLine)+" samples are left out: the debug information has no line for them", "")
	}
	return err
}

// fdata writes the counts of one object by the symbols and the code of its file.
func (c *compilerCounts) fdata(w io.Writer, object int) error {
	opts := c.r.codeOptions()
	f, closer, err := opts.OpenFile(c.counts.Objects[object].Object)
	if err != nil {
		return err
	}
	defer closer.Close()
	stats, err := c.counts.WriteFdata(w, object, f)
	c.note(object, stats.Stats)
	if stats.NoSymbol > 0 {
		c.r.a.Warn(table.Thousands(stats.NoSymbol)+" samples are left out: no symbol of a function has them", "")
	}
	return err
}

// codeOptions are the places in which the file of an object is looked for.
func (r *resolveRun) codeOptions() code.Options {
	_, with := analyze.SplitBundles(r.s.Options.With)
	return code.Options{View: r.s.View(), Paths: slices.Concat(with, r.s.Options.Symfs),
		Recorded: r.a.Local(nil, r.s.Options.NoLocal) != nil}
}

// visitUnits reads the debug information of an object.
func (r *resolveRun) visitUnits(ctx context.Context, o *ingest.Object, visit func(*dwarf.Unit) error) error {
	opts := r.codeOptions()
	return opts.VisitUnits(ctx, o, indexer.Options{Workers: r.s.Options.Jobs}, visit)
}
