package capturecmd

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"symbolize/ingest/record"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/texts"
)

// TestCaptureFacts has lists where nothing is in them, and leaves out facts that were not asked
// for.
func TestCaptureFacts(t *testing.T) {
	text := func(s *record.Summary) string {
		var b strings.Builder
		if err := texts.WriteJSON(&b, "capture-summary/1", newCaptureFacts("x.data", s)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	empty := text(&record.Summary{})
	for _, want := range []string{`"missing_programs": []`, `"warnings": []`, `"lost": {}`} {
		if !strings.Contains(empty, want) {
			t.Errorf("no %s in %s", want, empty)
		}
	}
	for _, name := range []string{"bpf_runs", "stacks", "command"} {
		if strings.Contains(empty, name) {
			t.Errorf("%s in %s", name, empty)
		}
	}
	full := text(&record.Summary{
		Programs: 2, Missing: []record.MissingProgram{{ID: 7, Symbol: "f", Reason: "gone"}},
		Lost:    map[string]uint64{"records of the rings": 3},
		BPFRuns: &record.BPFRuns{Runs: 5, Time: time.Microsecond},
		Stacks:  &sampler.Stats{Samples: 11},
		Command: record.CommandStatus{Run: true, Status: -1, Signal: syscall.SIGTERM,
			Elapsed: 1500 * time.Millisecond},
	})
	for _, want := range []string{`"bpf_programs": 2`, `"id": 7`, `"records of the rings": 3`,
		`"run_time_ns": 1000`, `"samples": 11`, `"signal": "terminated"`, `"seconds": 1.5`} {
		if !strings.Contains(full, want) {
			t.Errorf("no %s in %s", want, full)
		}
	}
}
