package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLivePprofOfPerfData (SYMBOLIZE_LIVE=1): with the program in the path as perf_to_profile,
// `go tool pprof perf.data` reads the recording, and the store names its functions.
func TestLivePprofOfPerfData(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: live tests run with SYMBOLIZE_LIVE=1")
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	command(t, ".", "go", "build", "-o", in("perf_to_profile"), ".")
	if err := os.Symlink("perf_to_profile", in("symbolize")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../fixtures/captures/clock.data")
	if err == nil {
		err = os.WriteFile(in("perf.data"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SYMBOLIZE_STORE", in("store"))
	command(t, ".", in("symbolize"), "index", "-q", "../../fixtures/objects")
	pprof := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", "-symbolize=none", in("perf.data"))
	pprof.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "PPROF_TMPDIR="+dir)
	out, err := pprof.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "collatz") ||
		!strings.Contains(string(out), "Total samples = 292.93ms") {
		t.Errorf("%v: %s", err, out)
	}
}
