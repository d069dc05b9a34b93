package sampler

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"symbolize/fixtures/must"
)

// spinFor makes the test binary run as a load. Linked by Go, it has no build ID that the kernel
// reads.
const spinFor = "SYMBOLIZE_SAMPLER_SPIN"

func TestMain(m *testing.M) {
	if d, err := time.ParseDuration(os.Getenv(spinFor)); err == nil {
		for end := time.Now().Add(d); time.Now().Before(end); {
			sink += burn()
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sink has burn's result used.
var sink uint64

// burn has few addresses to be sampled at: a second process has no stack of its own.
//
//go:noinline
func burn() (x uint64) {
	for range 20_000_000 {
		x = x*6364136223846793005 + 1
	}
	return x
}

func spinner(t *testing.T, d time.Duration) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), spinFor+"="+d.String(), "GOMAXPROCS=1")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t *testing.T, o Options) *Sampler {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(s.Close)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// checkHashes checks that each stack has the hash that hashOf computes, and each sample is counted
// or lost.
func checkHashes(t *testing.T, s *Sampler) {
	t.Helper()
	buf := make([]byte, Depth*userFrame)
	for _, x := range s.tables {
		if x.flush(); x.err != nil {
			t.Fatal(x.err)
		}
		for h, id := range x.ids {
			if !x.received(id) {
				continue
			}
			frames, err := x.read(id, buf)
			if err != nil {
				t.Fatal(err)
			}
			var words []uint64
			for ; len(frames) > 0; frames = frames[8:] {
				words = append(words, binary.NativeEndian.Uint64(frames))
			}
			if got := hashOf(words); got != h {
				t.Fatalf("kind %d, stack %d: the kernel's hash is %x, ours %x", x.kind, id, h, got)
			}
		}
	}
	if st := checkTotal(t, s); st.UserStacks == 0 {
		t.Errorf("%+v", st)
	}
}

// TestLiveHash compares the program's hashes with Go's, for all kinds of stacks.
func TestLiveHash(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	c := spinner(t, time.Second)
	checkHashes(t, run(t, Options{Frequency: 999}, 800*time.Millisecond))
	c.Wait()
}

// TestLiveShortLived: each process with bare addresses is reported while it runs, even if another
// process sent all of its stacks before.
func TestLiveShortLived(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	reported := map[int32]bool{}
	s := start(t, Options{Frequency: 99, Mappings: func(pid int32) { reported[pid] = true }})
	const runs, lasts = 12, 300 * time.Millisecond
	late := 0
	for i := range 1 + runs {
		d := lasts
		if i == 0 {
			d = 2 * time.Second // this one's stacks are those of all
		}
		c := spinner(t, d)
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			case <-time.After(20 * time.Millisecond):
				s.Drain()
			}
		}
		if !reported[int32(c.Process.Pid)] {
			late++
		}
	}
	// 0.3 s are 30 samples, of which the first with each stack need not report the process.
	if late > runs/4 {
		t.Errorf("%d of %d processes were not reported while they ran", late, runs)
	}
}

// TestLiveWoken: a process with bare addresses ends a Wait once, as does another process with the
// same program. Wake ends all waits.
func TestLiveWoken(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	procs := []*exec.Cmd{spinner(t, 4*time.Second), spinner(t, 4*time.Second)}
	reported := map[int32]int{}
	s := start(t, Options{Frequency: 999, PIDs: []int{procs[0].Process.Pid},
		Mappings: func(pid int32) { reported[pid]++ }})
	const quiet = 200 * time.Millisecond
	for i, c := range procs {
		pid := c.Process.Pid
		if i > 0 {
			if err := s.maps.pids.Delete(uint32(procs[i-1].Process.Pid)); err != nil {
				t.Fatal(err)
			}
			if err := s.maps.pids.Put(uint32(pid), uint32(1)); err != nil {
				t.Fatal(err)
			}
		}
		for reported[int32(pid)] == 0 { // for ever, if nothing wakes it
			s.Wait(time.Hour)
			s.Drain()
		}
		begin := time.Now()
		if s.Wait(quiet) {
			t.Errorf("process %d woke the reader a second time, after %v", i, time.Since(begin))
		}
	}
	s.Wake()
	s.Wait(time.Hour)
	s.Wait(time.Hour)
	for _, c := range procs {
		c.Wait()
	}
}

// TestLiveOffCPU wants the time that a process sleeps, and no memory of ended threads.
func TestLiveOffCPU(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	s := start(t, Options{Event: Event{Kind: OffCPU}})
	for range 50 {
		if err := exec.CommandContext(t.Context(), "true").Run(); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "sleep", "0.5")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	var thread uint32
	var value [scratchRecord]byte
	ended, threads := 0, s.maps.threads.Iterate()
	for threads.Next(&thread, &value) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", thread)); err != nil {
			ended++
		}
	}
	s.Stop()
	checkHashes(t, s)
	var slept time.Duration
	for k, v := range s.counts.of {
		if k.pid == uint32(c.Process.Pid) {
			slept += time.Duration(v.Weight)
		}
	}
	// The time before it is off CPU, with its timer running, is none of it.
	if slept < 450*time.Millisecond || slept > 5*time.Second {
		t.Errorf("sleep 0.5 was off CPU for %v", slept)
	}
	if ended > 10 { // of other programs that end meanwhile
		t.Errorf("%d threads that have ended are remembered", ended)
	}
}
