package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/analyze/calltree"
	"symbolize/fixtures/must"
)

// phases is a program that runs alone, then in three threads, of which two are pinned to one CPU.
const phases = `#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <time.h>
static volatile unsigned long sink;
static void spin(double seconds)
{
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		for (unsigned long i = 0; i < 10000; i++)
			sink += i;
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while (b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9 < seconds);
}
__attribute__((noinline)) void alone(void) { spin(0.4); sink++; }
__attribute__((noinline)) void together(void) { spin(0.4); sink++; }
static void *run(void *cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((long)cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
	together();
	return 0;
}
int main(void)
{
	pthread_t t[3];
	alone();
	for (long i = 0; i < 3; i++)
		pthread_create(t + i, 0, run, (void *)(i % 2));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 0;
}
`

// TestLiveLatency compares the parallelism of each sample of a recording with context switches with
// that of perf's rules applied to the records as perf script prints them, in order of time.
func TestLiveLatency(t *testing.T) {
	needLive(t, "perf", "gcc")
	dir := t.TempDir()
	source, data := filepath.Join(dir, "phases.c"), filepath.Join(dir, "perf.data")
	must.Write(t, source, []byte(phases))
	command(t, dir, "gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o", "phases", source)
	command(t, dir, "perf", "record", "-q", "-N", "-g", "-e", "cpu-clock", "-F", "999", "--switch-events",
		"-o", data, "./phases")
	running, samples := 1, make(map[string]uint64)
	for line := range strings.Lines(command(t, dir, "perf", "script", "-i", data, "--show-switch-events",
		"--show-task-events", "-G", "-F", "comm,tid,time,event")) {
		switch {
		case strings.Contains(line, "PERF_RECORD_SWITCH OUT"), strings.Contains(line, "PERF_RECORD_EXIT"):
			running--
		case strings.Contains(line, "PERF_RECORD_SWITCH"):
			running++
		case strings.Contains(line, "cpu-clock"):
			samples[fmt.Sprintf("parallelism %d", max(1, running))]++
		}
	}
	env, stdout, stderr := inProcess("--store", t.TempDir(), "top", "-q", "--by", "parallelism", "--count",
		"--format", "json", data)
	if code := Main(t.Context(), env); code != 0 {
		t.Fatalf("status %d: %s", code, stderr)
	}
	var top calltree.Top
	if err := json.Unmarshal(stdout.Bytes(), &top); err != nil {
		t.Fatal(err)
	}
	for _, r := range top.Rows {
		if samples[r.Name] != r.Flat {
			t.Errorf("%s: %d samples, by perf's records %d", r.Name, r.Flat, samples[r.Name])
		}
	}
	if len(top.Rows) != len(samples) || len(samples) == 0 {
		t.Errorf("%v", samples)
	}
	t.Logf("%v", samples)
}
