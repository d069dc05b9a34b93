package analyze_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/analyze"
	"symbolize/fixtures/must"
	"symbolize/fixtures/storebuild"
	"symbolize/ingest"
	"symbolize/store/indexer"
	"symbolize/store/local"
)

// TestPprofPaths: a pprof file without build IDs gets names by the paths of its mappings, only with
// TrustPaths: from the files of this host, or a store that has indexed them.
func TestPprofPaths(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "fixed")
	b := must.Read(t, "../fixtures/objects/bin/fixed")
	if err := os.WriteFile(program, b, 0o755); err != nil {
		t.Fatal(err)
	}
	m := &profile.Mapping{ID: 1, Start: 0x401000, Limit: 0x402000, Offset: 0x1000, File: program}
	l := &profile.Location{ID: 1, Mapping: m, Address: 0x40114e}
	prof := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}},
		Sample:  []*profile.Sample{{Location: []*profile.Location{l}, Value: []int64{3}}},
		Mapping: []*profile.Mapping{m}, Location: []*profile.Location{l}}
	path := filepath.Join(dir, "x.pb.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := prof.Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	here := &local.Options{Host: true, DebugRoots: []string{}}
	store := storebuild.New(t, indexer.Options{}, dir)
	for _, tc := range []struct {
		name string
		opts analyze.Options
		want []string
	}{
		{name: "here", opts: analyze.Options{Local: here}},
		{name: "here, trusted", opts: analyze.Options{Local: here, Naming: analyze.Naming{TrustPaths: true}}, want: []string{"collatz"}},
		{name: "store", opts: analyze.Options{Store: store}},
		{name: "store, trusted", opts: analyze.Options{Store: store, Naming: analyze.Naming{TrustPaths: true}}, want: []string{"collatz"}},
	} {
		s, err := analyze.Open(t.Context(), tc.opts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Load(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := named(p); !slices.Equal(got, tc.want) {
			t.Errorf("%s: names %q, want %q", tc.name, got, tc.want)
		}
		if o := &p.Objects[0]; (o.IDSource == ingest.IDTrusted) != (tc.want != nil) ||
			(o.Reason == ingest.NoBuildID) == (tc.want != nil) && p.Names.Reasons[0] != ingest.NoBuildID {
			t.Errorf("%s: ID from %v, reason %v", tc.name, o.IDSource, o.Reason)
		}
	}
}
