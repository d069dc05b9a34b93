package sampler

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/fixtures/must"
)

// ofPID sums the counts of a process.
func (s *Sampler) ofPID(pid int) (v countValue) {
	for k, x := range s.counts.of {
		if k.pid == uint32(pid) {
			v.Count += x.Count
			v.Weight += x.Weight
		}
	}
	return v
}

// checkTotal wants each sample to be counted, or lost for one cause.
func checkTotal(t *testing.T, s *Sampler) Stats {
	t.Helper()
	st, sum := s.Stats(), s.counts.total()
	for cause, n := range st.Lost {
		if cause != LostRing && cause != LostStacks { // these are counted
			sum += n
		}
	}
	if sum != st.Samples || st.Samples == 0 {
		t.Errorf("%d samples are counted or lost, of %d: %v", sum, st.Samples, st.Lost)
	}
	if st.KernelMemory == 0 || st.KernelMemory > MaxKernelMemory {
		t.Errorf("%d bytes of kernel memory", st.KernelMemory)
	}
	return st
}

// compile makes a program of C.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "load.c"), filepath.Join(dir, "load")
	must.Write(t, from, []byte(source))
	out, err := exec.CommandContext(t.Context(), "gcc", append(flags, "-O1",
		"-fno-omit-frame-pointer", "-o", to, from)...).CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: gcc: %v\n%s", err, out)
	}
	return to
}

// finish runs a command to its end, draining meanwhile, and returns its process.
func finish(t *testing.T, s *Sampler, name string, args ...string) (pid int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return c.Process.Pid
		case <-time.After(20 * time.Millisecond):
			s.Drain()
		}
	}
}

// onlyDrained requires that samples are lost only by the emptying of counts, and few, and returns
// their number.
func onlyDrained(t *testing.T, st Stats) uint64 {
	t.Helper()
	const few = 8 // TestLiveDrained has one in 60 drains
	n := st.Lost[LostDrain]
	if len(st.Lost) > 1 || len(st.Lost) == 1 && n == 0 || n > few {
		t.Errorf("lost: %v", st.Lost)
	}
	return n
}

// TestLiveTracepoint counts every read of dd: two runs that differ by 2,000 reads differ by 2,000
// samples, except for samples reported as lost.
func TestLiveTracepoint(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	s := start(t, Options{Event: Event{Kind: Tracepoint, Group: "syscalls", Name: "sys_enter_read"}})
	dd := func(n int) int {
		return finish(t, s, "dd", "if=/dev/zero", "of=/dev/null", "bs=1", fmt.Sprint("count=", n),
			"status=none")
	}
	few, many := dd(1000), dd(3000)
	s.Stop()
	st := checkTotal(t, s)
	a, b := s.ofPID(few).Count, s.ofPID(many).Count
	lost := onlyDrained(t, st)
	if a+lost < 1000 || b+lost < a+2000 || b > a+2000+lost {
		t.Errorf("%d and %d reads, %v lost", a, b, st.Lost)
	}
}

// TestLiveUprobe counts the calls of a function.
func TestLiveUprobe(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	path := compile(t, `
volatile int n;
__attribute__((noinline)) void hit(void) { n++; }
__attribute__((noinline)) void other(void) { n++; }
int main(void) { for (int i = 0; i < 12345; i++) { hit(); other(); } return 0; }
`)
	s := start(t, Options{Event: Event{Kind: Uprobe, Path: path, Function: "hit"}})
	pid := finish(t, s, path)
	s.Stop()
	st := checkTotal(t, s)
	if n := s.ofPID(pid).Count; st.Samples != 12345 || n+onlyDrained(t, st) != 12345 {
		t.Errorf("%d calls of 12345, %d samples, %v lost", n, st.Samples, st.Lost)
	}
	// hit from main from libc: the probe is at the function's first instruction.
	if st.UserStacks != 1 {
		t.Errorf("%d stacks of users", st.UserStacks)
	}
}

// TestLiveNoEvent: a missing event is an error that names it.
func TestLiveNoEvent(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	for _, e := range []Event{
		{Kind: Tracepoint, Group: "sched", Name: "no_such_tracepoint"},
		{Kind: Uprobe, Path: "/no/such/file", Function: "f"},
		{Kind: Uprobe, Path: os.Args[0], Function: "no_such_function"},
	} {
		s, err := New(Options{Event: e})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err == nil || !strings.Contains(err.Error(), e.String()) {
			t.Errorf("%s: error %v", e, err)
		}
		s.Close()
	}
	if _, err := New(Options{Cgroup: "/proc"}); err == nil {
		t.Error("/proc is taken for a control group")
	}
}

