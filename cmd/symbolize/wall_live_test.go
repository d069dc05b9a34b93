//go:build linux

package main

import (
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// sleeperSource sleeps for 1 s, 0.2 s at a time, and runs for 1 s of its processor time. It prints
// the time from main's begin to its end, in ns.
const sleeperSource = `
#include <stdio.h>
#include <time.h>
static long at(clockid_t c) {
	struct timespec t;
	clock_gettime(c, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}
__attribute__((noinline)) void nap(void) {
	struct timespec t = {0, 200000000};
	nanosleep(&t, 0);
}
__attribute__((noinline)) void burn(void) {
	for (long end = at(CLOCK_PROCESS_CPUTIME_ID) + 200000000; at(CLOCK_PROCESS_CPUTIME_ID) < end;)
		;
}
int main(void) {
	long began = at(CLOCK_MONOTONIC);
	for (int i = 0; i < 5; i++) {
		nap();
		burn();
	}
	printf("%ld\n", at(CLOCK_MONOTONIC) - began);
	return 0;
}
`

// recordWall records the sleeper by capture, beside perf, and returns what it printed.
func recordWall(t *testing.T, in func(string) string, said *strings.Builder) []byte {
	t.Helper()
	c := exec.Command("perf", "record", "-q", "-a", "-g", "-m", "4M", "--switch-events", "-e",
		"cpu-clock/freq=499/,sched:sched_switch", "-o", in("perf.data"), "--", liveBinary(t), "capture", "-o",
		in("wall.data"), "--stacks", "--wall", "-F", "499", "--", in("sleeper"))
	c.Stderr = said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	return out
}

// TestLiveWall: with --wall the time of a program adds up to its lifetime, and is divided into the
// time in which it slept, ran, and was ready to run; so does that of a perf.data of the same time.
func TestLiveWall(t *testing.T) {
	needLive(t, "perf", "gcc")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must.Write(t, in("sleeper.c"), []byte(sleeperSource))
	command(t, dir, "gcc", "-O1", "-fno-omit-frame-pointer", "-o", "sleeper", "sleeper.c")
	// Linux 6.18 drops switches of threads in which a sample was interrupted, see skipDropped: a
	// recording that says so is made again.
	const tries = 4
	var said strings.Builder
	var out []byte
	for try := 1; try == 1 || try <= tries && strings.Contains(said.String(), "a thread ran again unseen"); try++ {
		said.Reset()
		out = recordWall(t, in, &said)
	}
	lived, err := time.ParseDuration(strings.TrimSpace(string(out)) + "ns")
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	runMain(t, "index", "--quiet", "--store", in("store"), in("sleeper"))
	topOf := func(file string, args ...string) string {
		env, stdout, stderr := inProcess(append([]string{"top", "--quiet", "--store", in("store"),
			"--comm", "sleeper", in(file)}, args...)...)
		// Other threads and programs of a busy machine may be lost, which is status 3.
		if code := Main(t.Context(), env); code != cli.OK && code != cli.Partial {
			t.Fatalf("top %v: status %d\n%s", args, code, stderr)
		}
		return stdout.String()
	}
	top := func(args ...string) string { return topOf("wall.data", args...) }
	states := top("--event", "wall", "--by", "state")
	near := func(what string, got, want time.Duration) {
		t.Helper()
		t.Logf("%s: %v of %v", what, got, want)
		if math.Abs(float64(got-want)) > 0.05*float64(want) {
			t.Errorf("%s: %v, want %v within 5 %%:\n%s%s", what, got, want, states, said.String())
		}
	}
	near("wall", timeIn(t, states, `total (\S+)`), lived)
	near("sleeping", timeIn(t, states, `(?m)^ *(\S+) .* S$`), time.Second)
	near("running", timeIn(t, states, `(?m)^ *(\S+) .* running$`), time.Second)
	near("cpu-clock", timeIn(t, top("--event", "cpu-clock"), `total (\S+)`), time.Second)
	near("off-cpu", timeIn(t, top("--event", "off-cpu"), `total (\S+)`), lived-time.Second)
	functions := top("--event", "wall", "--sort", "cum", "-n", "1000")
	near("do_nanosleep", timeIn(t, functions, `(?m)^.* (\S+) +[0-9.]+%  do_nanosleep  `), time.Second)
	near("main", timeIn(t, functions, `(?m)^.* (\S+) +[0-9.]+%  main  `), lived)
	states = topOf("perf.data", "--event", "wall", "--by", "state")
	near("perf.data", timeIn(t, states, `total (\S+)`), lived)
	near("sleeping in perf.data", timeIn(t, states, `(?m)^ *(\S+) .* S$`), time.Second)
	near("running in perf.data", timeIn(t, states, `(?m)^ *(\S+) .* running$`), time.Second)
}

// timeIn returns the time that a pattern matches in a report.
func timeIn(t *testing.T, text, pattern string) time.Duration {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%s does not match:\n%s", pattern, text)
	}
	d, err := time.ParseDuration(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestLiveWakers: with --wakers a bundle has the stack of the thread that ended a wait: one that
// writes to a pipe, or unlocks. The times by waker are those of a perf.data of the same time.
func TestLiveWakers(t *testing.T) {
	needLive(t, "perf", "gcc")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	src, err := filepath.Abs("../../fixtures/src/waits.c")
	if err != nil {
		t.Fatal(err)
	}
	command(t, dir, "gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
		"-pthread", "-Wl,--build-id", "-o", "waits", src)
	command(t, dir, "perf", "record", "-q", "-a", "-g", "-m", "4M", "--switch-events", "--buildid-mmap",
		"-e", "sched:sched_switch,sched:sched_waking", "-o", "perf.data", "--", liveBinary(t), "capture",
		"-o", "wakers.data", "--stacks", "--off-cpu", "--wakers", "--", "taskset", "-c", idleCPU(t, dir),
		in("waits"), "pipe")
	skipDropped(t, in("perf.data"))
	folded := func(file string) string {
		return runMain(t, "resolve", "--quiet", "--event", "off-cpu", "--comm", "waits", "--format",
			"folded", "--with", in("waits"), "--kallsyms", "/proc/kallsyms", "--waker-depth", "1", in(file))
	}
	bundles, perfs := folded("wakers.data"), folded("perf.data")
	if m := regexp.MustCompile(`\bconsume;.*(__schedule|;try_to_wake_up);.*`).FindString(bundles + perfs); m != "" {
		t.Errorf("stack with the scheduler: %s", m)
	}
	for _, path := range [][]string{{"consume", "[woken by]", "produce"}, {"produce", "[woken by an interrupt]"},
		{"main"}} {
		bundle, perf := foldedBelow(bundles, path...), foldedBelow(perfs, path...)
		t.Logf("%v: bundle %.1f ms, perf.data %.1f ms", path, bundle/1e6, perf/1e6)
		if math.Abs(bundle-perf) > perf/50+1e6 || path[0] != "main" && bundle < 1e8 {
			t.Errorf("%v: bundle %.1f ms, perf.data %.1f", path, bundle/1e6, perf/1e6)
		}
	}
}

// idleCPU returns a CPU where the kernel gives perf the samples of tracepoints that are hit while
// it is idle. Some virtual machines give none of one CPU: RCU does not watch it. Where a timer ends
// a wait, that is the only sample of the waking.
func idleCPU(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "idle.data")
	command(t, dir, "perf", "record", "-q", "-a", "-e", "sched:sched_waking", "-o", file, "--",
		"sleep", "0.3")
	cpu := regexp.MustCompile(`\[(\d+)\]`).FindStringSubmatch(
		command(t, dir, "perf", "script", "-i", file, "--comm", "swapper", "-F", "cpu"))
	if cpu == nil {
		t.Skip("SKIPPED: perf has no samples of wakings while a CPU is idle")
	}
	return cpu[1]
}
