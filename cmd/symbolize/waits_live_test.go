package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// waitModes are the modes of fixtures/src/waits.c.
var waitModes = []string{"sleep", "pipe", "convoy", "threads", "disk"}

// TestLiveWaits: programs that wait and measure that themselves. The off-CPU time below each
// of their functions is what they measured, within 5 %. Each thread's waits and delays of waking are
// compared with perf sched timehist.
func TestLiveWaits(t *testing.T) {
	needLive(t, "perf", "gcc")
	dir := t.TempDir()
	src, err := filepath.Abs("../../fixtures/src/waits.c")
	if err != nil {
		t.Fatal(err)
	}
	command(t, dir, "gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
		"-pthread", "-Wl,--build-id", "-o", "waits", src)
	must.Write(t, filepath.Join(dir, "blocks"), make([]byte, 64<<20))
	for _, mode := range waitModes {
		t.Run(mode, func(t *testing.T) { checkWaits(t, dir, mode) })
	}
}

func checkWaits(t *testing.T, dir, mode string) {
	data := filepath.Join(dir, mode+".data")
	cmd := exec.Command("perf", "record", "-q", "-a", "-g", "-m", "4M", "--switch-events", "--buildid-mmap",
		"-e", "sched:sched_switch,sched:sched_waking", "-o", data, "./waits", mode, "blocks")
	cmd.Dir = dir
	measured, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, measured)
	}
	skipDropped(t, data)
	folded := func(flags ...string) string {
		args := []string{"resolve", "--quiet", "--event", "off-cpu", "--comm", "waits", "--format",
			"folded", "--with", dir, "--kallsyms", "/proc/kallsyms"}
		return runMain(t, append(append(args, flags...), data)...)
	}
	offCPU, waits := folded(), folded("--count")
	for line := range strings.Lines(string(measured)) {
		var name string
		var want float64
		if _, err := fmt.Sscan(line, &name, &want); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		below := []string{name}
		if name == "lock" { // the C library has no frame pointers: its caller is in no stack
			below = []string{"member", "futex_wait"}
		}
		off := foldedBelow(offCPU, below...)
		t.Logf("%s: %s measured %.1f ms, off-CPU %.1f ms", mode, name, want/1e6, off/1e6)
		most := want * 1.001
		if name == "disk" { // it is the difference of two clocks, apart by some tens of µs at each switch
			most = want*1.02 + 1e6 + 50e3*foldedBelow(waits, below...)
		}
		if off > most || off < want*0.95 {
			t.Errorf("%s: %s measured %.0f ns, off-CPU %.0f", mode, name, want, off)
		}
	}
	compareTimehist(t, data)
}

// switchedOut matches a record of a thread of ours that stops running.
var switchedOut = regexp.MustCompile(`(?m)^ *waits .*PERF_RECORD_SWITCH_CPU_WIDE OUT`)

// skipDropped skips the test if the kernel dropped samples of switches, which then have a record of
// --switch-events alone: Linux 6.18 does so in threads in which a sample was once interrupted.
func skipDropped(t *testing.T, data string) {
	t.Helper()
	text := command(t, ".", "perf", "script", "-i", data, "--show-switch-events", "--comm", "waits", "-F",
		"comm,tid,time,event,trace")
	samples := strings.Count(text, "prev_comm=waits")
	if records := len(switchedOut.FindAllString(text, -1)); samples < records || samples == 0 {
		t.Skipf("the kernel dropped %d of %d switches", records-samples, records)
	}
}

// foldedBelow adds up the weights of the stacks with all of some functions.
func foldedBelow(folded string, functions ...string) (sum float64) {
	for line := range strings.Lines(folded) {
		at := strings.LastIndexByte(line, ' ')
		if !slices.ContainsFunc(functions, func(f string) bool {
			return !strings.Contains(line[:at]+";", ";"+f+";")
		}) {
			n, _ := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
			sum += n
		}
	}
	return sum
}

