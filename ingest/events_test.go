package ingest

import "testing"

// TestDefaultEvent: the event of reports that show one.
func TestDefaultEvent(t *testing.T) {
	heap := []Event{{Name: "alloc_space", CountColumn: "alloc_objects"}, {Name: "inuse_space",
		CountColumn: "inuse_objects"}}
	both := []Sample{{Event: 1}, {Event: 0}}
	for _, tc := range []struct {
		name    string
		events  []Event
		samples []Sample
		pprof   *PprofHeader
		want    int
	}{
		{name: "empty"},
		{name: "no samples", events: heap},
		{name: "perf: the first with samples", events: heap, samples: []Sample{{Event: 1}}, want: 1},
		{name: "perf: both have samples", events: heap, samples: both},
		{name: "pprof: the last", events: heap, samples: both, pprof: &PprofHeader{}, want: 1},
		{name: "pprof: the default", events: heap, samples: both,
			pprof: &PprofHeader{DefaultType: "alloc_space"}},
		{name: "pprof: the default is a count", events: heap, samples: both,
			pprof: &PprofHeader{DefaultType: "alloc_objects"}},
		{name: "pprof: the default is not there", events: heap, samples: both,
			pprof: &PprofHeader{DefaultType: "cpu"}, want: 1},
		{name: "pprof: the last has no samples", events: heap, samples: both[1:], pprof: &PprofHeader{}},
		{name: "pprof without types", pprof: &PprofHeader{}},
	} {
		p := Profile{Events: tc.events, Samples: tc.samples, Meta: Meta{Pprof: tc.pprof}}
		if got := p.DefaultEvent(); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}
