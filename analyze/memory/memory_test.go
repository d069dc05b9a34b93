package memory

import (
	"encoding/json"
	"slices"
	"testing"

	"symbolize/ingest"
)

func TestSums(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []ingest.Tag // two tags of each sample, which counts 1, 2, 3 …
		columns []string
		json    string
	}{
		{name: "nothing recorded", columns: make([]string, 7), json: "{}"},
		{name: "levels and latency", samples: []ingest.Tag{
			{Key: ingest.MemoryTag, Text: "L1 hit"}, {Key: ingest.LatencyTag, Numeric: true, Number: 4},
			{Key: ingest.MemoryTag, Text: "Remote RAM (1 hop) hit"}, {Key: ingest.LatencyTag, Numeric: true, Number: 400},
			{Key: ingest.MemoryTag, Text: "L3 miss"}, {Key: "comm", Text: "x"},
			{Key: ingest.MemoryTag, Text: "N/A"}, {Key: "comm", Text: "x"}},
			columns: []string{"16.67", "", "", "", "33.33", "50.00", "268.0"},
			json:    `{"levels":{"L1 hit":1,"L3 miss":3,"Remote RAM (1 hop) hit":2},"latency":804,"latency_samples":3}`},
		{name: "latency alone", samples: []ingest.Tag{{Key: ingest.LatencyTag, Numeric: true, Number: 7}, {Key: "comm", Text: "x"}},
			columns: []string{"", "", "", "", "", "", "7.0"}, json: `{"latency":7,"latency_samples":1}`},
	} {
		var s Sums
		for i := 0; i < len(c.samples); i += 2 {
			p := &ingest.Profile{Strings: []string{"", ingest.EncodeTags(c.samples[i : i+2])}}
			s.Add(p, &ingest.Sample{Tags: 1, Count: uint64(i/2 + 1)})
		}
		if got := s.Columns(); !slices.Equal(got, c.columns) {
			t.Errorf("%s: columns %q, want %q", c.name, got, c.columns)
		}
		if got, err := json.Marshal(&s); err != nil || string(got) != c.json {
			t.Errorf("%s: %s %v, want %s", c.name, got, err, c.json)
		}
		if len(Titles()) != len(c.columns) || s.Empty() != (len(c.samples) == 0) {
			t.Errorf("%s: titles %q, empty %t", c.name, Titles(), s.Empty())
		}
	}
}