// timehistLine matches a line of perf sched timehist: comm[tid/pid], wait and delay in ms.
var timehistLine = regexp.MustCompile(`\]\s+(\S+)\[(\d+)(/\d+)?\]\s+([0-9.]+)\s+([0-9.]+)\s+[0-9.]+`)

// compareTimehist compares the waits of each thread, and its delays from waking to running, with
// perf's. perf has no waits that had not ended, nor those before a thread's first CPU, nor the last
// wait of a thread that ends and is not the first of its process. Of the delays
// of threads that stop in state R it has those with a waking, which came before they had stopped.
// Threads are compared by number, as they are renamed by exec.
func compareTimehist(t *testing.T, data string) {
	perfs := command(t, ".", "perf", "sched", "timehist", "-i", data)
	wait, delay := make(map[string]float64), make(map[string]float64)
	selected, first := make(map[string]bool), make(map[string]bool)
	for _, m := range timehistLine.FindAllStringSubmatch(perfs, -1) {
		tid := m[2]
		w, _ := strconv.ParseFloat(m[4], 64)
		d, _ := strconv.ParseFloat(m[5], 64)
		if m[1] == "waits" { // otherwise before exec
			selected[tid], first[tid] = true, m[3] == ""
		}
		wait[tid] += w * 1e6
		delay[tid] += d * 1e6
	}
	if len(selected) == 0 {
		t.Fatalf("perf sched timehist has no threads:\n%.2000s", perfs)
	}
	ours := func(event string, states ...string) map[string]float64 {
		sums := make(map[string]float64)
		text := runMain(t, "resolve", "--quiet", "--event", event, "--no-local",
			"--labels", "tid,state", "--format", "json", data)
		for _, m := range waitSample.FindAllStringSubmatch(text, -1) {
			n, _ := strconv.ParseFloat(m[3], 64)
			for _, s := range states {
				if strings.HasPrefix(m[2], s) {
					sums[m[1]] += n
				}
			}
		}
		return sums
	}
	off, queued := ours("off-cpu", "S", "D", "I", "R", "T"), ours("run-queue", "S", "D", "I", "T", "?")
	ready := ours("run-queue", "R")
	equal := 0
	for tid := range selected {
		want := wait[tid]
		less := off[tid] - want
		more := delay[tid] - queued[tid]
		text := fmt.Sprintf("thread %s: off-CPU %.0f ns, perf sched timehist %.0f; run queue %.0f and %.0f "+
			"of state R, perf %.0f", tid, off[tid], want, queued[tid], ready[tid], delay[tid])
		switch {
		case less < -want/1000-1e5:
			t.Error(text)
		// perf lacks a wait at times that the program measured: its clocks decide, see above.
		case first[tid] && less > want/1000+1e5, more > delay[tid]/1000+1e5+ready[tid],
			first[tid] && more < -delay[tid]/1000-1e5:
			t.Log(text)
			continue
		}
		equal++
	}
	t.Logf("%d of %d threads equal perf sched timehist", equal, len(selected))
}

// traceThread and traceCall match lines of perf trace -s: a thread, and its calls of a kind with
// their number, errors, and time in ms.
var (
	traceThread = regexp.MustCompile(`^ \S+ \((\d+)\), \d+ events`)
	traceCall   = regexp.MustCompile(`^   \w+ +(\d+) +\d+ +([0-9.]+) `)
)

