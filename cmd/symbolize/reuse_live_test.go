//go:build linux

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/analyze/calltree"
	"symbolize/fixtures/must"
)

// Sources of two programs, "first" and "second", that work in a function of that name and end at
// once if they are not the process that they are to be. Neither has a build ID that the kernel
// sees, so that their frames are addresses: of C's at the same places in both.
const (
	worksInC = `#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void NAME_work(double seconds)
{
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		for (unsigned long i = 0; i < 100000; i++)
			sink = sink * 3 + i;
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while (b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9 < seconds);
}
int main(int argc, char **argv)
{
	char *pid = getenv("WANT_PID");
	if (pid && atoi(pid) != getpid())
		return 7;
	NAME_work(0.15);
	if (argc > 1)
		execv(argv[1], argv + 1);
	return 0;
}
`
	worksInGo = `package main

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

var sink int

//go:noinline
func NAME_work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i := range 100000 {
			sink = sink*3 + i
		}
	}
}

func main() {
	if pid := os.Getenv("WANT_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		os.Exit(7)
	}
	NAME_work(150 * time.Millisecond)
	if len(os.Args) > 1 {
		_ = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
}
`
)

// buildWorkers makes the programs first and second of both languages.
func buildWorkers(t *testing.T, dir string) {
	t.Helper()
	write := func(name, text string) {
		must.Write(t, filepath.Join(dir, name), []byte(text))
	}
	for _, name := range []string{"first", "second"} {
		write(name+".c", strings.ReplaceAll(worksInC, "NAME", name))
		command(t, dir, "gcc", "-O1", "-fno-omit-frame-pointer", "-no-pie", "-Wl,--build-id=none", "-o",
			name+".bin", name+".c")
		write(name+".go", strings.ReplaceAll(worksInGo, "NAME", name))
		command(t, dir, "go", "build", "-ldflags=-B none", "-o", name+".gobin", name+".go")
	}
}

// execTurns has one process run both programs in turn by exec, ten times. reuseTurns runs them one
// after the other as processes of one number, which the kernel is asked to give out again; others
// may have been faster, then it tries once more.
const (
	execTurns = `for i in 1 2 3 4 5; do ./first.EXT ./second.EXT ./first.EXT ./second.EXT; done`

	reuseTurns = `set -e
./first.EXT & export WANT_PID=$!
wait || true
for i in 1 2 3 4 5 6 7 8; do for p in second first; do
	for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		echo $((WANT_PID - 1)) >/proc/sys/kernel/ns_last_pid
		./$p.EXT & if wait $!; then echo $p; break; fi
	done
done; done`
)

// TestLiveReuse has one process ID run two programs, one after another: by exec, and as the
// number of one process after another. No sample of one has a function of the other, the mapping
// of the one serves none of the other, and both have as many samples in their functions as by perf
// record beside it.
func TestLiveReuse(t *testing.T) {
	needLive(t, "perf", "gcc")
	bin, dir := liveBinary(t), t.TempDir()
	buildWorkers(t, dir)
	store := filepath.Join(dir, "store")
	runMain(t, "index", "--quiet", "--store", store, dir)
	for _, tt := range []struct{ name, script, ext string }{
		{name: "exec of Go", script: execTurns, ext: "gobin"},
		{name: "exec of C", script: execTurns, ext: "bin"},
		{name: "a process ID again, Go", script: reuseTurns, ext: "gobin"},
		{name: "a process ID again, C", script: reuseTurns, ext: "bin"},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			out := t.TempDir()
			stacks, perf := filepath.Join(out, "stacks.data"), filepath.Join(out, "perf.data")
			said := command(t, dir, bin, "capture", "-o", stacks, "--stacks", "-a", "-F", "997", "--",
				"perf", "record", "-q", "-N", "-a", "-g", "-e", "cpu-clock", "-F", "997", "-o", perf,
				"sh", "-c", strings.ReplaceAll(tt.script, "EXT", tt.ext))
			if tt.script == reuseTurns && strings.Count(said, "first") < 4 {
				t.Skipf("SKIPPED: the kernel gave out the number again to others: %q", said)
			}
			for _, name := range []string{"first", "second"} {
				compareWorkers(t, store, stacks, perf, name, tt.ext)
			}
		})
	}
}

// compareWorkers compares the samples of one program with perf's.
func compareWorkers(t *testing.T, store, stacks, perf, name, ext string) {
	t.Helper()
	other := "second"
	if name == other {
		other = "first"
	}
	var counts [2]map[string]uint64
	for i, path := range []string{stacks, perf} {
		counts[i] = flatOf(t, store, name+"."+ext, path)
		for function, n := range counts[i] {
			if strings.Contains(function, other+"_work") { // Go has a bitset.first
				t.Errorf("%s: %d samples of %s have the name %s", path, n, name, function)
			}
		}
	}
	work := name + "_work"
	if ext == "gobin" {
		work = "main." + work
	}
	ours, theirs := counts[0][work], counts[1][work]
	t.Logf("%s: %d samples, by perf %d; ambiguous %d, gone %d", work, ours, theirs,
		counts[0]["[ambiguous]"], counts[0]["[unmapped]"])
	if theirs < leastCompared || apart(ours, theirs) > noise(ours, theirs) {
		t.Errorf("%s: %d samples, by perf %d: %v", work, ours, theirs, counts[0])
	}
}

// flatOf returns the samples of a program by their innermost function.
func flatOf(t *testing.T, store, comm, path string) map[string]uint64 {
	t.Helper()
	var x calltree.Top
	if err := json.Unmarshal([]byte(runMain(t, "top", "-q", "--store", store, "--format", "json",
		"--count", "-n", "0", "--comm", comm, "--trust-paths", path)), &x); err != nil {
		t.Fatal(err)
	}
	flat := make(map[string]uint64)
	for _, r := range x.Rows {
		flat[r.Name] += uint64(r.Flat)
	}
	return flat
}
