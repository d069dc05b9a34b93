package sampler

import (
	"os/exec"
	"testing"
	"time"

	"symbolize/fixtures/must"
	"symbolize/ingest/record/sys"
)

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

// TestLiveClock samples all CPUs; nothing but its own program may run on them.
func TestLiveClock(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	c := spinner(t, time.Minute)
	defer stop(c)
	s := run(t, Options{Frequency: 999}, 2*time.Second)
	st := s.Stats()
	t.Logf("%+v, %d counts", st, len(s.counts.of))
	checkHashes(t, s)
	if cpus, err := sys.OnlineCPUs(); err != nil || len(s.fds) != 0 || st.Samples < 500*uint64(len(cpus)) {
		t.Errorf("%d samples on CPUs %v, %v; %d clocks are still open", st.Samples, cpus, err, len(s.fds))
	}
}

// TestLiveFull provokes losses that the maps' usual sizes prevent: each map full, and
// stacks forgotten by the kernel. Totals hold, and each loss has its cause. The load runs until
// that is met: how many samples it has depends on the machine.
func TestLiveFull(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	syscalls := Event{Kind: Tracepoint, Group: "raw_syscalls", Name: "sys_enter"}
	for _, c := range []struct {
		name  string
		o     Options
		drain bool
		cause string // that must be met
		stat  uint32 // by which the kernel's side counts it
	}{
		{name: "ring", o: Options{Frequency: 999, sizes: mapSizes{ring: 8192}}, cause: LostRing,
			stat: statNoRing},
		{name: "counts", o: Options{Event: syscalls, sizes: mapSizes{counts: 8}},
			cause: LostCounts, stat: statNoCount},
		{name: "threads", o: Options{Event: Event{Kind: OffCPU}, sizes: mapSizes{threads: 2}},
			drain: true, cause: LostOffCPU, stat: statNoThread},
		{name: "seen", o: Options{Event: syscalls, sizes: mapSizes{seen: 16}}, drain: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, c.o)
			for end := time.Now().Add(time.Minute); ; {
				listFiles(t, s, c.drain)
				if c.cause == "" || s.stat(c.stat) > 0 || time.Now().After(end) {
					break
				}
			}
			s.Stop()
			st := checkTotal(t, s)
			checkHashes(t, s)
			if c.cause != "" && st.Lost[c.cause] == 0 {
				t.Errorf("lost %v, want %q", st.Lost, c.cause)
			}
			for cause := range st.Lost { // repeated records may fill the ring
				if c.cause == "" && cause != LostRing {
					t.Errorf("lost %v", st.Lost)
				}
			}
			t.Logf("%+v", st)
		})
	}
}

// listFiles runs a load of many stacks and system calls to its end, draining meanwhile or not.
func listFiles(t *testing.T, s *Sampler, drain bool) {
	t.Helper()
	load := exec.CommandContext(t.Context(), "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do "+
		"ls -R /usr/lib/x86_64-linux-gnu | sort | cksum; done")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- load.Wait() }()
	for {
		select {
		case <-done:
			return
		case <-time.After(20 * time.Millisecond):
			if drain {
				s.Drain()
			}
		}
	}
}

// TestLiveDrained empties the counts all the time while two CPUs add to them: a sample that
// falls in between is reported as lost, and there are few.
func TestLiveDrained(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	s := start(t, Options{Event: Event{Kind: Tracepoint, Group: "raw_syscalls", Name: "sys_enter"},
		sizes: mapSizes{counts: 4096}})
	dd := exec.CommandContext(t.Context(), "dd", "if=/dev/zero", "of=/dev/null", "bs=1",
		"count=40000", "status=none")
	if err := dd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- dd.Wait() }()
	emptied := 0
	for ended := false; !ended; emptied++ {
		select {
		case <-done:
			ended = true
		default:
			s.readRing()
			s.readCounts()
		}
	}
	s.Stop()
	st := checkTotal(t, s)
	if n := s.ofPID(dd.Process.Pid).Count + st.Lost[LostDrain]; n < 80_000 {
		t.Errorf("%d of 80000 calls", n)
	}
	if n := st.Lost[LostDrain]; n > uint64(2*emptied) {
		t.Errorf("%d samples are lost by emptying the counts %d times", n, emptied)
	}
	t.Logf("emptied %d times: %+v", emptied, st)
}
