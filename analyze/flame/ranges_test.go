package flame_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"symbolize/analyze"
	"symbolize/analyze/calltree"
	"symbolize/analyze/flame"
	"symbolize/fixtures/profilebuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

// encodedRanges are the ranges of a page.
type encodedRanges struct {
	Start   uint64 `json:",string"`
	Tick    uint64
	Ticks   int
	Threads []struct {
		Name     string
		PID, TID int32
	}
	Series                       [][2]int
	Time, Of, Place, Count, Line []int
	Weight                       []uint64
}

// timedPage returns the data and the ranges of the page of a graph.
func timedPage(t *testing.T, g *flame.Graph) (d decoded, r *encodedRanges, size int) {
	t.Helper()
	var b bytes.Buffer
	if err := g.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`id="ranges">([A-Za-z0-9+/=]*)</script>`).FindSubmatch(b.Bytes())
	if m == nil {
		t.Fatal("the page has no place for ranges")
	}
	if len(m[1]) > 0 {
		packed, err := base64.StdEncoding.DecodeString(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
		if err != nil {
			t.Fatal(err)
		}
		r = &encodedRanges{}
		if err := json.Unmarshal(text, r); err != nil {
			t.Fatal(err)
		}
	}
	return decode(t, data(t, b.Bytes())), r, b.Len()
}

// cell is a weight of a tree: a column at a place.
type cell struct{ column, place int }

// sums adds up the ranges by column and place.
func (r *encodedRanges) sums() map[cell]uint64 {
	sums := make(map[cell]uint64)
	for i := range r.Time {
		sums[cell{r.Series[r.Of[i]][1], r.Place[i]}] += r.Weight[i]
	}
	return sums
}

// cells returns the weights of a tree as sums does.
func (tr *encodedTree) cells() map[cell]uint64 {
	sums := make(map[cell]uint64)
	at := 0
	for k := 0; k < len(tr.Cells); k += 4 {
		at += int(tr.Cells[k])
		for left, v := range tr.Cells[k+2 : k+4] {
			if v > 0 {
				sums[cell{int(tr.Cells[k+1]), 2*at + left}] = v
			}
		}
	}
	return sums
}

// TestRanges: the samples of all times are the tree: column by column, node by node. Their times
// are within a tick of those of a replay.
func TestRanges(t *testing.T) {
	const fixtures = "../../fixtures"
	for _, capture := range []string{"fixed.data", "mixed.data", "bpf.data", "events.data"} {
		s, err := analyze.Open(t.Context(), analyze.Options{
			With: []string{filepath.Join(fixtures, "objects")}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Each(t.Context(), []string{filepath.Join(fixtures, "captures", capture)},
			func(c *input.Capture, p *ingest.Profile) error {
				if _, err := s.Name(t.Context(), p); err != nil {
					return err
				}
				opts := options()
				opts.Keep = ingest.Keep{}
				opts.By = calltree.TreeBy(0, p) // of mixed.data and bpf.data by comm
				g := flame.New(p, opts)
				lines := func(l ingest.LocationID) uint32 { return uint32(l) + 1 }
				if err := c.Replay(t.Context(), g.SetRanges(lines).Add); err != nil {
					return err
				}
				d, r, _ := timedPage(t, g)
				if !maps.Equal(r.sums(), d.Forward.cells()) {
					t.Errorf("%s: the ranges have %v\nwant %v", capture, r.sums(), d.Forward.cells())
				}
				i, at := 0, 0
				return c.Replay(t.Context(), func(q *input.ReplaySample) error {
					at += r.Time[i]
					if tick := int((q.Time - r.Start) / r.Tick); tick != at && capture == "fixed.data" {
						t.Errorf("%s: sample %d is at tick %d, want %d", capture, i, at, tick)
					}
					th := r.Threads[r.Series[r.Of[i]][0]]
					if capture == "fixed.data" && (th.TID != q.TID || r.Line[i] != int(q.Frames[0].Location)+1) {
						t.Errorf("sample %d of thread %d, line %d, want %+v", i, th.TID, r.Line[i], q)
					}
					i = min(i+1, len(r.Time)-1)
					return nil
				})
			})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRangesOfLargePages: the ranges of many stacks fit into the page, coarse ones if need be, with
// the weight of all samples.
func TestRangesOfLargePages(t *testing.T) {
	size := profilebuild.Size{Objects: 98, Functions: 7510, Locations: 40_000, Depth: 30,
		Stacks: sweep.Most(150_000, 50_000)}
	p := profilebuild.Random(1, size)
	g := flame.New(p, flame.Options{Event: -1, Demangler: options().Demangler})
	times := g.SetRanges(nil)
	var want uint64
	err := profilebuild.Replay(p, func(s *input.ReplaySample) error {
		want += s.Period
		return times.Add(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	d, r, n := timedPage(t, g)
	if n > 1_2_000_000 {
		t.Errorf("a page of %d bytes", n)
	}
	if r == nil {
		t.Fatal("no ranges")
	}
	var got uint64
	nodes := 0
	for k, v := range r.sums() {
		got += v
		nodes = max(nodes, k.place/2)
	}
	if diff := max(got, want) - min(got, want); diff > want/100_000 {
		t.Errorf("the ranges weigh %d, want %d", got, want)
	}
	if nodes >= len(d.Forward.Frame) || r.Ticks < 100 {
		t.Errorf("node %d of %d, %d ticks", nodes, len(d.Forward.Frame), r.Ticks)
	}
	t.Logf("%d stacks: page of %d bytes, %d nodes, ranges of %d ticks and %d samples", size.Stacks, n,
		len(d.Forward.Frame), r.Ticks, len(r.Time))
}

// TestRangesOfLabels: samples that have labels without times make a page without ranges.
func TestRangesOfLabels(t *testing.T) {
	p := profilebuild.Shop()
	g := flame.New(p, options())
	times := g.SetRanges(nil)
	err := times.Add(&input.ReplaySample{Comm: "nobody", PID: 1, TID: 1, Time: 1})
	if !errors.Is(err, flame.ErrManyLabels) {
		t.Errorf("%v", err)
	}
	g.DropTimes()
	if _, r, _ := timedPage(t, g); r != nil {
		t.Error("the page has ranges")
	}
}

// TestManySamples: a page of more samples than it reads one by one says so.
func TestManySamples(t *testing.T) {
	b := profilebuild.New(profilebuild.Clock())
	o := b.Object(ingest.Object{File: ingest.FileRef{Path: "/bin/prog"}})
	b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 2_000_000, Weight: 1,
		Stack: []profilebuild.Place{{Object: o, Offset: 1}}})
	if g := flame.New(b.Profile(), options()); g.ManySamples() || len(g.About) > 0 {
		t.Errorf("2,000,000 samples are too many: %v", g.About)
	}
	b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: 1,
		Stack: []profilebuild.Place{{Object: o, Offset: 2}}})
	g := flame.New(b.Profile(), options())
	if !g.ManySamples() || !strings.Contains(g.About[0].Text, "symbolize flamegraph --time") {
		t.Errorf("2,000,001 samples are not too many: %v", g.About)
	}
}
