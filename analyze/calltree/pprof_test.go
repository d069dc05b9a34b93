package calltree_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/analyze"
	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/analyze/resolve"
	"symbolize/fixtures/pprofrun"
	"symbolize/ingest"
	"symbolize/ingest/input/pprof"
)

// recorded names a recorded capture, and returns it also as pprof reads the file of it.
func recorded(t *testing.T, capture string) (*ingest.Profile, *profile.Profile) {
	t.Helper()
	const fixtures = "../../fixtures"
	s, err := analyze.Open(t.Context(), analyze.Options{
		With: []string{filepath.Join(fixtures, "objects")}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := s.Load(t.Context(), filepath.Join(fixtures, "captures", capture))
	if err != nil {
		t.Fatal(err)
	}
	opts := resolve.Layout(s.View(), p)
	opts.Demangle = demangle.New(demangle.Simple).Name
	var b bytes.Buffer
	if err := pprof.Write(&b, p, opts); err != nil {
		t.Fatal(err)
	}
	prof, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return p, prof
}

// TestEqualToPprof: top of three recorded captures, by function and line and under filters, has
// the rows of `pprof -top` on the file that is written of them.
func TestEqualToPprof(t *testing.T) {
	rx := regexp.MustCompile
	const unresolved = `\+0x[0-9a-f]+\]$` // which top by function adds up by object
	compared := 0
	for _, capture := range []string{"mixed.data", "bpf.data", "events.data"} {
		p, prof := recorded(t, capture)
		for _, tt := range []struct {
			by     calltree.By
			filter calltree.Filter
			args   []string
		}{
			{by: calltree.Line},
			{by: calltree.Line, filter: calltree.Filter{Focus: rx("main|entry")},
				args: []string{"-focus=main|entry"}},
			{by: calltree.Line, filter: calltree.Filter{Ignore: rx("collatz")},
				args: []string{"-ignore=collatz"}},
			{by: calltree.Line, filter: calltree.Filter{Hide: rx("fixed|kernel")},
				args: []string{"-hide=fixed|kernel"}},
			{by: calltree.Line, filter: calltree.Filter{ShowFrom: rx("^main$")},
				args: []string{"-show_from=^main$"}},
			{by: calltree.Function, filter: calltree.Filter{Hide: rx(unresolved)},
				args: []string{"-hide=" + unresolved}},
			{by: calltree.Function, filter: calltree.Filter{Hide: rx(unresolved), Focus: rx("c")},
				args: []string{"-hide=" + unresolved, "-focus=c"}},
			{by: calltree.Function, filter: calltree.Filter{Show: rx("main|collatz|bpf_prog")},
				args: []string{"-show=main|collatz|bpf_prog"}},
		} {
			top := calltree.NewTop(p, calltree.TopOptions{Options: calltree.Options{
				Event: p.DefaultEvent(), By: []calltree.By{tt.by}, Filter: tt.filter}})
			args := slices.Concat(tt.args, []string{"-" + tt.by.String() + "s",
				"-sample_index=" + prof.DefaultSampleType})
			compared += comparePprof(t, fmt.Sprint(capture, " ", args), top,
				pprofrun.Top(t, []*profile.Profile{prof}, args...))
		}
	}
	if compared < 200 {
		t.Errorf("only %d rows were compared", compared)
	}
}

// comparePprof compares a table with pprof's. Functions of one name in several objects are one
// row of pprof: their flat values are summed up, and their cumulative ones not compared.
func comparePprof(t *testing.T, what string, top *calltree.Top, theirs []pprofrun.Row) int {
	t.Helper()
	type sums struct {
		ours, theirs [2]int64
		rows         int
	}
	names := make(map[string]*sums)
	of := func(name string) *sums {
		if names[name] == nil {
			names[name] = &sums{}
		}
		return names[name]
	}
	for i := range top.Rows {
		s := of(top.Rows[i].Name)
		s.rows++
		s.ours[0] += int64(top.Rows[i].Flat)
		s.ours[1] += int64(top.Rows[i].Cum)
	}
	for _, r := range theirs {
		s := of(r.Name)
		s.theirs[0] += r.Flat
		s.theirs[1] += r.Cum
	}
	for name, s := range names {
		if s.ours[0] != s.theirs[0] || s.rows == 1 && s.ours[1] != s.theirs[1] {
			t.Errorf("%s: %s has %v in %d rows, pprof has %v", what, name, s.ours, s.rows, s.theirs)
		}
	}
	return len(names)
}
