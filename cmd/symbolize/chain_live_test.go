package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestLiveWakerChain: a thread that waits for another, which waits for a third, has the third in its
// stack, also if the second was preempted before it woke the first: a busy program shares each CPU.
func TestLiveWakerChain(t *testing.T) {
	needLive(t, "perf", "gcc")
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: fixtures/src/chain.c is for x86-64")
	}
	dir := t.TempDir()
	src, err := filepath.Abs("../../fixtures/src/chain.c")
	if err != nil {
		t.Fatal(err)
	}
	command(t, dir, "gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread",
		"-Wl,--build-id", "-o", "chain", src)
	for range runtime.NumCPU() {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			busy.Process.Kill()
			busy.Wait()
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a recorder that stays disturbs all others
	defer cancel()
	cmd := exec.CommandContext(ctx, "perf", "record", "-q", "-a", "-g", "-m", "4M", "--switch-events", "--buildid-mmap",
		"-e", "sched:sched_switch,sched:sched_waking", "-o", "chain.data", "./chain")
	cmd.Dir = dir
	measured, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, measured)
	}
	var name string
	var want float64
	if _, err := fmt.Sscan(string(measured), &name, &want); err != nil {
		t.Fatalf("%q: %v", measured, err)
	}
	text := runMain(t, "resolve", "-q", "--event", "off-cpu", "--waker-depth", "5", "--comm", name, "--format",
		"folded", "--with", dir, "--kallsyms", "/proc/kallsyms", filepath.Join(dir, "chain.data"))
	all, chain := foldedBelow(text, "c_waits"), foldedBelow(text, "c_waits", "a_wakes")
	t.Logf("%s measured %.1f ms, off-CPU %.1f ms, of it %.1f ms below a_wakes", name, want/1e6, all/1e6, chain/1e6)
	if all > want*1.01 || all < want*0.8 || chain < all*0.95 {
		t.Errorf("measured %.0f ns, off-CPU %.0f, below a_wakes %.0f", want, all, chain)
	}
}
