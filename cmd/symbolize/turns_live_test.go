//go:build linux

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// noise is how far two counts of the same events may be apart that were sampled one beside the
// other: 5 standard deviations, and a percent for code that only one of the two saw begin or end.
func noise(a, b uint64) float64 { return 5*math.Sqrt(float64(a+b)) + 0.01*float64(a+b) + 5 }

// leastCompared is how many samples there have to be, so that to have none of them is more than
// noise.
const leastCompared = 50

func apart(a, b uint64) float64 { return math.Abs(float64(a) - float64(b)) }

// TestLiveTurns loads two BPF programs in turn at one address, 60 loads of 40 ms each, inside
// `capture --stacks` and perf record: each function has the samples that it has by perf, each
// program the share of the time for which the kernel ran it, and annotate marks the lines that the
// kernel had while the programs lived. Their functions have names of their own: other tests load
// these programs, too.
func TestLiveTurns(t *testing.T) {
	needLive(t, "perf", "clang", "llvm-strip", "llvm-objdump", "llvm-objcopy")
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	command(t, ".", "go", "build", "-o", in("bpfrun"), "../../fixtures/bpfrun")
	own := ownNames("count_system_calls_on_enter", "mix_bits", "sum_window", "tally_digits", "fold_digits")
	command(t, dir, "env", "BPF_FLAGS="+own.flags(), "sh", filepath.Join(fixtures, "src", "bpf",
		"build.sh"), dir)
	const load = "./bpfrun -dump -times -rounds 30 -run 40ms -pause 0 bpf/count.bpf.o bpf/tally.bpf.o >dump.txt"
	t.Log(command(t, dir, liveBinary(t), "capture", "-o", in("stacks.data"), "--stacks", "-a", "-F", "997", "--",
		"perf", "record", "-q", buildIDs, "-N", "-a", "-g", "-e", "cpu-clock", "-F", "997", "-o",
		in("perf.data"), "sh", "-c", load))
	dump := must.Read(t, in("dump.txt"))
	live := parseDump(t, string(dump))
	t.Logf("%d functions loaded, %d pairs of which one lay where the other had", len(live), overlaps(live))
	if overlaps(live) == 0 {
		t.Error("no program came to lie where another one had")
	}
	got := compareAnnotation(t, dir, in("none"), live, "stacks.data")
	want := compareAnnotation(t, dir, in("none"), live, "perf.data")
	samples := make(map[string]uint64)
	total := uint64(0)
	for name, own := range own {
		a, b := countOf(got, own), countOf(want, own)
		t.Logf("%s: %d samples, %d by perf", name, a, b)
		if a+b == 0 || apart(a, b) > noise(a, b) {
			t.Errorf("%s: %d samples, %d by perf", name, a, b)
		}
		samples[name] = a
		total += a
	}
	compareTimes(t, string(dump), samples["tally_digits"]+samples["fold_digits"], total)
	if n := got["[ambiguous kernel]"]; n > 0 {
		t.Errorf("%d samples are ambiguous, though all had a time", n)
	}
	explainFailure(t, in("none"), in("stacks.data"))
}

// renamed are names of functions that nobody else on this machine uses, by those in the sources.
type renamed map[string]string

func ownNames(list ...string) renamed {
	own := make(renamed)
	for _, name := range list {
		own[name] = fmt.Sprintf("%s_of_%d", name, os.Getpid())
	}
	return own
}

// flags are the options of a C compiler that rename them.
func (r renamed) flags() string {
	var list []string
	for name, own := range r {
		list = append(list, "-D"+name+"="+own)
	}
	return strings.Join(list, " ")
}

// countOf adds up the samples of the function of BPF of this name.
func countOf(counts map[string]uint64, name string) (n uint64) {
	for symbol, v := range counts {
		if strings.HasPrefix(symbol, "bpf_prog_") && strings.HasSuffix(symbol, "_"+name) {
			n += v
		}
	}
	return n
}

// compareTimes checks that the share of tally.bpf.c in the samples of both programs equals its
// share of the time, as `bpfrun -times` printed it.
func compareTimes(t *testing.T, text string, tally, total uint64) {
	t.Helper()
	var ran, all float64
	for row := range strings.Lines(text) {
		var name string
		var ns float64
		if n, _ := fmt.Sscanf(row, "ran\t%s\t%f", &name, &ns); n == 2 {
			all += ns
			if strings.HasPrefix(name, "tally") {
				ran += ns
			}
		}
	}
	if all == 0 || total == 0 {
		t.Fatalf("%v ns, %d samples", all, total)
	}
	p, q := float64(tally)/float64(total), ran/all
	t.Logf("tally.bpf.c has %.1f%% of %d samples and %.1f%% of %.0f ms", 100*p, total, 100*q, all/1e6)
	// The kernel's measure of a run has some 50 ns of its own, which a shorter one has more of.
	if bound := 5*math.Sqrt(q*(1-q)/float64(total)) + 0.06; math.Abs(p-q) > bound {
		t.Errorf("tally.bpf.c has %.1f%% of the samples, of the time %.1f%%", 100*p, 100*q)
	}
}
