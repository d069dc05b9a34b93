package input

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/input/merge"
)

// liveContainers are the ways to record that differ in their container or in the fields of
// samples. OUT is the output; a shell redirects a stream. Without -e it is of the CPU's clock.
var liveContainers = []struct{ name, flags string }{
	{name: "plain", flags: "-o OUT"},
	{name: "build IDs", flags: "--buildid-mmap -o OUT"},
	{name: "clock", flags: "-k CLOCK_MONOTONIC -o OUT"},
	{name: "zstd", flags: "-z -o OUT"},
	{name: "pipe", flags: "-o - >OUT"},
	{name: "zstd pipe", flags: "-z -o - >OUT"},
	{name: "threads", flags: "--threads -o OUT"},
	{name: "threads by CPU", flags: "--threads=core -o OUT"},
	{name: "zstd threads", flags: "-z --threads -o OUT"},
	{name: "a group", flags: "-g -e {cpu-clock,page-faults,context-switches}:S -F 1999 -o OUT"},
	{name: "a group on all CPUs", flags: "-g -a -e {cpu-clock,page-faults}:S -F 1999 -o OUT"},
	{name: "a group, zstd pipe", flags: "-g -e {cpu-clock,page-faults}:S -F 1999 -z -o - >OUT"},
	{name: "tracepoints", flags: "-g -e sched:sched_process_exec,raw_syscalls:sys_enter -o OUT"},
	{name: "copied stacks", flags: "--call-graph dwarf,4096 -e cpu-clock -F 499 -o OUT"},
}

// execs bounds the frames of a recording that may be of another object than in perf: for a
// moment after an exec perf still has the old program's mappings, and it reads wrong times from
// records of BPF programs while another recorder runs.
const execs = 4

// load forks, executes and computes, so that there are samples of many processes, and many of
// the first one: the counters of groups are not inherited.
const load = `for i in 1 2 3 4 5 6; do
	sh -c 'i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done' &
done
wait
i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done`

// recordLive records the load with these flags.
func recordLive(t *testing.T, flags, out string) {
	t.Helper()
	flags = strings.ReplaceAll(flags, "OUT", out)
	record, stream, _ := strings.Cut(flags, " >")
	if !strings.Contains(record, "-e ") {
		record = "-g -e cpu-clock -F 1999 " + record
	}
	command := "exec perf record -q -N " + record + " -- sh -c \"$LOAD\""
	if stream != "" {
		command += " >" + stream
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "LOAD="+load)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, text)
	}
}

// scriptLive is the output of perf script for a recording.
func scriptLive(t *testing.T, data string) []perfSample {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "perf", "script", "--no-inline", "-F",
		"comm,pid,tid,time,period,event,ip,sym,dso", "-i", data)
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("perf script: %v", err)
	}
	return parseScript(text)
}

func needsPerf(t *testing.T) {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SYMBOLIZE_LIVE is not set: needs root and perf")
	}
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
}

// TestLiveContainers records one load in every container, and compares each sample with
// perf script: who, when, how much, and the address and object of each frame.
func TestLiveContainers(t *testing.T) {
	needsPerf(t)
	for _, tt := range liveContainers {
		t.Run(tt.name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "perf.data")
			recordLive(t, tt.flags, data)
			c, err := Open(t.Context(), data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			compareScript(t, c, scriptLive(t, data), execs)
		})
	}
}

// TestLiveSeries reads the files of --switch-output, each as perf script does, and all together.
func TestLiveSeries(t *testing.T) {
	needsPerf(t)
	dir := t.TempDir()
	recordLive(t, "--switch-output=1s -o OUT", filepath.Join(dir, "perf.data"))
	files, err := filepath.Glob(filepath.Join(dir, "perf.data.*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var profiles []*ingest.Profile
	want := 0
	for _, data := range files {
		c, err := Open(t.Context(), data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p, err := c.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		profiles = append(profiles, p)
		if script := scriptLive(t, data); len(script) > 0 {
			want += len(script)
			compareScript(t, c, script, execs)
		}
	}
	all, err := merge.Profiles(profiles)
	if err != nil || all.Stats.Samples != uint64(want) {
		t.Errorf("%d samples of %d files, perf prints %d: %v", all.Stats.Samples, len(files), want, err)
	}
}
