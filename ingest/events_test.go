package ingest

import (
	"strings"
	"testing"
)

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

// TestEventNamed: a name without modifiers means the only event that has some.
func TestEventNamed(t *testing.T) {
	for _, tc := range []struct {
		names string
		name  string
		want  int
	}{
		{names: "cycles:uppp", name: "cycles", want: 0},
		{names: "cycles:u cycles", name: "cycles", want: 1},
		{names: "cycles:u cycles:k", name: "cycles", want: -1},
		{names: "cycles:u", name: "cycle", want: -1},
		{names: "cycles", name: "cycles:u", want: -1},
		{names: "x sched:sched_switch", name: "sched", want: 1},
		{names: "x", name: "", want: -1},
	} {
		if got := EventNamed(strings.Fields(tc.names), tc.name); got != tc.want {
			t.Errorf("%q of %s: %d, want %d", tc.name, tc.names, got, tc.want)
		}
	}
}
