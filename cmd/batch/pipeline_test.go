package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"

	"symbolize/analyze/batch"
	"symbolize/analyze/demangle"
	"symbolize/fixtures/nightbuild"
	"symbolize/store"
	"symbolize/store/db"
	"symbolize/store/indexer"
)

const fixtures = "../../fixtures/"

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	os.Exit(m.Run())
}

// newStore makes a store of files.
func newStore(t *testing.T, paths ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	var w *db.Writer
	_, err := indexer.Index(t.Context(), paths, nil, func() (store.Sink, error) {
		var err error
		w, err = db.OpenWriter(t.Context(), path, db.WriterOptions{})
		return w, err
	}, indexer.Options{DebugRoots: []string{}})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// profiles reads the profiles below a directory.
func profiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for _, pattern := range []string{"*/*.pb.gz", "*/*.folded"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			files[rel] = b
		}
	}
	return files
}

// TestPrism: 40 captures, one of them broken, and two files that are none give the same bytes on
// Prism as by batch.Run, and the same list of failures.
func TestPrism(t *testing.T) {
	dir := t.TempDir()
	const captures, bin = fixtures + "captures/", fixtures + "objects/bin/"
	made, err := nightbuild.Fleet{Hosts: 5, Days: 2, Seed: 1, Services: []nightbuild.Service{
		{Name: "batch", Recording: captures + "mixed.data", Program: bin + "mixed"},
		{Name: "web", Recording: captures + "fixed.data", Program: bin + "fixed"},
		{Name: "bpf", Recording: captures + "bpf-lines.data"},
		{Name: "jobs", Recording: captures + "spawn.data", Program: bin + "spawn"},
	}}.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "text"} {
		path := filepath.Join(dir, "captures", "web", "host9999", name+".data")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(strings.Repeat("no capture\n", len(name)%5)), 0o600)); err != nil {
			t.Fatal(err)
		}
		made.Captures = append(made.Captures, path)
	}
	slices.Sort(made.Captures)
	for name, by := range map[string][]string{"by day": {"service", "day"}, "by comm": {"service", "comm"}} {
		t.Run(name, func(t *testing.T) {
			n := &Night{Captures: made.Captures, Out: t.TempDir(), Parts: 3, By: by,
				Store:   newStore(t, fixtures+"objects", filepath.Join(dir, "objects")),
				Pattern: "{service}/{host}/{day}.data", Formats: []string{batch.FormatPprof, batch.FormatFolded}}
			g, keep, err := n.grouping()
			if err != nil {
				t.Fatal(err)
			}
			opts := batch.RunOptions{Session: n.session(), Parts: 5, By: g, Out: t.TempDir(),
				Formats:   n.Formats,
				Demangler: func() *demangle.Demangler { return demangle.New(demangle.Simple) }}
			opts.Session.Keep = keep
			var failed []string
			opts.Hooks = &batch.Hooks{OnFailed: func(capture string, err error) {
				failed = append(failed, capture+"\t"+err.Error()+"\n")
			}}
			if _, err := batch.Run(t.Context(), n.Captures, opts); err != nil {
				t.Fatal(err)
			}
			p, s := beam.NewPipelineWithRoot()
			build(s, n)
			res, err := beam.Run(t.Context(), "prism", p)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(failed)
			list, err := os.ReadFile(filepath.Join(n.Out, FailedList))
			if err != nil || len(failed) != 2 || string(list) != strings.Join(failed, "") {
				t.Errorf("the list of failures is %q, %v, want %q", list, err, failed)
			}
			if n := failedIn(res); n != int64(len(failed)) {
				t.Errorf("%d captures failed by the counter, want %d", n, len(failed))
			}
			got, want := profiles(t, n.Out), profiles(t, opts.Out)
			if len(got) != len(want) || len(want) < 8 {
				t.Errorf("%d profiles, want %d", len(got), len(want))
			}
			for path := range want {
				if !bytes.Equal(got[path], want[path]) {
					t.Errorf("%s: %d bytes, which differ from the %d of batch.Run", path, len(got[path]),
						len(want[path]))
				}
			}
			if t.Failed() {
				return
			}
			beside, err := filepath.Glob(filepath.Join(n.Out, ".beam", "shard-*", "*.stacks"))
			if err != nil || len(beside) != n.shards() || n.shards() < 3 {
				t.Errorf("%d packs of %d shards, %v", len(beside), n.shards(), err)
			}
			t.Logf("%d captures, %d profiles: the same bytes", len(n.Captures), len(got))
		})
	}
}
