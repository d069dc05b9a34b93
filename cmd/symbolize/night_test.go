package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// commandLines finds the command lines of symbolize in the examples for engines.
var commandLines = map[string]*regexp.Regexp{
	"cronjob.yaml":            regexp.MustCompile(`(?m)args: \[(.*)\]$`),
	"kubernetes.yaml":         regexp.MustCompile(`(?m)args: \[(.*)\]$`),
	"symbolize-night.service": regexp.MustCompile(`(?m)^ExecStart=\S*symbolize (.*)$`),
}

// TestNightExamples: the examples for engines name commands and flags that there are.
func TestNightExamples(t *testing.T) {
	for name, expr := range commandLines {
		b := must.Read(t, "../../fixtures/night/"+name)
		found := expr.FindAllStringSubmatch(string(b), -1)
		if len(found) == 0 {
			t.Errorf("%s: no command line", name)
		}
		for _, m := range found {
			words := strings.Fields(strings.NewReplacer(", ", " ", `"`, "").Replace(m[1]))
			env, _, _ := inProcess()
			cmd, rest, err := newRootCommand(&cli.App{Env: env}).Find(words)
			if err != nil || cmd.RunE == nil || !strings.HasPrefix(cmd.CommandPath(), "symbolize batch ") {
				t.Errorf("%s: %q is no command: %v", name, words, err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", name, words, err)
			}
		}
	}
}

// nightBlocks returns the shell blocks of a chapter of a document.
func nightBlocks(t *testing.T, document, head string) (blocks []string) {
	t.Helper()
	b := must.Read(t, "../../"+document)
	_, chapter, ok := strings.Cut("\n"+string(b), "\n"+head+"\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	for ok {
		var block string
		if _, chapter, ok = strings.Cut(chapter, "\n```sh\n"); ok {
			block, chapter, _ = strings.Cut(chapter, "```\n")
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// nightRunner runs shell text of the manual in a directory that is its /srv.
type nightRunner struct {
	t        *testing.T
	srv, bin string
}

// run runs a block with arguments and returns its exit status.
func (r *nightRunner) run(block string, args ...string) int {
	r.t.Helper()
	text := strings.ReplaceAll(block, "/srv/", r.srv+"/")
	cmd := exec.Command("sh", append([]string{"-c", text, "night"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+r.bin+":"+os.Getenv("PATH"),
		"SYMBOLIZE_STORE="+filepath.Join(r.srv, "store"), "SYMBOLIZE_LOCAL=0")
	out, err := cmd.CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		r.t.Fatal(err)
	}
	r.t.Logf("%s", out)
	return cmd.ProcessState.ExitCode()
}

// newNightRunner returns a runner with a store of the recorded programs.
func newNightRunner(t *testing.T) *nightRunner {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the script is for a shell and date of Linux")
	}
	r := &nightRunner{t: t, srv: t.TempDir(), bin: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(r.bin, "symbolize")); err != nil {
		t.Fatal(err)
	}
	if status := r.run("symbolize index -q \"$1\"", "../../fixtures/objects/bin"); status != cli.OK {
		t.Fatalf("index: status %d", status)
	}
	return r
}

// put copies a recorded capture to the captures of a day.
func (r *nightRunner) put(from, day, service string) {
	r.t.Helper()
	b, err := os.ReadFile("../../fixtures/captures/" + from + ".data")
	path := filepath.Join(r.srv, "captures", day, service, "h1.data")
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755),
		os.WriteFile(path, b, 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

// TestNightlyJobs runs the commands of the manual's chapter: eight nights, from the sixth on with
// functions that grew, of which the seventh is the proof, then the retention. No file of this machine
// is read: names that it has would be more rows, and more rows need more proof.
func TestNightlyJobs(t *testing.T) {
	blocks := nightBlocks(t, "docs/nightly.md", "# Nightly jobs")
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of shell text", len(blocks))
	}
	r := newNightRunner(t)
	for _, night := range []struct {
		day, capture string
		want         int
	}{
		{day: "2026-03-01", capture: "fixed"}, {day: "2026-03-02", capture: "fixed"},
		{day: "2026-03-03", capture: "fixed"}, {day: "2026-03-04", capture: "fixed"},
		{day: "2026-03-05", capture: "fixed"}, {day: "2026-03-06", capture: "mixed"},
		{day: "2026-03-07", capture: "mixed", want: cli.Grown},
		{day: "2026-03-08", capture: "mixed"}, // proven the night before
	} {
		r.put(night.capture, night.day, "web")
		if got := r.run(blocks[0], night.day); got != night.want {
			t.Errorf("%s: exit status %d, want %d", night.day, got, night.want)
		}
		b, err := os.ReadFile(filepath.Join(r.srv, "profiles", night.day+".json"))
		var sum struct {
			Samples uint64 `json:"samples"`
		}
		if err := errors.Join(err, json.Unmarshal(b, &sum)); err != nil || sum.Samples == 0 {
			t.Errorf("%s: summary %s: %v", night.day, b, err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.srv, "metrics/night.prom")); err != nil {
		t.Error(err)
	}
	if status := r.run(blocks[1]); status != cli.OK {
		t.Errorf("retention: exit status %d", status)
	}
}
