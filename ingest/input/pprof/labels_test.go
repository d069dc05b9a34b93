package pprof_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/input/pprof"
)

// sampleTexts adds up the samples of a pprof file by stack and labels.
func sampleTexts(p *profile.Profile, keys ...string) string {
	sums := make(map[string]int64)
	for _, s := range p.Sample {
		text := ""
		for _, l := range s.Location {
			text += l.Line[0].Function.Name + " "
		}
		for _, k := range keys {
			text += fmt.Sprint(k, s.Label[k], s.NumLabel[k], s.NumUnit[k], " ")
		}
		sums[text] += s.Value[1]
	}
	return strings.ReplaceAll(fmt.Sprint(sums), " main ", "\n main ")
}

// TestForeignLabels: a file that is read with all labels and written again has them all; one that
// is read with some has those.
func TestForeignLabels(t *testing.T) {
	prof := profilebuild.Labelled()
	var b bytes.Buffer
	if err := prof.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tags string
		keys []string
		warn string
	}{
		{tags: "label", keys: []string{"endpoint", "tenant", "bytes", "shard", "comm", "pid"}},
		{tags: "label:endpoint,label:bytes", keys: []string{"endpoint", "bytes"},
			warn: "labels not kept: shard, tenant"},
		{tags: "label:colour", warn: "no sample has the label colour"},
	} {
		p, err := pprof.Read("x", b.Bytes(), pprof.ReadOptions{Keep: ingest.Keep{PID: true, Tags: tt.tags}})
		if err != nil {
			t.Fatal(err)
		}
		back := parse(t, write(t, p, pprof.WriteOptions{}))
		if got, want := sampleTexts(back, tt.keys...), sampleTexts(prof, tt.keys...); got != want {
			t.Errorf("%s: %s\nwant %s", tt.tags, got, want)
		}
		if text := fmt.Sprint(p.Stats.Warnings); !strings.Contains(text, tt.warn) ||
			tt.warn == "" && len(p.Stats.Warnings) > 0 {
			t.Errorf("%s: warnings %s", tt.tags, text)
		}
	}
}

// TestLabelsBounded: labels that refer to long strings again and again do not fill the memory.
func TestLabelsBounded(t *testing.T) {
	f := newForeign()
	l := f.location(f.mapping(profile.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/x"}), 0x1100)
	long := strings.Repeat("x", 1<<20)
	for i := range 200 {
		s := f.sample(l)
		s.Label = map[string][]string{"sql": {long}}
		s.NumLabel = map[string][]int64{"row": {int64(i + 1)}}
	}
	data := f.bytes(t)
	var p *ingest.Profile
	used := allocated(func() {
		var err error
		p, err = pprof.Read("x", data, pprof.ReadOptions{Keep: ingest.Keep{Tags: "label"}})
		if err != nil {
			t.Fatal(err)
		}
	})
	if used > 400<<20 {
		t.Errorf("%d MiB for a file of %d bytes", used>>20, len(data))
	}
	if text := fmt.Sprint(p.Stats.Warnings); !strings.Contains(text, "labels of 137 samples left out") {
		t.Errorf("warnings %s", text)
	}
	if p.Stats.Samples != 200 {
		t.Errorf("%d samples", p.Stats.Samples)
	}
}
