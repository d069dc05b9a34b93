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

// TestMatchEvent: an event is compared with the one of its name, else with the only one that differs
// by modifiers, or by pprof's name of the clocks.
func TestMatchEvent(t *testing.T) {
	for _, tc := range []struct {
		names, name string // units are counts, those of the clocks and of cpu nanoseconds
		want        int
	}{
		{names: "cycles cpu-clock:u", name: "cpu-clock:u", want: 1},
		{names: "cpu", name: "cpu-clock:u", want: 0},
		{names: "cpu-clock:u", name: "cpu", want: 0},
		{names: "cpu-clock:u cpu-clock:k", name: "cpu", want: -1},
		{names: "task-clock", name: "cpu-clock", want: -1},
		{names: "cycles:uppp instructions:uppp", name: "instructions", want: 1},
		{names: "cycles:k", name: "cycles:u", want: -1},
		{names: "cycles:u cycles", name: "cycles", want: 1},
		{names: "sched:sched_wakeup", name: "sched:sched_switch", want: -1},
		{names: "sched:sched_switch", name: "sched", want: -1},
		{names: "page-faults", name: "cpu", want: -1},
		{names: "", name: "cpu", want: -1},
	} {
		event := func(name string) Event {
			e := Event{Name: name, Unit: "count"}
			if e.IsClock() || name == "cpu" {
				e.Unit = "nanoseconds"
			}
			return e
		}
		var events []Event
		for _, name := range strings.Fields(tc.names) {
			events = append(events, event(name))
		}
		e := event(tc.name)
		if got := MatchEvent(events, &e); got != tc.want {
			t.Errorf("%s among %s: %d, want %d", tc.name, tc.names, got, tc.want)
		}
	}
	if e := (Event{Name: "cpu", Unit: "count"}); MatchEvent([]Event{{Name: "cpu", Unit: "nanoseconds"}}, &e) >= 0 {
		t.Error("events of two units match")
	}
}

func TestModes(t *testing.T) {
	for name, want := range map[string]string{"cycles": "", "cycles:u": "u", "cycles:ukpp": "uk", "cycles:P": "",
		"cpu-clock:k": "k", "sched:sched_switch": "", "cpu": ""} {
		if got := (&Event{Name: name}).Modes(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
