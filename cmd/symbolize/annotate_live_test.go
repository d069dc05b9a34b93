package main

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
	"symbolize/fixtures/perfrepair"
)

// liveFunction is the kernel's description of a BPF function while it was loaded.
type liveFunction struct {
	name  string
	start uint64
	// length of the code, bytes, and its digest
	length uint64
	sha1   string
	lines  []liveLine // in the kernel's order, by address
}

type liveLine struct {
	at     uint64
	file   string
	line   uint64
	source string
}

// parseDump reads the output of `bpfrun -dump`.
func parseDump(t *testing.T, text string) []liveFunction {
	t.Helper()
	var list []liveFunction
	number := func(s string, base int) uint64 {
		v, err := strconv.ParseUint(s, base, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for row := range strings.Lines(text) {
		f := strings.Split(strings.TrimRight(row, "\n"), "\t")
		switch {
		case f[0] == "func" && len(f) == 6:
			list = append(list, liveFunction{name: f[2], start: number(f[3], 16),
				length: number(f[4], 10), sha1: f[5]})
		case f[0] == "line" && len(f) >= 6:
			last := &list[len(list)-1]
			last.lines = append(last.lines, liveLine{number(f[1], 16), f[2], number(f[3], 10),
				strings.Join(f[5:], "\t")})
		}
	}
	return list
}

// lineAt is the line of an address: the last record at or before it that has a line.
func (f *liveFunction) lineAt(at uint64) (found liveLine) {
	for _, l := range f.lines {
		if l.at <= at && l.line != 0 || found.line == 0 {
			found = l
		}
	}
	return found
}

// annotated is the part of annotate's JSON that the test reads.
type annotated struct {
	Functions []annotatedFunction
	Missing   []struct {
		Name    string
		Samples uint64
	} `json:"without_code"`
}

type annotatedFunction struct {
	Name, Address string
	Samples       uint64
	Instructions  []struct {
		Offset            int
		Bytes, Text, File string
		Line              uint64
		Samples           uint64
	}
}

// command runs a program, or skips the test where it cannot.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, &stderr)
	}
	return string(out)
}

// TestLiveAnnotateBPF: programs with subprograms and loops are loaded, run and unloaded
// inside a recording. From the file alone annotate has the bytes that the kernel showed
// while they lived, LLVM's instruction boundaries, the kernel's line of each instruction,
// and per function as many samples as perf report.
func TestLiveAnnotateBPF(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("needs root, perf, clang and BPF; run with SYMBOLIZE_LIVE=1")
	}
	for _, tool := range []string{"perf", "clang", "llvm-objdump", "llvm-objcopy", "llvm-strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: not root")
	}
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command(t, ".", "go", "build", "-o", filepath.Join(dir, "bpfrun"), "../../fixtures/bpfrun")
	command(t, dir, "sh", filepath.Join(fixtures, "src", "bpf", "build.sh"), dir)
	const load = "./bpfrun -dump -rounds 2 -run 300ms bpf/count.bpf.o bpf/tally.bpf.o > dump.txt"
	command(t, dir, "perf", "record", "-q", buildIDs, "-N", "-a", "-g", "-e", "cpu-clock", "-F",
		"1999", "-o", "perf.data", "sh", "-c", load)
	dump := must.Read(t, filepath.Join(dir, "dump.txt"))
	store := filepath.Join(dir, "store")
	runMain(t, "--store", store, "index", "-q", "--kernel")
	counts := compareAnnotation(t, dir, store, parseDump(t, string(dump)), "perf.data")
	repairForPerf(t, dir)
	capture := filepath.Join(dir, "perf.data")
	compareReport(t, perfReport(t, dir), counts, kernelNames(t, capture))
	explainFailure(t, store, capture)
}

// buildIDs has perf keep the build IDs of all that was mapped. Without it perf reads its
// recording once more to find the sampled code, and stops where another recorder made a
// record too long (see perfrepair): the kernel has no build ID then, and so no names.
const buildIDs = "--buildid-all"

// repairForPerf makes repaired.data of perf.data, in which perf reads the right times of
// programs even if another recorder listened, in or beside this test.
func repairForPerf(t *testing.T, dir string) {
	t.Helper()
	n, err := perfrepair.File(filepath.Join(dir, "perf.data"), filepath.Join(dir, "repaired.data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(perfrepair.Report(n))
}

// explainFailure logs, of captures that failed a comparison, their description and their places
// without names: a recording cannot be made again.
func explainFailure(t *testing.T, store string, captures ...string) {
	t.Helper()
	if t.Failed() {
		for _, path := range captures {
			t.Log(runMain(t, "info", path))
		}
		t.Log(runMain(t, append([]string{"missing", "--store", store}, captures...)...))
	}
}

// perfReport is perf's table of samples per function, of repaired.data.
func perfReport(t *testing.T, dir string) string {
	t.Helper()
	return command(t, dir, "perf", "report", "-i", "repaired.data", "--stdio", "--no-children",
		"-n",
		"-g", "none", "--sort", "sym")
}

// compareAnnotation annotates captures and compares boundaries of instructions with LLVM's, and
// bytes and lines of the functions in live with the kernel's. It returns the samples per function.
func compareAnnotation(t *testing.T, dir, store string, live []liveFunction, captures ...string,
) map[string]uint64 {
	t.Helper()
	args := []string{"--store", store, "annotate", "-n", "0", "--format", "json"}
	for _, name := range captures {
		args = append(args, filepath.Join(dir, name))
	}
	var an annotated
	if err := json.Unmarshal([]byte(runMain(t, args...)), &an); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]uint64)
	for _, m := range an.Missing {
		counts[m.Name] += m.Samples
	}
	programs := 0
	for i := range an.Functions {
		f := &an.Functions[i]
		counts[f.Name] += f.Samples
		if strings.HasPrefix(f.Name, "bpf_prog_") && compareFunction(t, dir, f, live) {
			programs++
		}
	}
	if programs < 4 {
		t.Errorf("%d functions had samples, want at least 4; of %d loaded", programs, len(live))
	}
	return counts
}

