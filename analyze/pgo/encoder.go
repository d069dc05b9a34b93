package pgo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"symbolize/analyze/advice"
	"symbolize/analyze/code"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/texts"
	"symbolize/store/indexer"
)

// The formats, by the extensions of their files.
const (
	FormatAutoFDO = ".afdo"
	FormatPreagg  = ".preagg"
	FormatFdata   = ".fdata"
	FormatLLVM    = ".llvmprof"
	FormatGCOV    = ".gcov"
)

// Encoder writes the counts of objects in one format.
type Encoder struct {
	Format  string       // FormatAutoFDO …
	Code    code.Options // where the files of objects are looked for, by formats that need them
	GCOV    uint32       // GCOV2, the default, or GCOV3
	Workers int          // that read debug information; 0 for GOMAXPROCS
}

// Write writes the counts of an object, or in FormatPreagg of All. The error wraps ErrNoCounts if nothing is
// left to write, and has the reason.
func (e *Encoder) Write(ctx context.Context, w io.Writer, t *Profile, object int) (Stats, error) {
	stats, err := e.encode(ctx, w, t, object)
	if lost := t.lost(object, &stats); errors.Is(err, ErrNoCounts) && len(lost) > 0 {
		err = texts.WithHint(fmt.Errorf("%w: %s", err, lost[0].Text), "%s", lost[0].Hint)
	}
	return stats, err
}

func (e *Encoder) encode(ctx context.Context, w io.Writer, t *Profile, object int) (Stats, error) {
	switch e.Format {
	case FormatAutoFDO:
		return t.autoFDO(w, object)
	case FormatFdata:
		f, closer, err := e.Code.OpenFile(t.Objects[object].Object)
		if err != nil {
			return Stats{}, err
		}
		defer closer.Close() // only read
		return t.writeFdata(w, object, f)
	case FormatLLVM:
		return e.byLines(ctx, t, object, Packed, func(s *sites) error { return s.writeLLVM(w) })
	case FormatGCOV:
		return e.byLines(ctx, t, object, Plain, func(s *sites) error { return s.writeGCOV(w, cmp.Or(e.GCOV, GCOV2)) })
	}
	return t.preagg(w, object)
}

// byLines writes the counts of an object by the lines in its debug information.
func (e *Encoder) byLines(ctx context.Context, t *Profile, object int, coding Discriminators,
	write func(*sites) error) (Stats, error) {
	s := t.sites(object, coding)
	visit := func(u *dwarf.Unit) error { s.unit(u); return nil }
	if err := e.Code.VisitUnits(ctx, t.Objects[object].Object, indexer.Options{Workers: e.Workers}, visit); err != nil {
		return s.counts.stats, err
	}
	err := write(s)
	return s.counts.stats, err
}

// maxName bounds the bytes of an object's name in FileName: file systems allow 255 in all.
const maxName = 100

// FileName is a name for the file of an object with a build ID in a directory of several builds.
func (o *Object) FileName(format string) string {
	name, _ := files.SafeName(ingest.BaseName(o.File.Path), maxName)
	return name + "-" + o.ID.Hex() + format
}

// Warnings describe what the file of an object, or of All, lacks of the counts, or may confuse.
func (t *Profile) Warnings(object int, s *Stats) (list []ingest.Warning) {
	if object == All {
		list = append(list, ingest.Warning{Text: "perf2bolt 22 and older ignore build IDs and add up the counts of all objects",
			Hint: "--object NAME writes one"})
	} else if o := &t.Objects[object]; o.ID.IsZero() {
		list = append(list, ingest.Warning{Text: texts.Printable(o.File.Path) +
			" has no build ID: the counts can be those of another build"})
	}
	return append(list, t.lost(object, s)...)
}

// lost describes what the file of an object, or of All, lacks of the counts, the most first.
func (t *Profile) lost(object int, s *Stats) []ingest.Warning {
	const samples, runs = "samples", "runs of code between two branches"
	type loss struct {
		n               uint64
		what, why, hint string
	}
	list := []loss{
		{t.Overflow, samples, "the sum of all would not fit", ""},
		{s.NoBranches, samples, "they have no branch stacks, others have", ""},
		{s.Bogus, runs, "backwards, or longer than 1 MiB", ""},
		{s.NoLine, samples, "the debug information has no line for them", ""},
		{s.NoSymbol, samples, "no symbol of a function has them", ""},
	}
	if object != All {
		o := &t.Objects[object]
		step := advice.Case{Reason: o.Reason, Object: o.Object, Captures: t.source.Meta.Captures}
		list = append(list, loss{s.NoAddress, samples, "offsets without an address: " + o.Reason.String(), step.Step()})
	}
	slices.SortStableFunc(list, func(a, b loss) int { return cmp.Compare(b.n, a.n) })
	var warnings []ingest.Warning
	for _, x := range list {
		if x.n > 0 {
			warnings = append(warnings, ingest.Warning{Hint: x.hint,
				Text: fmt.Sprintf("%s %s left out: %s", table.Thousands(x.n), x.what, x.why)})
		}
	}
	return warnings
}
