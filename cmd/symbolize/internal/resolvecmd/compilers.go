package resolvecmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/analyze"
	"symbolize/analyze/advice"
	"symbolize/analyze/code"
	"symbolize/analyze/pgo"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/texts"
	"symbolize/store/indexer"
)

// allObjects is the word of --object for all of them.
const allObjects = "all"

// listedObjects is how many objects a hint lists.
const listedObjects = 5

// preagg writes the counts of one object, or of all, for BOLT.
func (r *resolveRun) preagg(w io.Writer, p *ingest.Profile) error {
	event := r.s.Event(p)
	r.a.PrintOtherEvents(p, event)
	counts := pgo.New(p, r.s.View(), event)
	object, err := pgo.All, error(nil)
	if r.o.object != allObjects {
		if object, err = counts.Find(r.o.object); err != nil {
			return hintObjects(err, counts)
		}
	}
	stats, err := counts.Preagg(w, object)
	if object == pgo.All {
		r.a.Warn("perf2bolt 22 and older ignore build IDs and add up the counts of all objects",
			"--object NAME writes one")
	} else {
		r.warnObject(&counts.Objects[object])
	}
	r.noteCounts(p, counts, object, stats)
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

// warnObject warns of an object without a build ID.
func (r *resolveRun) warnObject(o *pgo.Object) {
	if o.ID.IsZero() {
		r.a.Warn(texts.Printable(o.File.Path)+" has no build ID: the counts can be those of another build", "")
	}
}

// noteCounts says what was written and what was left out.
func (r *resolveRun) noteCounts(p *ingest.Profile, counts *pgo.Profile, object int, s pgo.Stats) {
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
		c := advice.Case{Reason: o.Reason, Object: o.Object, Captures: p.Meta.Captures}
		r.a.Warn(fmt.Sprintf("%s samples are left out: their offsets have no address: %s",
			table.Thousands(s.NoAddress), o.Reason), c.Step())
	}
}

// byLines writes the counts of one object by lines.
func (r *resolveRun) byLines(ctx context.Context, p *ingest.Profile, coding pgo.Discriminators,
	write func(*pgo.Sites) error) error {
	event := r.s.Event(p)
	r.a.PrintOtherEvents(p, event)
	counts := pgo.New(p, r.s.View(), event)
	object, err := counts.Find(r.o.object)
	if err != nil {
		return hintObjects(err, counts)
	}
	sites := counts.Sites(object, coding)
	if err := r.visitUnits(ctx, counts.Objects[object].Object, sites.Unit); err != nil {
		return err
	}
	err = write(sites)
	r.noteCounts(p, counts, object, sites.Stats())
	if sites.NoLine > 0 {
		r.a.Warn(table.Thousands(sites.NoLine)+" samples are left out: the debug information has no line for them", "")
	}
	return err
}

// visitUnits reads the debug information of an object.
func (r *resolveRun) visitUnits(ctx context.Context, o *ingest.Object, visit func(*dwarf.Unit) error) error {
	_, with := analyze.SplitBundles(r.s.Options.With)
	opts := code.Options{View: r.s.View(), Paths: slices.Concat(with, r.s.Options.Symfs),
		Recorded: r.a.Local(nil, r.s.Options.NoLocal) != nil}
	return opts.VisitUnits(ctx, o, indexer.Options{Workers: r.s.Options.Jobs}, visit)
}
