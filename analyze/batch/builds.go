package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"symbolize/analyze/code"
	"symbolize/analyze/pgo"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

// isPGO reports whether a format is one of package pgo.
func isPGO(format string) bool {
	return slices.Contains([]string{pgo.FormatPreagg, pgo.FormatFdata, pgo.FormatLLVM, pgo.FormatGCOV}, format)
}

// CheckFormats returns how the formats need the branch stacks of captures: those of package pgo have the
// branches, all others samples. Both together are an error.
func CheckFormats(formats []string) (input.BranchMode, error) {
	n := 0
	for _, f := range formats {
		if isPGO(f) {
			n++
		}
	}
	switch n {
	case 0:
		return input.NoBranches, nil
	case len(formats):
		return input.BranchTraces, nil
	}
	return 0, errors.New("formats for compilers count branches, all others samples: run batch for each")
}

// writeBuilds writes a file for each build of a program or library with counts, in a directory with the
// name of the profile. Builds without a file have warnings.
func (w *writer) writeBuilds(ctx context.Context, p *ingest.Profile, values []string, format string) error {
	if _, err := w.Session.Need(ctx, p.Objects); err != nil {
		return err
	}
	t := pgo.New(p, w.Session.View(), p.DefaultEvent())
	e := &pgo.Encoder{Format: format, Workers: 1, Code: code.Options{View: w.Session.View()}}
	list, without := t.Builds("")
	for _, x := range without {
		w.add(values, x)
	}
	for _, i := range list {
		o := &t.Objects[i]
		var stats pgo.Stats
		var failed error
		err := w.file(filepath.Join(name(values), o.FileName(format)), func(out io.Writer) error {
			stats, failed = e.Write(ctx, out, t, i)
			return failed
		})
		switch {
		case ctx.Err() != nil || err != nil && failed == nil:
			return errors.Join(ctx.Err(), err)
		case failed != nil:
			w.done.Left++
			w.add(values, ingest.Warning{Text: fmt.Sprintf("%s: %v", o.Text(), failed)})
		default:
			for _, x := range t.Warnings(i, &stats) {
				x.Text = o.Text() + ": " + x.Text
				w.add(values, x)
			}
		}
	}
	return nil
}
