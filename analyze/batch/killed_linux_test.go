package batch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/analyze"
	"symbolize/analyze/batch"
	"symbolize/fixtures/must"
	"symbolize/fixtures/sweep"
	"symbolize/fixtures/tracerun"
	"symbolize/ingest"
)

// The environment of a process that does one step of a batch and nothing else.
const (
	stepVar   = "BATCH_TEST_STEP"
	nightVar  = "BATCH_TEST_NIGHT"
	storeVar  = "BATCH_TEST_STORE"
	inputVar  = "BATCH_TEST_INPUT" // of the step: the directory of the step before
	outputVar = "BATCH_TEST_OUTPUT"
)

func TestMain(m *testing.M) {
	step := os.Getenv(stepVar)
	if step == "" {
		os.Exit(m.Run())
	}
	n := &night{dir: os.Getenv(nightVar), store: os.Getenv(storeVar)}
	if err := n.step(step, os.Getenv(inputVar), os.Getenv(outputVar)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// step does one step as a task of an engine does.
func (n *night) step(step, input, output string) error {
	ctx := context.Background()
	var err error
	if n.captures, err = batch.Captures([]string{n.dir}); err != nil {
		return err
	}
	collected, err := filepath.Glob(filepath.Join(filepath.Dir(output), "collect", "*.stacks"))
	if err != nil {
		return err
	}
	switch step {
	case "collect":
		c := &batch.Collector{Session: n.session(), Dir: output, Parts: 3}
		_, stats, err := c.Collect(ctx, n.captures, n.captures)
		if err == nil && stats.Failed > 0 {
			err = fmt.Errorf("%d captures failed", stats.Failed)
		}
		return err
	case "name":
		s, err := analyze.Open(ctx, n.session())
		if err != nil {
			return err
		}
		for part := range 3 {
			path := filepath.Join(output, fmt.Sprint(part))
			if _, err := batch.Name(ctx, s, part, collected, path, batch.NameOptions{Workers: 1}); err != nil {
				return errors.Join(err, s.Close())
			}
		}
		return s.Close()
	case "merge":
		names, err := filepath.Glob(filepath.Join(input, "?"))
		if err != nil {
			return err
		}
		return n.mergeAll(ctx, collected, names, output)
	}
	return batchRun(ctx, n, output)
}

func batchRun(ctx context.Context, n *night, output string) error {
	_, err := batch.Run(ctx, n.captures, n.options(output))
	return err
}

// mergeAll writes the profiles of all groups.
func (n *night) mergeAll(ctx context.Context, collected, names []string, output string) error {
	answers, err := batch.OpenAnswers(names)
	if err != nil {
		return err
	}
	by := n.options(output).By
	grouped, err := by.Groups(collected)
	if err == nil {
		err = batch.WriteAll(ctx, grouped.Groups, answers, batch.Output{Dir: output, Formats: formats,
			Demangler: newDemangler}, func(*batch.Group, *batch.Written) {})
	}
	return errors.Join(err, answers.Close())
}

// start is a step in a process of its own.
func (n *night) start(step, input, output string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), stepVar+"="+step, nightVar+"="+n.dir, storeVar+"="+n.store,
		inputVar+"="+input, outputVar+"="+output)
	cmd.Stderr = os.Stderr
	return cmd
}

// files reads all files below a directory that are not hidden.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	got := must.Tree(t, dir)
	for name := range got {
		if strings.HasPrefix(filepath.Base(name), ".") {
			delete(got, name)
		}
	}
	return got
}

// TestKilledSteps: each step, as a process that is killed at any of its system calls, leaves whole files
// alone; run again, and in two processes at a time that write to the same directory, it leaves the
// same bytes.
func TestKilledSteps(t *testing.T) {
	n := newNight(t)
	want := t.TempDir()
	rng := sweep.Rand(t)
	before := ""
	for _, step := range []string{"collect", "name", "merge", "run"} {
		reference := mkdir(t, filepath.Join(want, step))
		calls, _ := tracerun.Kill(t, n.start(step, filepath.Join(want, before), reference), 0)
		whole := files(t, reference)
		// The step reads what the reference runs of the steps before wrote.
		got := mkdir(t, filepath.Join(want, step+"-killed"))
		killed := 0
		for range sweep.Most(8, 2) {
			if err := os.RemoveAll(got); err != nil { // the last one is gone on with
				t.Fatal(err)
			}
			mkdir(t, got)
			cmd := n.start(step, filepath.Join(want, before), got)
			if _, dead := tracerun.Kill(t, cmd, 1+rng.IntN(calls)); dead {
				killed++
			}
			for name, b := range files(t, got) {
				if string(b) != string(whole[name]) {
					t.Errorf("%s, killed: %s is none of its files, or not whole", step, name)
				}
			}
		}
		together(t, n, step, filepath.Join(want, before), got)
		compare(t, files(t, got), whole)
		// Both begin with nothing.
		twice := mkdir(t, filepath.Join(want, step+"-twice"))
		together(t, n, step, filepath.Join(want, before), twice)
		compare(t, files(t, twice), whole)
		t.Logf("%s: %d files in %d calls; killed %d times", step, len(whole), calls, killed)
		before = step
	}
}