// TestLiveSleeper compares the time that a program is off CPU with its own measurement: elapsed
// time less CPU time.
func TestLiveSleeper(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	path := compile(t, `
#include <stdio.h>
#include <time.h>
static double now(clockid_t c)
{
	struct timespec t;
	clock_gettime(c, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int argc, char **argv)
{
	double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < 60; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, 0);
	FILE *f = fopen(argv[1], "w");
	fprintf(f, "%f", now(CLOCK_MONOTONIC) - wall - (now(CLOCK_PROCESS_CPUTIME_ID) - cpu));
	return fclose(f);
}
`)
	out := filepath.Join(t.TempDir(), "off")
	s := start(t, Options{Event: Event{Kind: OffCPU}})
	pid := finish(t, s, path, out)
	// This thread is off CPU until after the end.
	c := exec.CommandContext(t.Context(), "sleep", "30")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	s.Stop()
	stop(c)
	checkTotal(t, s)
	text := must.Read(t, out)
	var want float64
	if _, err := fmt.Sscan(string(text), &want); err != nil || want < 1.2 {
		t.Fatal(want, err)
	}
	v := s.ofPID(pid)
	if got := float64(v.Weight) / 1e9; got < 0.9*want || got > 1.1*want || v.Count < 50 { // some switches are missed
		t.Errorf("off CPU for %.3f s in %d pieces, by its own account for %.3f s", got, v.Count, want)
	}
	if v := s.ofPID(c.Process.Pid); v.Weight < 2e8 || v.Weight > 2e9 {
		t.Errorf("a program that slept till the end was off CPU for %.3f s", float64(v.Weight)/1e9)
	}
}

// TestLivePIDs and TestLiveCgroup want nothing of others.
func TestLivePIDs(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	wanted, other := spinner(t, time.Minute), spinner(t, time.Minute)
	defer stop(wanted)
	defer stop(other)
	checkOnly(t, Options{Frequency: 999, PIDs: []int{wanted.Process.Pid}}, wanted.Process.Pid)
}

func stop(c *exec.Cmd) {
	c.Process.Kill()
	c.Wait()
}

// checkOnly waits for 200 samples, and requires all of them to be of one process.
func checkOnly(t *testing.T, o Options, pid int) {
	t.Helper()
	s := start(t, o)
	for end := time.Now().Add(15 * time.Second); s.stat(statSamples) < 200; s.Drain() {
		if time.Now().After(end) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Stop()
	st := checkTotal(t, s)
	if n := s.ofPID(pid).Count; n < 200 || n != st.Samples {
		t.Errorf("%d of %d samples are of process %d", n, st.Samples, pid)
	}
}

func TestLiveCgroup(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	root := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			root = dir
		}
	}
	if root == "" {
		root = t.TempDir()
		if err := unix.Mount("cgroup2", root, "cgroup2", 0, ""); err != nil {
			t.Skipf("SKIPPED: no cgroup v2: %v", err)
		}
		t.Cleanup(func() { unix.Unmount(root, 0) })
	}
	group := filepath.Join(root, fmt.Sprintf("symbolize-test-%d", os.Getpid()))
	below := filepath.Join(group, "below")
	for _, dir := range []string{group, below} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
		defer os.Remove(dir)
	}
	dir, err := os.Open(below)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), spinFor+"=1m", "GOMAXPROCS=1")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(c)
	other := spinner(t, time.Minute)
	defer stop(other)
	checkOnly(t, Options{Frequency: 999, Cgroup: group}, c.Process.Pid)
}

// clockTime sums the counts of the clocks, ns.
func (s *Sampler) clockTime(t *testing.T) (sum uint64) {
	t.Helper()
	for _, fd := range s.fds {
		var b [8]byte
		if n, err := unix.Read(fd, b[:]); n != 8 {
			t.Fatal(n, err)
		}
		sum += binary.NativeEndian.Uint64(b[:])
	}
	return sum
}

// TestLiveLoss samples all CPUs at 999 Hz for 4 s, while two Go programs calculate, dd reads and a
// shell starts programs: at most 0.1 % of the samples are lost. A larger share of the clocks' own
// time is missing: a late timer, on a busy host or in a guest, is one sample for several periods,
// as with perf, and nothing is sampled while the bpf system call or a BPF program runs.
func TestLiveLoss(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	loads := []*exec.Cmd{spinner(t, time.Minute), spinner(t, time.Minute),
		exec.CommandContext(t.Context(), "dd", "if=/dev/zero", "of=/dev/null", "bs=64k"),
		exec.CommandContext(t.Context(), "sh", "-c", "while :; do /bin/true; done")}
	for _, c := range loads[2:] {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, c := range loads {
			stop(c)
		}
	}()
	s := start(t, Options{Frequency: 999})
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		s.Drain()
	}
	clock := s.clockTime(t)
	s.Stop()
	st := checkTotal(t, s)
	var lost uint64
	for _, n := range st.Lost {
		lost += n
	}
	if float64(lost) > 0.001*float64(st.Samples) || st.Samples < 4000 {
		t.Errorf("%d of %d samples are lost: %v", lost, st.Samples, st.Lost)
	}
	ticks := float64(clock) / float64(clockPeriod(999))
	// How many fewer depends on other users of BPF on the host: it is measured, not bounded.
	if float64(st.Samples) < 0.5*ticks || float64(st.Samples) > 1.01*ticks+10 {
		t.Errorf("%d samples, the clocks' time makes %.0f", st.Samples, ticks)
	}
	t.Logf("%d samples, %d lost; the clocks' time makes %.0f; %d and %d stacks, %.1f MB",
		st.Samples, lost, ticks, st.UserStacks, st.KernelStacks, float64(st.KernelMemory)/1e6)
}
