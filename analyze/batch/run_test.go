package batch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze"
	"symbolize/analyze/batch"
	"symbolize/analyze/demangle"
	"symbolize/analyze/export"
	"symbolize/analyze/resolve"
	"symbolize/fixtures/must"
	"symbolize/fixtures/storebuild"
	"symbolize/ingest/input/pprof"
	"symbolize/store/db"
	"symbolize/store/indexer"
)

// night is a directory of captures of services and hosts, with a store for them.
type night struct {
	dir, store string
	captures   []string
	naming     analyze.Naming
}

const pattern = "{service}/{host}/{file}.data"

// newNight copies recorded captures of all kinds to places of two services.
func newNight(t *testing.T) *night {
	t.Helper()
	n := &night{dir: t.TempDir(), store: storebuild.New(t, indexer.Options{}, "../../fixtures/objects")}
	for i, name := range []string{"fixed", "go", "mixed", "mixed-buildid", "bpf-lines", "deleted",
		"spawn", "tracepoint", "events", "zstd", "fixed"} {
		service, host := []string{"web", "db"}[i%2], fmt.Sprint("h", i%3)
		to := filepath.Join(n.dir, service, host, fmt.Sprint(i, ".data"))
		copyFile(t, "../../fixtures/captures/"+name+".data", to)
	}
	copyFile(t, "../../fixtures/sampled/stacks.data", filepath.Join(n.dir, "bpf/h1/stacks.data"))
	var err error
	if n.captures, err = batch.Captures([]string{n.dir}); err != nil {
		t.Fatal(err)
	}
	return n
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

var formats = []string{batch.FormatPprof, batch.FormatFolded}

func newDemangler() *demangle.Demangler { return demangle.New(demangle.Simple) }

func (n *night) session() analyze.Options {
	naming := n.naming
	naming.Hostname = "elsewhere"
	return analyze.Options{Store: n.store, Naming: naming}
}

func (n *night) options(out string) batch.RunOptions {
	return batch.RunOptions{Session: n.session(), Out: out, Parts: 3,
		By: batch.Grouping{Keys: []string{"service", "host"}, Pattern: pattern}, Formats: formats,
		Demangler: newDemangler}
}

// plain makes the profiles of the groups without batch.
func (n *night) plain(t *testing.T) map[string][]byte {
	t.Helper()
	groups := make(map[string][]string)
	for _, path := range n.captures {
		rel, err := filepath.Rel(n.dir, path)
		if err != nil {
			t.Fatal(err)
		}
		groups[filepath.Dir(rel)] = append(groups[filepath.Dir(rel)], path)
	}
	files := make(map[string][]byte)
	for name, paths := range groups {
		in := analyze.OpenInputs(t.Context(), paths)
		opts := n.session()
		opts.Inputs, opts.Bundles = in, in.Bundles
		s, err := analyze.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Load(t.Context(), paths...)
		if err != nil {
			t.Fatal(err)
		}
		var profile, folded bytes.Buffer
		d := newDemangler()
		layout := resolve.Layout(s.View(), p)
		layout.Demangle = d.Name
		err = errors.Join(pprof.Write(&profile, p, layout), export.Folded(&folded, p,
			export.FoldedOptions{Event: p.DefaultEvent(), Demangler: d}), s.Close())
		if err != nil {
			t.Fatal(err)
		}
		files[name+batch.FormatPprof], files[name+batch.FormatFolded] = profile.Bytes(), folded.Bytes()
	}
	return files
}

func compare(t *testing.T, got, want map[string][]byte) {
	t.Helper()
	for name := range want {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("%s: %d bytes, which differ from the %d of a plain run", name, len(got[name]),
				len(want[name]))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
}

func TestRun(t *testing.T) {
	n := newNight(t)
	want := n.plain(t)
	out := t.TempDir()
	sum, err := batch.Run(t.Context(), n.captures, n.options(out))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, must.Tree(t, out), want)
	if sum.Captures != len(n.captures) || sum.Failed != 0 || sum.Groups != len(want)/2 ||
		sum.Tables == 0 {
		t.Errorf("summary %+v", sum)
	}
	again, err := batch.Run(t.Context(), n.captures, n.options(out))
	if err != nil {
		t.Fatal(err)
	}
	if again.Kept != again.Captures || again.GroupsKept != again.Groups || again.NamesKept != 3 ||
		again.Tables != 0 {
		t.Errorf("second run %+v", again)
	}
	compare(t, must.Tree(t, out), want)
}

// TestJoined: captures that are joined while they are read give the same bytes, by keys of
// captures and of samples.
func TestJoined(t *testing.T) {
	n := newNight(t)
	for i, path := range slices.Clone(n.captures) {
		to := filepath.Join(filepath.Dir(path), fmt.Sprint("again", i, ".data"))
		copyFile(t, path, to)
		n.captures = append(n.captures, to)
	}
	slices.Sort(n.captures)
	for _, keys := range [][]string{{"service"}, {"service", "pid"}} {
		var flat map[string][]byte
		for _, size := range []int{1 << 30, 1, 1 << 14} {
			batch.SetJoinBytes(t, size)
			opts := n.options(t.TempDir())
			opts.By.Keys = keys
			if err := opts.By.Labels(&opts.Session.Keep); err != nil {
				t.Fatal(err)
			}
			if _, err := batch.Run(t.Context(), n.captures, opts); err != nil {
				t.Fatal(err)
			}
			got := must.Tree(t, opts.Out)
			if flat == nil {
				flat = got
			}
			compare(t, got, flat)
		}
	}
}

// TestTablesOnce: ten times the captures open no table more.
func TestTablesOnce(t *testing.T) {
	n := newNight(t)
	var tables []uint64
	for range 2 {
		sum, err := batch.Run(t.Context(), n.captures, n.options(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, sum.Tables)
		for _, path := range slices.Clone(n.captures) {
			for i := range 9 {
				to := strings.Replace(path, "/h", fmt.Sprintf("/h%d-", i), 1)
				copyFile(t, path, to)
				n.captures = append(n.captures, to)
			}
		}
		slices.Sort(n.captures)
	}
	if tables[0] == 0 || tables[0] != tables[1] {
		t.Errorf("tables opened: %d, with ten times the captures %d", tables[0], tables[1])
	}
}

// TestKilled: a run that was stopped anywhere and run again gives the same bytes.
func TestKilled(t *testing.T) {
	n := newNight(t)
	want := n.plain(t)
	rng := rand.New(rand.NewPCG(4, 5))
	for range 5 {
		out := t.TempDir()
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			left := rng.IntN(2 * len(n.captures))
			opts := n.options(out)
			opts.Hooks = &batch.Hooks{}
			opts.Done = func() {
				if left--; left < 0 {
					cancel()
				}
			}
			if _, err := batch.Run(ctx, n.captures, opts); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			cancel()
		}
		if _, err := batch.Run(t.Context(), n.captures, n.options(out)); err != nil {
			t.Fatal(err)
		}
		compare(t, must.Tree(t, out), want)
	}
}

// TestShards: the steps by hand, in any number of tasks and any order, give the same bytes.
func TestShards(t *testing.T) {
	n := newNight(t)
	want := n.plain(t)
	for _, tasks := range []int{1, 2, 5} {
		out := t.TempDir()
		n.shards(t, rand.New(rand.NewPCG(6, uint64(tasks))), tasks, out)
		compare(t, must.Tree(t, out), want)
	}
}

// shards runs the steps as tasks, in random order.
func (n *night) shards(t *testing.T, rng *rand.Rand, tasks int, out string) {
	t.Helper()
	work := t.TempDir()
	for _, i := range rng.Perm(tasks) {
		c := &batch.Collector{Session: n.session(), Dir: work, Parts: tasks}
		own := batch.Of(batch.Shard{I: i, N: tasks}, n.captures)
		if _, _, err := c.Collect(t.Context(), own, n.captures); err != nil {
			t.Fatal(err)
		}
	}
	collected, err := filepath.Glob(filepath.Join(work, "*.stacks"))
	if err != nil {
		t.Fatal(err)
	}
	rng.Shuffle(len(collected), func(i, j int) {
		collected[i], collected[j] = collected[j], collected[i]
	})
	var names []string
	s, err := analyze.Open(t.Context(), n.session())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range rng.Perm(tasks) {
		path := filepath.Join(work, fmt.Sprint(part, ".names"))
		if _, err := batch.Name(t.Context(), s, part, collected, path, batch.NameOptions{Workers: 1}); err != nil {
			t.Fatal(err)
		}
		names = append(names, path)
	}
	answers, err := batch.OpenAnswers(names)
	if err != nil {
		t.Fatal(err)
	}
	by := n.options(out).By
	grouped, err := by.Groups(collected)
	if err != nil || len(grouped.Lacking) > 0 {
		t.Fatal(grouped, err)
	}
	groups := grouped.Groups
	for _, i := range rng.Perm(len(groups)) {
		g := groups[i]
		_, err := g.Write(t.Context(), answers, batch.Output{Dir: out, Formats: formats,
			Demangler: newDemangler})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(answers.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestFailures: captures that cannot be read are left out, with their reasons.
func TestFailures(t *testing.T) {
	n := newNight(t)
	want := n.plain(t)
	broken := map[string]string{"empty": "", "text": "no capture\n", "cut": "PERFILE2\x68"}
	for name, text := range broken {
		path := filepath.Join(n.dir, "web/h9", name+".data")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		n.captures = append(n.captures, path)
	}
	n.captures = append(n.captures, filepath.Join(n.dir, "absent.data"))
	var failed []string
	opts := n.options(t.TempDir())
	opts.Hooks = &batch.Hooks{}
	opts.OnFailed = func(capture string, err error) {
		failed = append(failed, filepath.Base(capture))
		if !strings.Contains(err.Error(), capture) {
			t.Errorf("%s: the message does not name it: %v", capture, err)
		}
	}
	sum, err := batch.Run(t.Context(), n.captures, opts)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(failed)
	all := []string{"absent.data", "cut.data", "empty.data", "text.data"}
	if !slices.Equal(failed, all) || sum.Failed != len(all) {
		t.Errorf("failed: %v, %d", failed, sum.Failed)
	}
	compare(t, must.Tree(t, opts.Out), want)
}

// TestReplacedStore: while each step runs, another process makes new generations of the store until
// the generations that the run has open are removed.
func TestReplacedStore(t *testing.T) {
	n := newNight(t)
	want := n.plain(t)
	opts := n.options(filepath.Join(t.TempDir(), "out"))
	opts.Hooks = &batch.Hooks{}
	opts.Step = func(string, int) {
		for range 3 {
			w, err := db.OpenWriter(t.Context(), n.store, db.WriterOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			_, err = w.GC(t.Context(), db.GCOptions{Exists: func(string) bool { return true }})
			if err := errors.Join(err, w.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	sum, err := batch.Run(t.Context(), n.captures, opts)
	if err != nil || sum.Failed != 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	compare(t, must.Tree(t, opts.Out), want)
}

// TestMissingPart: names of other captures are refused, and are not reported as reasons.
func TestMissingPart(t *testing.T) {
	n := newNight(t)
	work := t.TempDir()
	c := &batch.Collector{Session: n.options(work).Session, Dir: work, Parts: 2}
	collected, _, err := c.Collect(t.Context(), n.captures, n.captures)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := batch.OpenAnswers(nil)
	if err != nil {
		t.Fatal(err)
	}
	by := batch.Grouping{}
	grouped, err := by.Groups(collected)
	if err != nil {
		t.Fatal(err)
	}
	out := batch.Output{Dir: t.TempDir(), Formats: formats, Demangler: newDemangler}
	if _, err := grouped.Groups[0].Write(t.Context(), answers, out); err == nil ||
		!strings.Contains(err.Error(), "2 of 2 parts are not named") {
		t.Errorf("merge without names: %v", err)
	}
}

// TestPprofNames: profiles with names of their own keep them, as in a plain run.
func TestPprofNames(t *testing.T) {
	n := newNight(t)
	s, err := analyze.Open(t.Context(), n.options("").Session)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Load(t.Context(), n.captures[:3]...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(n.dir, "web/h0/named.data")
	write(t, path, func(w io.Writer) error { return pprof.Write(w, p, resolve.Layout(s.View(), p)) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	n.captures = append(n.captures, path)
	slices.Sort(n.captures)
	out := t.TempDir()
	if _, err := batch.Run(t.Context(), n.captures, n.options(out)); err != nil {
		t.Fatal(err)
	}
	compare(t, must.Tree(t, out), n.plain(t))
}

func write(t *testing.T, path string, body func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := errors.Join(body(&b), os.WriteFile(path, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}
