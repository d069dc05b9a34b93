package analyze_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"symbolize/analyze"
	"symbolize/buildid"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/fixtures/storebuild"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/sideband"
	"symbolize/store"
	"symbolize/store/indexer"
)

const captures = "../fixtures/captures/"

// named returns the sorted names of a profile's functions.
func named(p *ingest.Profile) (list []string) {
	for _, f := range p.Names.Functions {
		list = append(list, f.SystemName)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestSources: names come from the store, from files for one run, or from neither.
func TestSources(t *testing.T) {
	dir := storebuild.New(t, indexer.Options{}, "../fixtures/objects")
	for _, tt := range []struct {
		name   string
		opts   analyze.Options
		want   []string
		warned error
	}{
		{name: "store", opts: analyze.Options{Store: dir},
			want: []string{"collatz", "longest_below", "main"}},
		{name: "files", opts: analyze.Options{With: []string{"../fixtures/objects"}},
			want: []string{"collatz", "longest_below", "main"}},
		{name: "nothing", opts: analyze.Options{}},
		{name: "no store", opts: analyze.Options{Store: dir + "/none"}, warned: store.ErrNoStore},
		{name: "no store but files",
			opts: analyze.Options{Store: dir + "/none", With: []string{"../fixtures/objects"}},
			want: []string{"collatz", "longest_below", "main"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var warnings []error
			tt.opts.Warn = func(w analyze.Warning) { warnings = append(warnings, w.Err) }
			s, err := analyze.Open(t.Context(), tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			p, err := s.Load(t.Context(), captures+"fixed.data")
			if err != nil {
				t.Fatal(err)
			}
			if got := named(p); !slices.Equal(got, tt.want) {
				t.Errorf("names %q, want %q", got, tt.want)
			}
			if err := errors.Join(warnings...); !errors.Is(err, tt.warned) {
				t.Errorf("warnings %v, want %v", err, tt.warned)
			}
			if s.State().Partial {
				t.Error("partial")
			}
		})
	}
}

// TestManifestsAreKept: the check of return addresses, the join, each table and each further
// capture use the manifests that were read once. With the store closed nothing else answers.
func TestManifestsAreKept(t *testing.T) {
	s, err := analyze.Open(t.Context(), analyze.Options{Store: storebuild.New(t, indexer.Options{}, "../fixtures/objects")})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Load(t.Context(), captures+"fixed.data")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	known := 0
	for i := range p.Objects {
		if id := p.Objects[i].ID; !id.IsZero() {
			found, err := s.View().Find(id)
			if err != nil {
				t.Errorf("%s is read again: %v", id, err)
			}
			known += len(found)
		}
	}
	if known == 0 {
		t.Error("no object of the store")
	}
}

// TestOpenFails: the errors of opening a session can be tested for.
func TestOpenFails(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	newer := storebuild.New(t, indexer.Options{}, "../fixtures/objects")
	if err := os.WriteFile(filepath.Join(newer, "FORMAT"), []byte("symbolize store\nschema 999\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		ctx  context.Context
		opts analyze.Options
		want error
	}{
		{name: "no file", ctx: t.Context(), opts: analyze.Options{With: []string{"nowhere"}},
			want: os.ErrNotExist},
		{name: "no bundle", ctx: t.Context(), opts: analyze.Options{Bundles: []string{"doc.go"}},
			want: input.ErrNotCapture},
		{name: "no directory", ctx: t.Context(), opts: analyze.Options{Symbols: analyze.Symbols{BCC: []string{"nowhere"}}},
			want: os.ErrNotExist},
		{name: "interrupted", ctx: cancelled,
			opts: analyze.Options{With: []string{"../fixtures/objects"}},
			want: context.Canceled},
		{name: "newer store", ctx: t.Context(), opts: analyze.Options{Store: newer},
			want: store.ErrVersion},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := analyze.Open(tt.ctx, tt.opts)
			if !errors.Is(err, tt.want) || s != nil {
				t.Errorf("session %v, error %v, want %v", s, err, tt.want)
			}
		})
	}
}

// TestLoadFails: so can the errors of captures.
func TestLoadFails(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		paths []string
		opts  analyze.Options
		want  error
	}{
		{name: "no capture", paths: []string{"doc.go"}, want: input.ErrNotCapture},
		{name: "one of two", paths: []string{captures + "fixed.data", "doc.go"},
			want: input.ErrNotCapture},
		{name: "interrupted", ctx: cancelled, paths: []string{captures + "fixed.data"},
			want: context.Canceled},
		{name: "all of two", paths: []string{"nowhere", "doc.go"},
			opts: analyze.Options{
				Handlers: analyze.Handlers{Failed: func(string, error) {}},
			}, want: analyze.ErrNoCapture},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := analyze.Open(t.Context(), tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			if p, err := s.Load(ctx, tt.paths...); !errors.Is(err, tt.want) || p != nil {
				t.Errorf("profile %v, error %v, want %v", p, err, tt.want)
			}
		})
	}
}

