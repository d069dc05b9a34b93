package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
)

// machine is a small machine in a directory, for the examples of README.md and the manual: the
// recorded programs are below /srv/app, where they were recorded, and some captures and a kallsyms
// text in the directory of the user "me".
type machine struct {
	root string
	env  map[string]string
}

// newMachine sets one up and makes the user's directory the current one.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{root: t.TempDir()}
	home := filepath.Join(m.root, "home", "me")
	m.env = map[string]string{"HOME": home, localEnv: "0"}
	copyTree(t, filepath.Join(m.root, "srv", "app"), "../../fixtures/objects")
	copyTree(t, filepath.Join(m.root, "opt", "spin"), "../../fixtures/otlp/bin")
	for to, from := range map[string]string{
		"perf.data": "captures/mixed-buildid.data",
		"cron.data": "captures/fixed.data",
		"bpf.data":  "captures/bpf-lines.data",
		"kallsyms":  "kernel/kallsyms",

		"profiles.otlp": "otlp/agent.otlp",
		"stacks.data":   "sampled/stacks.data",
		"waits.data":    "sampled/offcpu.data",
		"stacks.syms":   "sampled/kallsyms",
		"layers.data":   "layers/one.data",
		"types.data":    "types/access.data",
		"access":        "types/access",
		"faults.data":   "types/faults.data",
		"faults":        "types/faults",
		"shop.pb.gz":    "types/shop.pb.gz",
		"files.pb.gz":   "types/files.pb.gz",

		"switches.data": "waits/pipe.data",
		"convoy.data":   "waits/convoy.data",
		"disk.data":     "waits/disk.data",
		"pipeline.data": "waits/pipeline.data",
	} {
		copyFile(t, filepath.Join(home, to), filepath.Join("../../fixtures", from))
	}
	copyTree(t, filepath.Join(home, "waits"), "../../fixtures/waits")
	// README.md runs in a clone of the repository.
	copyTree(t, filepath.Join(home, "fixtures/objects"), "../../fixtures/objects")
	for _, name := range []string{"captures/mixed-buildid.data", "kernel/kallsyms"} {
		copyFile(t, filepath.Join(home, "fixtures", name), filepath.Join("../../fixtures", name))
	}
	stacks := t.TempDir()
	if err := unpackStacks(stacks, "load"); err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{"stacks.json": "stacks.json",
		"counts.json": "bare.json",
		"notes":       "notes"} {
		copyFile(t, filepath.Join(home, to), filepath.Join(stacks, from))
	}
	for to, from := range map[string]string{"drops.json": "locations.json",
		"drops.data": "drops.data",
		"drops.syms": "kallsyms",
		"gaps.1":     "gaps/1.raw", "gaps.2": "gaps/2.raw", "gaps.3": "gaps/3.raw",
		"gaps.4": "gaps/4.raw",
		"gaps.5": "gaps/5.raw"} {
		copyFile(t, filepath.Join(home, to), filepath.Join("../../fixtures/drops", from))
	}
	for _, name := range []string{"trace.txt", "memleak-1.txt", "memleak-2.txt"} {
		copyFile(t, filepath.Join(home, name), filepath.Join("testdata", name))
	}
	copyFile(t, filepath.Join(home, "kinds.bpf.o"), "../../fixtures/maps/kinds.bpf.o")
	t.Chdir(home)
	return m
}

func copyTree(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	b := must.Read(t, from)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	must.Write(t, to, b)
	// A recording without CLOCK_DATA ended when its file was written.
	recorded := time.Date(2026, 11, 21, 2, 26, 0, 0, time.UTC)
	if err := os.Chtimes(to, recorded, recorded); err != nil {
		t.Fatal(err)
	}
}

// run runs the command line in the machine and returns its output, stdout and stderr together as on
// a terminal, line by line. Absolute paths are the machine's, "< FILE" at the end is standard
// input. A status other than 0 fails the test.
func (m *machine) run(t *testing.T, args []string) []string {
	t.Helper()
	var out bytes.Buffer
	env := &cli.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		Getenv: func(name string) string { return m.env[name] },
	}
	if i := slices.Index(args, "<"); i >= 0 && i == len(args)-2 {
		b := must.Read(t, args[i+1])
		env.Stdin, args = bytes.NewReader(b), args[:i]
	}
	for _, a := range args {
		if strings.HasPrefix(a, "/") {
			a = m.root + a
		}
		env.Args = append(env.Args, a)
	}
	status := Main(t.Context(), env)
	lines := splitLines(strings.ReplaceAll(out.String(), m.root, ""))
	if status != cli.OK {
		t.Errorf("symbolize %s: exit status %d\n%s", strings.Join(args, " "), status,
			strings.Join(lines, "\n"))
	}
	return lines
}
