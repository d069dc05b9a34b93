//go:build linux

package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// turnsInC works for itself, so that its mappings are read, then maps the named files at one
// address, each in place of the previous one, and works in each for the given time in ms. A file
// with a + before its name is mapped elsewhere and moved there. At the end it prints the CPU time
// in the file first.so, and in the other, ns. It has no build ID, nor have the files.
const turnsInC = `#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static unsigned long used[2];
static unsigned long cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ul + t.tv_nsec;
}
int main(int argc, char **argv)
{
	unsigned long at = strtoul(argv[1], 0, 0);
	double ms = atof(argv[2]);
	void *place = (void *)0x10000000, *elsewhere = (void *)0x20000000;
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while (b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9 < 0.015);
	for (int round = 0; round < atoi(argv[3]); round++)
		for (int i = 4; i < argc; i++) {
			int move = *argv[i] == '+', fd = open(argv[i] + move, O_RDONLY);
			char *p = mmap(move ? elsewhere : place, 1 << 16, PROT_READ | PROT_EXEC,
				MAP_PRIVATE | MAP_FIXED, fd, 0);
			if (move && p != MAP_FAILED)
				p = mremap(p, 1 << 16, 1 << 16, MREMAP_MAYMOVE | MREMAP_FIXED, place);
			if (p == MAP_FAILED)
				return 1;
			close(fd);
			unsigned long begin = cpu();
			((void (*)(double))(p + at))(ms);
			used[!strstr(argv[i], "first")] += cpu() - begin;
		}
	printf("%lu %lu\n", used[0], used[1]);
	return 0;
}
`

// turnOf is a file of one function that works for a time, at the same place in all of them.
const turnOf = `static unsigned long ticks(void)
{
	unsigned int low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (unsigned long)high << 32 | low;
}
__attribute__((visibility("default"))) void NAME_work(double ms)
{
	volatile unsigned long x = NUMBER;
	for (unsigned long end = ticks() + (unsigned long)(ms * TICKS); ticks() < end;)
		for (int i = 0; i < 1000; i++)
			x = x * 6364136223846793005ul + 1;
}
`

// TestLiveRemap has a process map two files at one address in turn, several times between two
// copies of its mappings. The kernel gives addresses for both, as they have no build ID. Each has
// the samples that it has by perf record beside it, and none of the other's.
func TestLiveRemap(t *testing.T) {
	needLive(t, "perf", "gcc", "nm")
	bin := liveBinary(t)
	dir, store, at := buildTurns(t)
	for _, tt := range []struct{ name, script string }{
		{name: "turns of 60 ms", script: "./turns AT 60 100 first.so third.so"}, // longer than from flush to flush
		{name: "one short, one long",
			script: "./turns AT 20 16 first.so" + strings.Repeat(" third.so", 12)},
		{name: "one short before the copy",
			script: "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do " +
				"./turns AT 12 1 first.so" + strings.Repeat(" third.so", 8) + "; done"},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			out := t.TempDir()
			stacks, perf := filepath.Join(out, "stacks.data"), filepath.Join(out, "perf.data")
			command(t, dir, bin, "capture", "-o", stacks, "--stacks", "-a", "-F", "997", "--", "perf", "record",
				"-q", "-N", "-a", "-g", "-e", "cpu-clock", "-F", "997", "-o", perf, "sh", "-c",
				strings.ReplaceAll(tt.script, "AT", at))
			ours, theirs := flatOf(t, store, "turns", stacks), flatOf(t, store, "turns", perf)
			for _, work := range []string{"first_work", "third_work"} {
				a, b := ours[work], theirs[work]
				t.Logf("%s: %d samples, %d by perf; ambiguous %d", work, a, b, ours["[ambiguous]"])
				if b < leastCompared || apart(a, b) > noise(a, b) {
					t.Errorf("%s: %d samples, by perf %d", work, a, b)
				}
			}
		})
	}
}

// TestLiveMoved has a process map a file at an address, and move another one there by mremap, of
// which perf has no record. The file that is moved has the share of the samples that the process
// measured, or is ambiguous, and so has the other: neither has more, by five standard deviations
// and two hundredths, which chance gives in one run of three million.
func TestLiveMoved(t *testing.T) {
	needLive(t, "gcc", "nm")
	bin := liveBinary(t)
	dir, store, at := buildTurns(t)
	for _, script := range []string{"./turns AT 2 400 first.so +third.so",
		"./turns AT 100 8 first.so +third.so", "./turns AT 7 80 first.so +third.so third.so +first.so"} {
		data := filepath.Join(t.TempDir(), "stacks.data")
		said := command(t, dir, bin, "capture", "-o", data, "--stacks", "-F", "997", "--", "sh", "-c",
			strings.ReplaceAll(script, "AT", at))
		var own, other float64 // of first.so, and of the other
		if _, err := fmt.Sscan(said, &own, &other); err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		flat := flatOf(t, store, "turns", data)
		first, third, unknown := flat["first_work"], flat["third_work"], flat["[ambiguous]"]
		n := float64(first + third + unknown)
		t.Logf("%s: first %d, third %d, ambiguous %d; by the process %.0f ms, %.0f ms", script, first,
			third, unknown, own/1e6, other/1e6)
		want := own / (own + other)
		noise := 5*math.Sqrt(want*(1-want)*n) + 0.02*n
		if n < leastCompared || float64(first) > want*n+noise || float64(third) > (1-want)*n+noise {
			t.Errorf("first %d, third %d of %.0f samples, want %.3f of first", first, third, n, want)
		}
	}
}

// buildTurns makes turns and its two files, with their function at one place, and an index of them.
func buildTurns(t *testing.T) (dir, store, at string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name, text string) {
		must.Write(t, filepath.Join(dir, name), []byte(text))
	}
	write("turns.c", turnsInC)
	command(t, dir, "gcc", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id=none", "-o", "turns",
		"turns.c")
	for _, name := range []string{"first", "third"} {
		write(name+".c", strings.ReplaceAll(turnOf, "NAME", name))
		command(t, dir, "gcc", "-O1", "-fno-omit-frame-pointer", "-shared", "-nostdlib", "-fPIC",
			"-Wl,-z,noseparate-code", "-Wl,--build-id=none", "-DTICKS=2e6", "-DNUMBER=1",
			"-o", name+".so", name+".c")
		nm := command(t, dir, "nm", "-D", "--defined-only", name+".so")
		offset := "0x" + strings.Fields(nm)[0]
		if at != "" && at != offset {
			t.Fatalf("the functions lie at %s and %s", at, offset)
		}
		at = offset
	}
	store = filepath.Join(dir, "store")
	runMain(t, "index", "--quiet", "--store", store, dir)
	return dir, store, at
}
