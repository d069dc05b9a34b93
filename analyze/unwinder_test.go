package analyze_test

import (
	"bytes"
	"testing"

	"symbolize/analyze"
	"symbolize/ingest"
	"symbolize/store/local"
)

// TestLocalUnwinds unwinds copied stacks by tables of files that are found here, made for the run,
// with the same result as tables of indexed files; and by none where there is no file.
func TestLocalUnwinds(t *testing.T) {
	capture := []string{"../fixtures/unwound/bare.data"}
	dirs := []string{"../fixtures/unwound"}
	here := analyze.Options{Local: &local.Options{Roots: dirs, DebugRoots: []string{}}}
	indexed, _ := jsonOf(t, analyze.Options{With: dirs}, capture)
	if found, place := jsonOf(t, here, capture); !bytes.Equal(found, indexed) || place == "" {
		t.Errorf("found (%s): %s\nindexed: %s", place, found, indexed)
	}
	whole := ingest.CopiedStats{Samples: 75, Bytes: 1024, Full: 75, Complete: 63, Truncated: 12, Guessed: 25}
	for _, c := range []struct {
		name string
		opts analyze.Options
		want ingest.CopiedStats
	}{
		{name: "indexed", opts: analyze.Options{With: dirs}, want: whole},
		{name: "found", opts: here, want: whole},
		{name: "elsewhere",
			opts: analyze.Options{Local: &local.Options{Roots: []string{t.TempDir()}, DebugRoots: []string{}}},
			want: ingest.CopiedStats{Samples: 75, Bytes: 1024, Full: 75, NoTable: 75}},
		{name: "not looked for", opts: analyze.Options{},
			want: ingest.CopiedStats{Samples: 75, Bytes: 1024, Full: 75, NoTable: 75}},
	} {
		s, err := analyze.Open(t.Context(), c.opts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Load(t.Context(), capture...)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Stats.Copied; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		s.Close()
	}
}