// TestLiveSyscalls: the time of each thread in system calls is perf trace's.
func TestLiveSyscalls(t *testing.T) {
	needLive(t, "perf", "gcc")
	dir := t.TempDir()
	src, err := filepath.Abs("../../fixtures/src/waits.c")
	if err != nil {
		t.Fatal(err)
	}
	command(t, dir, "gcc", "-O1", "-pthread", "-o", "waits", src)
	command(t, dir, "perf", "trace", "record", "-o", "calls.data", "./waits", "pipe")
	data := filepath.Join(dir, "calls.data")
	want, tid := make(map[string]float64), ""
	command(t, dir, "perf", "trace", "-s", "-i", data, "-o", "sums")
	sums := must.Read(t, filepath.Join(dir, "sums"))
	for line := range strings.Lines(string(sums)) {
		if m := traceThread.FindStringSubmatch(line); m != nil {
			tid = m[1]
		} else if m := traceCall.FindStringSubmatch(line); m != nil {
			ms, _ := strconv.ParseFloat(m[2], 64)
			want[tid] += ms * 1e6
		}
	}
	got := make(map[string]float64)
	text := runMain(t, "resolve", "--quiet", "--pair", "syscalls", "--no-local", "--labels", "tid",
		"--format", "json", data)
	for _, m := range regexp.MustCompile(`"TID":(\d+).*"Weight":(\d+)`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseFloat(m[2], 64)
		got[m[1]] += n
	}
	for tid, ns := range want {
		t.Logf("thread %s: %.3f ms in system calls, perf trace %.3f", tid, got[tid]/1e6, ns/1e6)
		if less := got[tid] - ns; less < -1e5 || less > 2e6 || ns < 1e8 {
			t.Errorf("thread %s: %.0f ns in system calls, perf trace %.0f", tid, got[tid], ns)
		}
	}
	if len(want) != 2 || len(got) != 2 {
		t.Errorf("threads %v, perf trace %v", got, want)
	}
}

// waitSample matches a sample of --format json: thread, state and weight.
var waitSample = regexp.MustCompile(`"TID":(\d+),"Labels":\{[^}]*"state":"([^"]+)"\},"Count":\d+,"Weight":(\d+)`)

// TestLiveLives: threads that measure how long they live. The wall-clock time of each is that, in
// recordings of the process, of the machine, and of a perf in a PID namespace. In a recording of one
// CPU it is not longer. All have --switch-events, as the kernel may drop samples of the idle thread.
func TestLiveLives(t *testing.T) {
	needLive(t, "perf", "gcc", "unshare")
	dir := t.TempDir()
	src, err := filepath.Abs("../../fixtures/src/lives.c")
	if err != nil {
		t.Fatal(err)
	}
	command(t, dir, "gcc", "-O1", "-pthread", "-o", "lives", src)
	for _, tt := range []struct {
		name, prefix, flags string
		partial             bool
	}{
		{name: "process", flags: "--switch-events"},
		{name: "machine", flags: "-a --switch-events"},
		{name: "namespace", prefix: "unshare -pf --mount-proc", flags: "--switch-events"},
		{name: "machine in a namespace", prefix: "unshare -pf --mount-proc", flags: "-a --switch-events"},
		{name: "threads", flags: "-a --switch-events --threads=cpu"},
		{name: "one CPU", flags: "-C 0 --switch-events", partial: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := filepath.Join(dir, strings.ReplaceAll(tt.name, " ", "-")+".data")
			args := strings.Fields(tt.prefix + " perf record -q -m 4M " + tt.flags +
				" -e sched:sched_switch,sched:sched_waking,cpu-clock/freq=499/ -o " + data + " ./lives")
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = dir
			measured, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, measured)
			}
			got := make(map[string]float64)
			text := runMain(t, "resolve", "--quiet", "--event", "wall", "--no-local", "--format", "folded", data)
			for line := range strings.Lines(text) {
				at := strings.LastIndexByte(line, ' ')
				n, _ := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
				name, _, _ := strings.Cut(line, ";")
				got[name] += n
			}
			for line := range strings.Lines(string(measured)) {
				var name string
				var want float64
				if _, err := fmt.Sscan(line, &name, &want); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				t.Logf("%s lived %.1f ms, wall %.1f ms", name, want/1e6, got[name]/1e6)
				// Its end and, of lives, the starts of the others come on top.
				if got[name] > want*1.05+5e7 || got[name] < want*0.98 && !tt.partial {
					t.Errorf("%s lived %.0f ns, wall %.0f", name, want, got[name])
				}
			}
		})
	}
}
