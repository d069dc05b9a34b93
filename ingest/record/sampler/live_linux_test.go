package sampler

import (
	"os"
	"testing"
	"time"

	"symbolize/ingest/record/cpulist"
)

func needLive(t *testing.T) {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: loads BPF programs: runs with SYMBOLIZE_LIVE=1 (make live)")
	}
}

// run samples for a while, draining as capture does.
func run(t *testing.T, o Options, d time.Duration) *Sampler {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(s.Close)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s.Drain()
	}
	s.Stop()
	return s
}

// TestLiveClock samples all CPUs.
func TestLiveClock(t *testing.T) {
	needLive(t)
	s := run(t, Options{Frequency: 999}, 2*time.Second)
	st := s.Stats()
	t.Logf("%+v, %d counts", st, len(s.counts.of))
	checkHashes(t, s)
	if cpus, err := cpulist.Online(); err != nil || len(s.fds) != 0 || st.Samples < 500*uint64(len(cpus)) {
		t.Errorf("%d samples on CPUs %v, %v; %d clocks are still open", st.Samples, cpus, err, len(s.fds))
	}
}
