package flame_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze"
	"symbolize/analyze/flame"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/fixtures/sweep"
	"symbolize/ingest"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
)

// geckoSample is a sample of a file for the Firefox Profiler.
type geckoSample struct {
	thread int      // in Threads
	at     float64  // ms since the start of the recording
	weight float64  // in the thread's type of weight
	stack  []string // names from the leaf
}

// geckoSamples decodes a file as the Firefox Profiler does.
func geckoSamples(t *testing.T, data []byte) (*geckoFile, []geckoSample) {
	t.Helper()
	f := checkGecko(t, data)
	var names []string
	columns := make(map[string]map[string][]int)
	for table, text := range f.Shared {
		if table == "stringArray" {
			if err := json.Unmarshal(text, &names); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var raw map[string]json.RawMessage
		if err := json.Unmarshal(text, &raw); err != nil {
			t.Fatal(err)
		}
		columns[table] = make(map[string][]int)
		for _, c := range []string{"frame", "prefixOffset", "func", "name"} {
			var list []int
			if json.Unmarshal(raw[c], &list) == nil {
				columns[table][c] = list
			}
		}
	}
	stacks, frames, functions := columns["stackTable"], columns["frameTable"], columns["funcTable"]
	var out []geckoSample
	for number, th := range f.Threads {
		at := 0.0
		for i, stack := range th.Samples.Stack {
			at += th.Samples.TimeDeltas[i]
			s := geckoSample{thread: number, at: at, weight: th.Samples.Weight[i]}
			for n := stack; n != nil; {
				s.stack = append(s.stack,
					names[functions["name"][frames["func"][stacks["frame"][*n]]]])
				distance := stacks["prefixOffset"][*n]
				if distance == 0 {
					break
				}
				up := *n - distance
				n = &up
			}
			out = append(out, s)
		}
	}
	return f, out
}

// timedTexts prints the samples of a file with times, by thread and in its order: pid and tid, the
// time in nanoseconds after the first one, the stack from its root.
func timedTexts(t *testing.T, data []byte) map[string][]string {
	t.Helper()
	f, samples := geckoSamples(t, data)
	out := make(map[string][]string)
	for _, s := range samples {
		slices.Reverse(s.stack)
		key := f.Threads[s.thread].PID + " " + f.Threads[s.thread].TID
		out[key] = append(out[key], fmt.Sprintf("%.0f %s", s.at*1e6, strings.Join(s.stack, ";")))
	}
	return out
}

// TestGeckoTimes: samples are in their threads at the times that a replay has, with the stacks that
// the profile has.
func TestGeckoTimes(t *testing.T) {
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
				g := flame.New(p, options())
				if err := c.Replay(t.Context(), g.SetTimes().Add); err != nil {
					return err
				}
				var b bytes.Buffer
				if err := g.WriteGecko(&b); err != nil {
					return err
				}
				if capture == "fixed.data" {
					golden.Compare(t, "fixed.gecko.json", b.Bytes())
				}
				checkViewers(t, capture, p, g)
				got := timedTexts(t, b.Bytes())
				want, err := replayed(t, c, p)
				if len(got) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: %.3000v\nwant %.3000v", capture, got, want)
				}
				return err
			})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// replayed prints the samples of a capture as timedTexts does.
func replayed(t *testing.T, c *input.Capture, p *ingest.Profile) (map[string][]string, error) {
	t.Helper()
	out := make(map[string][]string)
	first := uint64(0)
	err := c.Replay(t.Context(), func(s *input.ReplaySample) error {
		if first == 0 {
			first = s.Time
		}
		var words []string
		for _, f := range s.Frames {
			frames := p.Names.At(f.Location)
			for _, fr := range frames {
				words = append(words, texts.Printable(p.Names.Functions[fr.Func].SystemName))
			}
			if len(frames) == 0 {
				o := &p.Objects[p.Locations[f.Location].Object]
				words = append(words, "["+strings.Trim(ingest.BaseName(o.File.Path), "[]")+"]")
			}
		}
		slices.Reverse(words)
		tid := fmt.Sprint(s.TID)
		if len(p.Events) > 1 {
			tid += fmt.Sprint(".", s.Event+1)
		}
		key := fmt.Sprint(s.PID, " ", tid)
		out[key] = append(out[key], fmt.Sprintf("%d %s", s.Time-first, strings.Join(words, ";")))
		return nil
	})
	return out, err
}

// TestGeckoManyThreads: the lightest threads share one, and samples without a time come with those
// before them.
func TestGeckoManyThreads(t *testing.T) {
	g := flame.New(profilebuild.EveryKind(), options())
	times := g.SetTimes()
	const threads = 2_100
	samples := 0
	for round := range uint64(3) {
		for tid := range int32(threads) {
			if round > 0 && tid < 110 { // light threads
				continue
			}
			at := 1_000_000 * (1 + round*threads + uint64(tid))
			if tid == 500 {
				at = 0
			}
			samples++
			if err := times.Add(&input.ReplaySample{Comm: "worker", PID: 7, TID: tid, Time: at,
				Period: 5}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var b bytes.Buffer
	if err := g.WriteGecko(&b); err != nil {
		t.Fatal(err)
	}
	f := checkGecko(t, b.Bytes())
	kept, mains := 0, 0
	for _, th := range f.Threads {
		kept += th.Samples.Length
		if th.IsMainThread {
			mains++
		}
	}
	last := f.Threads[0] // of pid 0
	if len(f.Threads) != 2_001 || kept != samples || mains != 1 {
		t.Errorf("%d threads with %d samples of %d, %d main ones", len(f.Threads), kept, samples, mains)
	}
	if !strings.HasPrefix(last.Name, "others") || last.Samples.Length != 100 {
		t.Errorf("%s has %d samples", last.Name, last.Samples.Length)
	}
	if f.Meta.Interval != 2100 {
		t.Errorf("interval %v ms", f.Meta.Interval)
	}
}

// TestGeckoManySamples: a recording that no viewer can show is refused before it fills the memory.
func TestGeckoManySamples(t *testing.T) {
	if !sweep.All() {
		t.Skip("make live adds 4 million samples")
	}
	g := flame.New(profilebuild.EveryKind(), options())
	times := g.SetTimes()
	for i := range uint64(5_000_000) {
		if err := times.Add(&input.ReplaySample{PID: 7, TID: 7, Time: i + 1}); err != nil {
			if !errors.Is(err, flame.ErrManySamples) || i < 4_000_000 || i > 4_100_000 {
				t.Errorf("sample %d: %v", i, err)
			}
			return
		}
	}
	t.Error("5 million samples were kept")
}
