package main

import (
	"cmp"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// needLive skips a test where it cannot run, loudly.
func needLive(t *testing.T, tools ...string) {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: needs root and BPF; live tests run with SYMBOLIZE_LIVE=1")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: not root")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
	}
}

// programFrame is a frame in BPF code, as perf script prints it.
type programFrame struct {
	time, ip, name string // the time in seconds, to the µs; the name with its offset
}

var (
	scriptHead  = regexp.MustCompile(`^\S.* +([0-9]+\.[0-9]{6})[0-9]*: `)
	scriptFrame = regexp.MustCompile(`^\s+([0-9a-f]+) (bpf_prog_\S+)`)
)

// programFrames reads the frames in BPF programs out of perf script's text. renamed are the
// kernel's names of functions that perf calls otherwise.
func programFrames(text string, renamed map[string]string) (list []programFrame) {
	time := ""
	for row := range strings.Lines(text) {
		if m := scriptHead.FindStringSubmatch(row); m != nil {
			time = m[1]
		} else if m := scriptFrame.FindStringSubmatch(row); m != nil {
			name, offset, _ := strings.Cut(m[2], "+")
			name = cmp.Or(renamed[name], name)
			list = append(list, programFrame{time, m[1], name + "+" + offset})
		}
	}
	slices.SortFunc(list, func(a, b programFrame) int {
		return strings.Compare(a.time+" "+a.ip+" "+a.name, b.time+" "+b.ip+" "+b.name)
	})
	return list
}

// sharedAddresses counts the addresses that frames of more than one function have: the
// kernel put one program where another one had been.
func sharedAddresses(frames []programFrame) (addresses, samples int) {
	names := make(map[string]map[string]bool)
	for _, f := range frames {
		name, _, _ := strings.Cut(f.name, "+")
		if names[f.ip] == nil {
			names[f.ip] = make(map[string]bool)
		}
		names[f.ip][name] = true
	}
	for _, f := range frames {
		if len(names[f.ip]) > 1 {
			samples++
		}
	}
	maps.DeleteFunc(names, func(_ string, of map[string]bool) bool { return len(of) < 2 })
	return len(names), samples
}

// overlaps counts the pairs of functions with different code of which the kernel put one
// where the other had been.
func overlaps(live []liveFunction) (n int) {
	for i := range live {
		for k := range live[:i] {
			a, b := &live[i], &live[k]
			if a.sha1 != b.sha1 && a.name != b.name && a.start < b.start+b.length &&
				b.start < a.start+a.length {
				n++
			}
		}
	}
	return n
}

// reuseTries is how often the programs are loaded in turn, so that one is loaded at an address of
// another.
const reuseTries = 6

// TestLiveProgramsGone is the whole way of programs that are gone: C programs with
// subprograms and loops are loaded, run and unloaded, in turn, inside one `perf record -a`
// and one `symbolize capture`. Of these two files, from whose perf.data all that perf
// itself read of programs is taken away, come perf script's frames, at each time and
// address, also where two programs shared addresses; the lines that the kernel had while
// the programs lived, which are those of bpftool; LLVM's boundaries of instructions;
// and perf report's counts.
func TestLiveProgramsGone(t *testing.T) {
	needLive(t, "perf", "clang", "llvm-strip", "llvm-objdump", "llvm-objcopy")
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	command(t, ".", "go", "build", "-o", in("bpfrun"), "../../fixtures/bpfrun")
	command(t, dir, "sh", filepath.Join(fixtures, "src", "bpf", "build.sh"), dir)
	load := "cd " + dir + " && ./bpfrun -dump -rounds " + strconv.Itoa(reuseTries) +
		" -run 150ms -pause 100ms bpf/count.bpf.o bpf/tally.bpf.o >dump.txt"
	runMain(t, "capture", "-o", in("capture.data"), "--", "perf", "record", "-q", buildIDs, "-N", "-a",
		"-g", "-e", "cpu-clock", "-F", "1999", "-o", in("perf.data"), "sh", "-c", load)
	data := must.Read(t, in("perf.data"))
	must.Write(t, in("late.data"), withoutPrograms(t, data))
	dump := must.Read(t, in("dump.txt"))
	live := parseDump(t, string(dump))

	repairForPerf(t, dir)
	renamed := kernelNames(t, in("perf.data"))
	want := programFrames(command(t, dir, "perf", "script", "-i", "repaired.data", "--no-inline", "-F",
		"comm,pid,tid,time,event,ip,sym,symoff"), renamed)
	got := programFrames(runMain(t, "--store", in("none"), "resolve", "-q", "--format", "script",
		in("late.data"), in("capture.data")), nil)
	if len(want) < 100 || !slices.Equal(got, want) {
		t.Errorf("%d frames in programs, perf script has %d", len(got), len(want))
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("frame %d: %+v, perf script has %+v", i, got[i], want[i])
			}
		}
	}
	addresses, samples := sharedAddresses(got)
	t.Logf("%d frames in programs have perf script's names; %d of them at the %d addresses that were "+
		"sampled in more than one function", len(got), samples, addresses)
	switch n := overlaps(live); {
	case n == 0:
		t.Logf("NOT PROVEN: in %d rounds the kernel gave no program an address that another one had had",
			reuseTries)
	case addresses == 0:
		t.Logf("NOT PROVEN: %d pairs of functions overlap, and no sample hit both at one address", n)
	}

	runMain(t, "--store", in("store"), "index", "-q", "--kernel")
	counts := compareAnnotation(t, dir, in("store"), live, "late.data", "capture.data")
	compareReport(t, perfReport(t, dir), counts, renamed)
	explainFailure(t, in("store"), in("late.data"), in("capture.data"))
}