// compareFunction compares one function, and reports whether it is one of live: others
// are of other programs on this machine.
func compareFunction(t *testing.T, dir string, f *annotatedFunction, live []liveFunction) bool {
	t.Helper()
	var code []byte
	var starts []int
	samples := uint64(0)
	for _, in := range f.Instructions {
		b, err := hex.DecodeString(in.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		code, starts = append(code, b...), append(starts, in.Offset)
		samples += in.Samples
	}
	if samples != f.Samples {
		t.Errorf("%s: %d samples in instructions, %d in all", f.Name, samples, f.Samples)
	}
	if want := llvmStarts(t, dir, code); !slices.Equal(starts, want) {
		t.Errorf("%s: instructions at %v, LLVM has them at %v", f.Name, starts, want)
	}
	start, err := strconv.ParseUint(f.Address, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	l := findLive(live, f.Name, start, code)
	if l == nil {
		return false
	}
	for _, in := range f.Instructions {
		if want := l.lineAt(start + uint64(in.Offset)); in.File != want.file ||
			in.Line != want.line {
			t.Errorf("%s+%#x: line %s:%d, the kernel had %s:%d", f.Name, in.Offset, in.File,
				in.Line,
				want.file, want.line)
		}
	}
	return true
}

// findLive finds a function of this run: others may load the same code at the same address.
func findLive(live []liveFunction, name string, start uint64, code []byte) *liveFunction {
	sum := sha1.Sum(code)
	for i := range live {
		if strings.HasSuffix(name, live[i].name) && live[i].start == start &&
			live[i].sha1 == hex.EncodeToString(sum[:]) {
			return &live[i]
		}
	}
	return nil
}

// llvmStarts returns where LLVM sees instructions begin. It prints prefixes as
// instructions of their own; the opcode behind one is no beginning.
func llvmStarts(t *testing.T, dir string, code []byte) (starts []int) {
	t.Helper()
	file := filepath.Join(dir, "code")
	if err := os.WriteFile(file, code, 0o666); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "llvm-objcopy", "-I", "binary", "-O", "elf64-x86-64",
		"--rename-section", ".data=.text,code", file, file+".o")
	prefix := false
	for row := range strings.Lines(command(t, dir, "llvm-objdump", "-d", "--no-show-raw-insn",
		file+".o")) {
		at, text, ok := strings.Cut(row, ":")
		v, err := strconv.ParseUint(strings.TrimSpace(at), 16, 32)
		if !ok || err != nil {
			continue
		}
		if !prefix {
			starts = append(starts, int(v))
		}
		switch strings.TrimSpace(text) {
		case "lock", "rep", "repne", "data16":
			prefix = true
		default:
			prefix = false
		}
	}
	return starts
}

// reportRow is a line of perf report: share, samples, [k] and symbol.
var reportRow = regexp.MustCompile(`^\s*[0-9.]+%\s+([0-9]+)\s+\[k\] (\S+)`)

// kernelNames returns the kernel's names of the main functions of programs, by the names that perf
// makes up for programs loaded before it: with the function's own tag. Other tests and users may
// have loaded some.
func kernelNames(t *testing.T, capture string) map[string]string {
	t.Helper()
	var info struct {
		Programs []struct {
			Functions []struct{ Name, Symbol, Tag string }
		} `json:"bpf_programs"`
	}
	if err := json.Unmarshal([]byte(runMain(t, "info", "--format", "json", capture)),
		&info); err != nil {
		t.Fatal(err)
	}
	names := make(map[string]string)
	for i := range info.Programs {
		main := &info.Programs[i].Functions[0]
		for _, name := range []string{main.Name, "F"} { // F without BTF
			names["bpf_prog_"+main.Tag+"_"+name] = main.Symbol
		}
	}
	return names
}

// compareReport compares samples per function of kernel and BPF code with perf report.
// renamed are the kernel's names of functions that perf calls otherwise.
func compareReport(t *testing.T, text string, counts map[string]uint64,
	renamed map[string]string) {
	t.Helper()
	want := make(map[string]uint64) // several functions may have one name
	for row := range strings.Lines(text) {
		m := reportRow.FindStringSubmatch(row)
		if m == nil || strings.HasPrefix(m[2], "0x") {
			continue
		}
		n, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		want[cmp.Or(renamed[m[2]], m[2])] += n
	}
	rows, bpf := len(want), 0
	var wrong []string
	for name, n := range want {
		if strings.HasPrefix(name, "bpf_prog_") {
			bpf++
		}
		if counts[name] != n {
			wrong = append(wrong, fmt.Sprintf("%s: %d samples, perf report has %d", name,
				counts[name], n))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		t.Errorf("%d of %d functions differ:\n%s", len(wrong), rows,
			strings.Join(wrong[:min(len(wrong), 20)], "\n"))
	}
	t.Logf("%d functions of the kernel, %d of them BPF, have perf's counts", rows, bpf)
	if bpf < 4 || rows < 10 {
		t.Errorf("only %d functions, %d of them BPF, in perf report", rows, bpf)
	}
}

// runMain runs the command line in this process, which must succeed.
func runMain(t *testing.T, args ...string) string {
	t.Helper()
	env, stdout, stderr := inProcess(args...)
	if status := Main(t.Context(), env); status != cli.OK {
		t.Fatalf("symbolize %v: exit status %d\n%s", args, status, stderr)
	}
	return stdout.String()
}
