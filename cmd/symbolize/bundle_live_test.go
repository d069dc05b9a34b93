package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// withoutPrograms empties the features BPF_PROG_INFO and BPF_BTF of a little-endian
// perf.data: as of a perf that came too late to read any program.
func withoutPrograms(t *testing.T, data []byte) []byte {
	t.Helper()
	const dataAt, bitmapAt, sectionRef, progInfo, btf = 40, 72, 16, 25, 26
	le := binary.LittleEndian
	out := bytes.Clone(data)
	at := le.Uint64(out[dataAt:]) + le.Uint64(out[dataAt+8:])
	emptied := 0
	for bit := range 64 {
		if le.Uint64(out[bitmapAt:])>>bit&1 == 0 {
			continue
		}
		if bit == progInfo || bit == btf {
			le.PutUint64(out[at+8:], 0) // its size
			emptied++
		}
		at += sectionRef
	}
	if emptied != 2 {
		t.Fatalf("%d of 2 features with programs", emptied)
	}
	return out
}

// TestLiveBundle: a perf.data without its own information about programs that came and went inside
// `capture -- perf record` gives the same bytes, beside the bundle, as with that information.
func TestLiveBundle(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("needs root, perf, clang and BPF; run with SYMBOLIZE_LIVE=1")
	}
	for _, tool := range []string{"perf", "clang", "llvm-strip"} {
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
	in := func(name string) string { return filepath.Join(dir, name) }
	command(t, ".", "go", "build", "-o", in("bpfrun"), "../../fixtures/bpfrun")
	command(t, dir, "sh", filepath.Join(fixtures, "src", "bpf", "build.sh"), dir)
	runMain(t, "capture", "-o", in("capture.data"), "--", "perf", "record", "-q", "-N", "-a", "-g",
		"-e", "cpu-clock", "-F", "999", "-o", in("perf.data"), "sh", "-c",
		"cd "+dir+" && ./bpfrun -rounds 2 -run 300ms -pause 300ms bpf/count.bpf.o bpf/tally.bpf.o")
	data := must.Read(t, in("perf.data"))
	must.Write(t, in("late.data"), withoutPrograms(t, data))
	results := make(map[string]string)
	for _, name := range []string{"perf.data", "late.data"} {
		results[name] = runMain(t, "--store", in("none"), "resolve", "-q", "--format", "json", in(name),
			in("capture.data"))
	}
	want := results["perf.data"]
	late := strings.ReplaceAll(results["late.data"], "late.data", "perf.data")
	if late != want {
		t.Errorf("%d bytes of JSON, want the %d that the whole recording gives", len(late), len(want))
	}
	for _, name := range []string{"_count_system_calls_on_enter", "_mix_bits", "_sum_window",
		"_tally_digits", "_fold_digits", "count.bpf.c", "tally.bpf.c"} {
		if !strings.Contains(late, name) {
			t.Errorf("no %s in what the bundle gave", name)
		}
	}
	if alone := runMain(t, "--store", in("none"), "resolve", "-q", "--format", "json",
		in("late.data")); strings.Contains(alone, "count.bpf.c") {
		t.Error("lines without the bundle")
	}
	// The side band in the words of perf itself.
	if _, err := exec.LookPath("tar"); err == nil {
		command(t, dir, "sh", "-c", "tar -xf capture.data -C . perf.data --transform s/perf/side/")
		out := command(t, dir, "perf", "script", "--show-bpf-events", "-i", "side.data")
		if !strings.Contains(out, "_count_system_calls_on_enter") {
			t.Errorf("perf reads of the side band\n%s", out)
		}
	}
}
