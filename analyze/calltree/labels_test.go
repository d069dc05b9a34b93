package calltree_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/analyze/calltree"
	"symbolize/analyze/table"
	"symbolize/fixtures/pprofrun"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/input/pprof"
)

// labelled returns a pprof file of another profiler, and the profile read from it.
func labelled(t *testing.T) (*ingest.Profile, *profile.Profile) {
	t.Helper()
	prof := profilebuild.Labelled()
	var b bytes.Buffer
	if err := prof.Write(&b); err != nil {
		t.Fatal(err)
	}
	p, err := pprof.Read("x", b.Bytes(), pprof.ReadOptions{
		Keep: ingest.Keep{PID: true, Tags: ingest.AllLabels}})
	if err != nil {
		t.Fatal(err)
	}
	return p, prof
}

// TestLabelsEqualToPprof: filters by labels choose the samples that pprof's -tagfocus and
// -tagignore choose.
func TestLabelsEqualToPprof(t *testing.T) {
	p, prof := labelled(t)
	for _, text := range []string{"endpoint=/buy", "endpoint=/buy,list", "buy", "/(buy|sell)", "blue,1",
		"tenant:.*0", "tenant=^blue$", "nothing", "endpoint=^$", "bytes=1kb:", "bytes=:128b", "1kb:4kb",
		"bytes=256b", "shard=-7", "shard=1:", "pid=100", "pid=101:", "comm=serv", "server", "bytes=1x:2",
		"bytes=1ms:", "tenant=a=b", "bytes=0.5kb:2kb", "4096kb", "bytes=64byte:2kbs"} {
		for _, ignore := range []bool{false, true} {
			filter, err := calltree.ParseTagFilter(text)
			if err != nil {
				t.Fatal(err)
			}
			flt, arg := calltree.Filter{TagFocus: filter}, "-tagfocus="+text
			if ignore {
				flt, arg = calltree.Filter{TagIgnore: filter}, "-tagignore="+text
			}
			top := calltree.NewTop(p, calltree.TopOptions{Options: calltree.Options{Filter: flt,
				By: []calltree.By{calltree.Function}}})
			rows := pprofrun.Top(t, []*profile.Profile{prof}, arg, "-sample_index=cpu")
			comparePprof(t, arg, top, rows)
			if unmatched := len(top.Rows) == 0; !ignore && unmatched != (len(top.Unmatched()) == 1) {
				t.Errorf("%s: %d rows, unmatched %q", arg, len(top.Rows), top.Unmatched())
			}
		}
	}
}

// TestByLabel: sums by label equal pprof's with -tagroot, but for the text of numbers and of
// samples that lack the label.
func TestByLabel(t *testing.T) {
	p, prof := labelled(t)
	for _, key := range []string{"endpoint", "tenant", "bytes", "shard"} {
		top := calltree.NewTop(p, calltree.TopOptions{Options: calltree.Options{
			By: []calltree.By{calltree.By(ingest.LabelTag + key), calltree.Function}}})
		theirs := make(map[string]int64)
		for _, r := range pprofrun.Top(t, []*profile.Profile{prof}, "-tagroot="+key,
			"-sample_index=cpu") {
			theirs[r.Name] = r.Cum
		}
		for _, r := range top.Rows {
			name := strings.TrimPrefix(r.Name, "shard ")
			if number, ok := strings.CutPrefix(name, "bytes "); ok {
				name = number + "B"
			}
			if name == "[no "+key+"]" {
				name = "<unknown>"
			}
			if theirs[name] != int64(r.Cum) {
				t.Errorf("%s: %s has %d, pprof %d: %v", key, r.Name, r.Cum, theirs[name], theirs)
			}
		}
	}
	all := calltree.NewTop(p, calltree.TopOptions{Options: calltree.Options{By: []calltree.By{calltree.Label}}})
	var got []string
	for _, r := range all.Rows {
		got = append(got, r.Name)
	}
	if want := "comm [no comm], pid 0, bytes 128, endpoint /sell, shard 2, shard -7"; !slices.Contains(got, want) {
		t.Errorf("no %q in %q", want, fmt.Sprint(got))
	}
}

// TestLatency: weights are divided by the parallelism of the samples; the table of top has both.
func TestLatency(t *testing.T) {
	p, _ := labelled(t)
	plain := calltree.NewTop(p, calltree.TopOptions{})
	tagged := func(value string) ingest.StringID {
		p.Strings = append(p.Strings, ingest.JoinTags(ingest.ParallelismTag, value))
		return ingest.StringID(len(p.Strings) - 1)
	}
	total, overhead := uint64(0), uint64(0)
	four, odd := tagged("4"), tagged("many")
	for i := range p.Samples {
		s := &p.Samples[i]
		if s.Event != 0 {
			continue
		}
		s.Tags = []ingest.StringID{0, four, odd}[i%3]
		overhead += s.Weight
		if s.Tags == four {
			total += s.Weight / 4
		} else {
			total += s.Weight
		}
	}
	top := calltree.NewTop(p, calltree.TopOptions{Options: calltree.Options{Latency: true}})
	if top.Total != total || top.Overhead != overhead || plain.Total != overhead || !top.Latency {
		t.Fatalf("total %d of %d, want %d of %d", top.Total, top.Overhead, total, overhead)
	}
	flat := make(map[string]uint64)
	for _, r := range plain.Rows {
		flat[r.Name] = r.Flat
	}
	less := 0
	for _, r := range top.Rows {
		if r.Overhead != flat[r.Name] || r.Flat > r.Overhead {
			t.Errorf("%s: %d of %d, want of %d", r.Name, r.Flat, r.Overhead, flat[r.Name])
		}
		if r.Flat < r.Overhead {
			less++
		}
	}
	var b bytes.Buffer
	if err := top.WriteText(&b, table.Style{}); err != nil || less == 0 ||
		!strings.Contains(b.String(), "latency latency% overhead  ") {
		t.Errorf("%d rows with less; %v\n%s", less, err, b.String())
	}
}
