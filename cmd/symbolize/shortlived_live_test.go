//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// shortInC works in a function of its name for the time in ms that it is given, then runs the other
// program so many times in turn; with "fork" it has so many children do the work, none of which
// runs a program.
const shortInC = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void NAME_work(double ms)
{
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		for (unsigned long i = 0; i < 10000; i++)
			sink = sink * 3 + i;
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while ((b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6 < ms);
}
int main(int argc, char **argv)
{
	int left = atoi(argv[2]);
	char text[20], *next[] = {argv[3], argv[1], text, argv[0], 0};
	if (!strcmp(argv[3], "fork")) {
		while (left-- > 0) {
			if (!fork()) {
				NAME_work(atof(argv[1]));
				_exit(0);
			}
			wait(0);
		}
		return 0;
	}
	NAME_work(atof(argv[1]));
	sprintf(text, "%d", left - 1);
	if (left > 1)
		execv(argv[3], next);
	return 0;
}
`

// TestLiveShortLived samples processes that live for a few milliseconds, too short for their
// mappings to be read, with code that has no build ID. The kernel's records have all that they
// mapped: no frame is of a process that is gone, and none has the function of the other program.
// Only lost records of the kernel can disturb this, which a warning reports.
func TestLiveShortLived(t *testing.T) {
	needLive(t, "gcc")
	bin, dir := liveBinary(t), t.TempDir()
	for _, name := range []string{"first", "second"} {
		text := strings.ReplaceAll(shortInC, "NAME", name)
		must.Write(t, filepath.Join(dir, name+".c"), []byte(text))
		command(t, dir, "gcc", "-O1", "-fno-omit-frame-pointer", "-no-pie", "-Wl,--build-id=none", "-o",
			name, name+".c")
	}
	store := filepath.Join(dir, "store")
	runMain(t, "index", "--quiet", "--store", store, dir)
	for _, tt := range []struct{ name, script string }{
		{name: "exec after 20 ms", script: "./first 20 150 ./second"},
		{name: "a process ID again", script: `./first 20 1 x & pid=$!; wait
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
	for p in second first; do
		echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
		./$p 20 1 x & wait
	done
done`},
		{name: "children of 2 ms", script: "./first 2 500 fork; ./second 2 500 fork"},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "stacks.data")
			command(t, dir, bin, "capture", "-o", data, "--stacks", "-F", "997", "--", "sh", "-c", tt.script)
			text := runMain(t, "info", data)
			if strings.Contains(text, "records of mappings") {
				t.Skipf("SKIPPED: the kernel lost records:\n%s", text)
			}
			missing := runMain(t, "missing", "-q", "--store", store, "--trust-paths", data)
			for _, reason := range []string{"process gone", "mappings not read"} {
				if strings.Contains(missing, reason) {
					t.Errorf("%s", missing)
				}
			}
			for _, name := range []string{"first", "second"} {
				flat := flatOf(t, store, name, data)
				other := map[string]string{"first": "second_work", "second": "first_work"}[name]
				t.Logf("%s: %d samples in its function, %d in the other's", name, flat[name+"_work"], flat[other])
				if flat[name+"_work"] < leastCompared || flat[other] > 0 {
					t.Errorf("%s: %v", name, flat)
				}
			}
		})
	}
}