// together runs a step in two processes at a time.
func together(t *testing.T, n *night, step, input, output string) {
	t.Helper()
	a, b := n.start(step, input, output), n.start(step, input, output)
	if err := errors.Join(a.Start(), b.Start()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Wait(), b.Wait()); err != nil {
		t.Errorf("%s, two at a time: %v", step, err)
	}
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUnwritten: where a file cannot be written, since a directory has its name, the rest is done
// and the run ends with ErrOutput; the next one completes it.
func TestUnwritten(t *testing.T) {
	n := newNight(t)
	want := n.plain(t)
	for _, tt := range []struct {
		name, pattern string // of the file
		left          int    // profiles that are made all the same, at least
	}{
		{name: "collected", pattern: ".batch/*.stacks"},
		{name: "names", pattern: ".batch/*.names"},
		{name: "profile", pattern: "web/h0.pb.gz", left: len(want) - 2},
		{name: "second profile", pattern: "web/h0.folded", left: len(want) - 1},
		{name: "mark", pattern: ".batch/*.done", left: len(want)},
	} {
		out := t.TempDir()
		opts := n.options(out)
		if _, err := batch.Run(t.Context(), n.captures, opts); err != nil {
			t.Fatal(err)
		}
		blocked := ""
		opts.Hooks = &batch.Hooks{Step: func(string, int) {
			if blocked == "" { // after the run has looked for such directories
				blocked = block(t, out, tt.pattern)
			}
		}}
		var messages []string
		opts.OnFailed = func(_ string, err error) { messages = append(messages, err.Error()) }
		opts.OnUnwritten = func(err error) { messages = append(messages, err.Error()) }
		sum, err := batch.Run(t.Context(), n.captures, opts)
		if !errors.Is(err, batch.ErrOutput) || sum.Files != 1 {
			t.Errorf("%s: %d files not written, %v", tt.name, sum.Files, err)
		}
		if len(messages) != 1 || !strings.Contains(messages[0], blocked) {
			t.Errorf("%s: %q does not name %s", tt.name, messages, blocked)
		}
		if err := os.RemoveAll(blocked); err != nil {
			t.Fatal(err)
		}
		if got := must.Tree(t, out); len(got) < tt.left {
			t.Errorf("%s: %d profiles, want at least %d", tt.name, len(got), tt.left)
		}
		if _, err := batch.Run(t.Context(), n.captures, n.options(out)); err != nil {
			t.Errorf("%s, again: %v", tt.name, err)
		}
		compare(t, must.Tree(t, out), want)
	}
}

// TestSetAside: a directory that is in the place of a file of the run before it began is renamed,
// which is a warning, and nothing is lost.
func TestSetAside(t *testing.T) {
	n := newNight(t)
	want := n.plain(t)
	out := t.TempDir()
	for _, pattern := range []string{".batch/*.stacks", ".batch/*.names", ".batch/*.done", ".batch/*.done"} {
		if _, err := batch.Run(t.Context(), n.captures, n.options(out)); err != nil {
			t.Fatal(err)
		}
		blocked := block(t, out, pattern)
		if err := os.Mkdir(blocked+".aside", 0o755); err != nil {
			t.Fatal(err)
		}
		var warnings []string
		opts := n.options(out)
		opts.Hooks = &batch.Hooks{OnWarn: func(_ string, w ingest.Warning) { warnings = append(warnings, w.Text) }}
		if _, err := batch.Run(t.Context(), n.captures, opts); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		if len(warnings) == 0 || !strings.HasPrefix(warnings[0], blocked+" is a directory") {
			t.Errorf("%s: %q", pattern, warnings)
		}
		if _, err := os.Stat(filepath.Join(blocked+".aside2", "in the way")); err != nil {
			t.Error(err)
		}
		compare(t, must.Tree(t, out), want)
	}
}

// block removes all that a run wrote, and makes a directory of the name of its first file of a pattern.
func block(t *testing.T, out, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(out, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatal(pattern, err)
	}
	err = errors.Join(os.RemoveAll(out), os.MkdirAll(filepath.Join(out, ".batch"), 0o755),
		os.MkdirAll(filepath.Join(paths[0], "in the way"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return paths[0]
}

// TestCollectedTwice: a capture that was collected with two sets of options is refused, as its samples would
// count twice.
func TestCollectedTwice(t *testing.T) {
	n := newNight(t)
	var collected []string
	work := t.TempDir()
	for _, config := range []string{"", "other"} {
		c := &batch.Collector{Session: n.session(), Dir: work, Parts: 1, Config: config}
		files, _, err := c.Collect(t.Context(), n.captures[:2], n.captures)
		if err != nil {
			t.Fatal(err)
		}
		collected = append(collected, files...)
	}
	by := batch.Grouping{}
	_, err := by.Groups(collected)
	if err == nil || !strings.Contains(err.Error(), n.captures[0]+" was collected twice, as "+work) {
		t.Errorf("groups: %v", err)
	}
}