// TestEventError: an event that a pprof file lacks.
func TestEventError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pb.gz")
	s, err := analyze.Open(t.Context(), analyze.Options{Samples: analyze.Samples{Event: "cycles"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b bytes.Buffer
	p := &ingest.Profile{Strings: []string{""}, Events: []ingest.Event{{Name: "instructions",
		Unit: "count"}}}
	if err := pprof.Write(&b, p, pprof.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	must.Write(t, path, b.Bytes())
	_, err = s.Load(t.Context(), path)
	var lacks *ingest.EventError
	if !errors.As(err, &lacks) || lacks.Event != "cycles" || lacks.Capture != path {
		t.Errorf("error %v, want an EventError", err)
	}
}

// TestEachPassesOver: with Failed, a capture that cannot be read is passed over, and the result
// is partial.
func TestEachPassesOver(t *testing.T) {
	var failed []string
	s, err := analyze.Open(t.Context(), analyze.Options{
		Handlers: analyze.Handlers{
			Failed: func(path string, _ error) { failed = append(failed, path) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var read []string
	err = s.Each(t.Context(), []string{"doc.go", captures + "fixed.data", captures + "mixed.data"},
		func(c *input.Capture, p *ingest.Profile) error {
			if p.Names != nil {
				t.Errorf("%s: has names before Name", c.Path())
			}
			read = append(read, filepath.Base(c.Path()))
			_, err := s.Name(t.Context(), p)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"fixed.data", "mixed.data"}; !slices.Equal(read, want) {
		t.Errorf("read %q, want %q", read, want)
	}
	if !slices.Equal(failed, []string{"doc.go"}) || !s.State().Partial {
		t.Errorf("failed %q, partial %v", failed, s.State().Partial)
	}
}

// TestKallsyms: the list is of one kernel.
func TestKallsyms(t *testing.T) {
	var warned error
	s, err := analyze.Open(t.Context(), analyze.Options{
		Symbols: analyze.Symbols{Kallsyms: []string{"../fixtures/kernel/kallsyms"}},
		Warn:    func(w analyze.Warning) { warned = errors.Join(warned, w.Err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Name(t.Context(), kernels()); err != nil || !errors.Is(warned, analyze.ErrNoKernel) {
		t.Errorf("no kernel: error %v, warning %v", err, warned)
	}
	var several *analyze.KernelsError
	_, err = s.Name(t.Context(), kernels(1, 2))
	if !errors.As(err, &several) || len(several.Kernels) != 2 {
		t.Errorf("two kernels: error %v", err)
	}
}

// kernels returns a profile with kernels of these build IDs.
func kernels(ids ...byte) *ingest.Profile {
	p := &ingest.Profile{Strings: []string{""}}
	for _, id := range ids {
		p.Objects = append(p.Objects, ingest.Object{Kind: ingest.Kernel,
			ID: buildid.New(slices.Repeat([]byte{id}, 20))})
	}
	return p
}

// TestBundleRefused: a bundle of another boot is a warning, with or without a function for it.
func TestBundleRefused(t *testing.T) {
	dir := t.TempDir()
	host, other := bundlebuild.NewHost(), bundlebuild.NewHost()
	other.Kernel = [20]byte{9}
	recording, bundle := filepath.Join(dir, "perf.data"), filepath.Join(dir, "capture.data")
	for path, data := range map[string][]byte{
		recording: bundlebuild.NewLoad(5).PerfData(host), bundle: other.Bundle(),
	} {
		must.Write(t, path, data)
	}
	for _, own := range []bool{false, true} {
		warned, refused := 0, 0
		opts := analyze.Options{Bundles: []string{bundle}, Warn: func(w analyze.Warning) {
			if w.Hint == analyze.RefusedHint {
				warned++
			}
		}}
		if own {
			opts.Taken = func(path string, b *sideband.Contribution) {
				if path == recording && b.From == bundle && b.Refused != "" {
					refused++
				}
			}
		}
		s, err := analyze.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context(), recording); err != nil {
			t.Fatal(err)
		}
		if warned+refused != 1 || (refused == 1) != own {
			t.Errorf("Taken %v: %d warnings, %d refused", own, warned, refused)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
