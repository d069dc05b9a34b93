package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/resolvecmd"
)

// TestPerfToProfile converts as pprof asks for it: into a file that pprof has open.
func TestPerfToProfile(t *testing.T) {
	const capture = "../../fixtures/captures/clock.data"
	out := filepath.Join(t.TempDir(), "pprof_1.pb.gz")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run := func(args ...string) (int, string) {
		line := resolvecmd.CommandLine(append([]string{"/usr/local/bin/perf_to_profile"}, args...))
		env, _, stderr := inProcess(line[1:]...)
		env.Getenv = func(name string) string {
			return map[string]string{"SYMBOLIZE_STORE": filepath.Join(t.TempDir(), "s")}[name]
		}
		return Main(t.Context(), env), stderr.String()
	}
	if code, text := run("-i", capture, "-o", out); code != cli.Failed ||
		!strings.Contains(text, "is there already") {
		t.Errorf("without -f: status %d: %s", code, text)
	}
	if code, text := run("-i", capture, "-o", out, "-f"); code != cli.OK {
		t.Fatalf("status %d: %s", code, text)
	}
	prof, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(prof.Sample) == 0 || prof.SampleType[1].Type != "cpu" {
		t.Errorf("%d samples of %v", len(prof.Sample), prof.SampleType)
	}
	if code, text := run("-i", out, "-o", out, "-f"); code != cli.Usage {
		t.Errorf("onto itself: status %d: %s", code, text)
	}
	if code, _ := run("-i", capture); code != cli.Usage {
		t.Errorf("without -o: status %d", code)
	}
	other := []string{"symbolize", "top"}
	if got := resolvecmd.CommandLine(other); !slices.Equal(got, other) {
		t.Errorf("another name: %v", got)
	}
}
