//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/ingest/format/bundle"
)

// omitted makes a bundle of a kernel-heavy load, with the flags of args, and returns its path
// and the messages.
func omitted(t *testing.T, bin, name string, args ...string) (path, said string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	args = append([]string{"capture", "-o", path, "--stacks", "-F", "999"}, args...)
	out, err := exec.Command(bin, append(args, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1",
		"count=2000000")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path, string(out)
}

// kernelSymbols returns how many symbols of the kernel itself a bundle has, and whether it
// reports that they are left out.
func kernelSymbols(t *testing.T, path string) (n int, left bool) {
	t.Helper()
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	list, err := b.ReadEntry(bundle.KallsymsName, 256<<20)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if !strings.Contains(line, "[") {
			n++
		}
	}
	return n, b.Manifest.KernelOmitted
}

// kernelFrames returns the samples of dd with an innermost frame in the kernel, and how many of
// them have a name, by `resolve` with a store. Innermost frames of BPF programs, which others run,
// are left out: the bundle itself has their names.
func kernelFrames(t *testing.T, bin, store, path string) (all, named int) {
	t.Helper()
	out, err := exec.Command(bin, "resolve", "--quiet", "--store", store, "--count", "--comm", "dd",
		"--format", "folded", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		at := strings.LastIndexByte(line, ' ')
		leaf := line[strings.LastIndexByte(line[:at], ';')+1 : at]
		var n int
		if _, err := fmt.Sscan(line[at+1:], &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		switch {
		case strings.HasPrefix(leaf, "bpf_"):
		case leaf == "[kernel.kallsyms]":
			all += n
		case !strings.HasPrefix(leaf, "["): // libc and dd are in no store here
			all, named = all+n, named+n
		}
	}
	return all, named
}

// TestLiveOmitIndexed leaves the kernel's symbols out of a bundle that a store has: it is
// small, the store gives the names, and without them the kernel is reported as not indexed.
// Symbols that a store lacks are kept, and reported.
func TestLiveOmitIndexed(t *testing.T) {
	needLive(t, "dd")
	t.Setenv("SYMBOLIZE_LOCAL", "0") // else the running kernel names its frames
	bin, dir := liveBinary(t), t.TempDir()
	full, empty := filepath.Join(dir, "full"), filepath.Join(dir, "empty")
	command(t, ".", bin, "index", "--quiet", "--kernel", "--names-only", "--store", full)
	command(t, ".", bin, "index", "--quiet", "--store", empty, bin)

	whole, said := omitted(t, bin, "whole.data")
	if n, left := kernelSymbols(t, whole); n < 10000 || left {
		t.Errorf("without the flag %d symbols of the kernel, omitted: %t", n, left)
	}
	if strings.Contains(said, "--omit-indexed") {
		t.Errorf("without the flag it says\n%s", said)
	}
	kept, said := omitted(t, bin, "kept.data", "--omit-indexed", "--store", empty)
	if n, left := kernelSymbols(t, kept); n < 10000 || left {
		t.Errorf("with a store without the kernel %d symbols, omitted: %t", n, left)
	}
	if !strings.Contains(said, "--omit-indexed omitted nothing: the store has no symbols of kernel ") {
		t.Errorf("with a store without the kernel it says\n%s", said)
	}
	small, said := omitted(t, bin, "small.data", "--omit-indexed", "--store", full)
	if n, left := kernelSymbols(t, small); n > 3 || !left {
		t.Errorf("with a store %d symbols of the kernel, omitted: %t\n%s", n, left, said)
	}
	a, b := fileSize(t, whole), fileSize(t, small)
	t.Logf("%d bytes with the kernel's symbols, %d without", a, b)
	if b*4 > a {
		t.Errorf("%d bytes with the kernel's symbols, %d without", a, b)
	}
	for _, tt := range []struct {
		what, store, path string
		names             bool
	}{{what: "bundle alone", store: empty, path: whole, names: true}, {what: "store beside it",
		store: full, path: small, names: true},
		{what: "nothing has them", store: empty, path: small}} {
		all, named := kernelFrames(t, bin, tt.store, tt.path)
		t.Logf("%s: of %d samples of dd in the kernel %d have names", tt.what, all, named)
		if all < 50 || tt.names && named*100 < all*99 || !tt.names && named > 0 {
			t.Errorf("%s: of %d samples of dd in the kernel %d have names", tt.what, all, named)
		}
	}
	checkOmitted(t, bin, full, empty, small)
}

// checkOmitted wants a function of the kernel in `top` by the store, and by the other
// one the kernel among the missing objects.
func checkOmitted(t *testing.T, bin, full, empty, small string) {
	t.Helper()
	run := func(args ...string) string {
		out, err := exec.Command(bin, args...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	top := []string{"top", "--quiet", "--comm", "dd", "-n", "100", "--store"}
	if got := run(append(top, full, small)...); !strings.Contains(got, "([kernel.kallsyms])") {
		t.Errorf("top with the store:\n%s", got)
	}
	if got := run(append(top, empty, small)...); strings.Contains(got, "([kernel.kallsyms])") {
		t.Errorf("top without a store that has the kernel:\n%s", got)
	}
	got := run("missing", "--quiet", "--store", empty, small)
	found := false
	for line := range strings.Lines(got) {
		found = found || strings.Contains(line, "[kernel.kallsyms]") && strings.Contains(line, "not indexed")
	}
	if !found || !strings.Contains(got, "symbolize index --kernel") {
		t.Errorf("missing:\n%s", got)
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}
