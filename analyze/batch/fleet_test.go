package batch_test

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/analyze"
	"symbolize/analyze/batch"
	"symbolize/analyze/export"
	"symbolize/analyze/resolve"
	"symbolize/fixtures/must"
	"symbolize/fixtures/nightbuild"
	"symbolize/fixtures/storebuild"
	"symbolize/ingest"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/input/pprof"
	"symbolize/store/indexer"
)

const fixtures = "../../fixtures/"

// newFleet makes 40 captures of four services on five hosts on two days, one of which is broken,
// and a store for them.
func newFleet(t *testing.T) (*night, *nightbuild.Night) {
	t.Helper()
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
	n := &night{dir: filepath.Join(dir, "captures"), captures: made.Captures,
		store: storebuild.New(t, indexer.Options{}, fixtures+"objects", filepath.Join(dir, "objects"))}
	return n, made
}

// byService lists the captures that can be read by service.
func byService(n *night, made *nightbuild.Night) map[string][]string {
	groups := make(map[string][]string)
	for _, path := range n.captures {
		service := filepath.Base(filepath.Dir(filepath.Dir(path)))
		if !slices.Contains(made.Broken, path) {
			groups[service] = append(groups[service], path)
		}
	}
	return groups
}

// values are the values of a key in the samples of a profile.
func values(p *ingest.Profile, key string) []string {
	set := make(map[string]bool)
	for i := range p.Samples {
		if s := &p.Samples[i]; key == batch.KeyComm {
			set[p.Strings[s.Comm]] = true
		} else {
			set[strconv.Itoa(int(s.CPU))] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// plainBy makes the profiles by service and a label without batch: the samples of each value are
// selected when captures are read.
func plainBy(t *testing.T, n *night, made *nightbuild.Night, key string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for service, paths := range byService(n, made) {
		opts := n.session()
		opts.Keep.CPU = key == "cpu"
		p, _ := load(t, opts, paths)
		whole := p.Meta
		for _, value := range values(p, key) {
			if key == batch.KeyComm {
				opts.Comms = []string{value}
			} else {
				cpu, err := strconv.Atoi(value)
				if err != nil {
					t.Fatal(err)
				}
				opts.CPUs = []int32{int32(cpu)}
			}
			p, layout := load(t, opts, paths)
			p = merge.Part(p, p.Samples) // without places of rubbish that was cut off chains
			p.Meta.StartNanos, p.Meta.Duration = whole.StartNanos, whole.Duration
			d := newDemangler()
			layout.Demangle = d.Name
			var b bytes.Buffer
			if err := pprof.Write(&b, p, layout); err != nil {
				t.Fatal(err)
			}
			files[service+"/"+strings.ReplaceAll(value, "/", "%2F")+batch.FormatPprof] = b.Bytes()
		}
	}
	return files
}

// load reads captures, with the options for writing their profile.
func load(t *testing.T, opts analyze.Options, paths []string) (*ingest.Profile,
	pprof.WriteOptions) {
	t.Helper()
	opts.Inputs = analyze.OpenInputs(t.Context(), paths)
	s, err := analyze.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Load(t.Context(), paths...)
	if err != nil {
		t.Fatal(err)
	}
	layout := resolve.Layout(s.View(), p)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return p, layout
}

// TestLabels: a profile by a label of samples equals a plain run that selects them, but for its
// times, which are the captures' times.
func TestLabels(t *testing.T) {
	n, made := newFleet(t)
	n.captures = slices.DeleteFunc(n.captures, func(path string) bool {
		return slices.Contains(made.Broken, path) || strings.Contains(path, "/jobs/") ||
			strings.Contains(path, "/web/") // its samples have no CPU
	})
	for _, key := range []string{batch.KeyComm, "cpu"} {
		opts := n.options(t.TempDir())
		opts.By = batch.Grouping{Keys: []string{"service", key}, Pattern: "{service}/{host}/{day}.data"}
		if err := opts.By.Labels(&opts.Session.Keep); err != nil {
			t.Fatal(err)
		}
		opts.Formats = []string{batch.FormatPprof}
		sum, err := batch.Run(t.Context(), n.captures, opts)
		if err != nil {
			t.Fatal(err)
		}
		want := plainBy(t, n, made, key)
		got := must.Tree(t, opts.Out)
		compare(t, got, want)
		if sum.Groups != len(want) {
			t.Errorf("by %s: %d profiles, want %d", key, sum.Groups, len(want))
		}
		again, err := batch.Run(t.Context(), n.captures, opts)
		if err != nil || again.GroupsKept != again.Groups || again.Groups != len(want) {
			t.Errorf("by %s, again: %+v, %v", key, again, err)
		}
	}
}

// TestLabelsNotKept: captures that were collected without a label are not grouped by it.
func TestLabelsNotKept(t *testing.T) {
	n := newNight(t)
	c := &batch.Collector{Session: n.session(), Dir: t.TempDir(), Parts: 1}
	collected, _, err := c.Collect(t.Context(), n.captures, n.captures)
	if err != nil {
		t.Fatal(err)
	}
	by := batch.Grouping{Keys: []string{"pid"}}
	if _, err := by.Groups(collected); !errors.Is(err, batch.ErrGrouping) {
		t.Errorf("groups by pid: %v", err)
	}
}

// TestFleet: the profiles of 40 captures, one of them broken, equal plain runs by service.
func TestFleet(t *testing.T) {
	n, made := newFleet(t)
	opts := n.options(t.TempDir())
	opts.By.Keys = []string{"service"}
	sum, err := batch.Run(t.Context(), n.captures, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Broken) != 1 || sum.Captures != len(n.captures) || sum.Failed > 1 {
		t.Errorf("%d broken, summary %+v", len(made.Broken), sum)
	}
	want := make(map[string][]byte)
	for service, paths := range byService(n, made) {
		p, layout := load(t, n.session(), paths)
		d := newDemangler()
		layout.Demangle = d.Name
		var profile, folded bytes.Buffer
		if err := errors.Join(pprof.Write(&profile, p, layout), export.Folded(&folded, p,
			export.FoldedOptions{Event: p.DefaultEvent(), Demangler: d})); err != nil {
			t.Fatal(err)
		}
		want[service+batch.FormatPprof], want[service+batch.FormatFolded] = profile.Bytes(), folded.Bytes()
	}
	got := must.Tree(t, opts.Out)
	if len(got) != len(want) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
	for name := range want {
		broken := strings.Contains(made.Broken[0], "/"+strings.SplitN(name, ".", 2)[0]+"/")
		if !broken && !bytes.Equal(got[name], want[name]) {
			t.Errorf("%s: %d bytes, which differ from the %d of a plain run", name, len(got[name]),
				len(want[name]))
		}
	}
}
