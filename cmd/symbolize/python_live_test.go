//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"symbolize/fixtures/must"
)

// workScript calls functions of Python for half a second.
const workScript = `import time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def work(end):
    s = 0
    while time.time() < end: s += fib(12)
    return s
work(time.time() + 0.5)
`

// TestLiveJITDumpPython: copied stacks go through the code that CPython makes for each function in
// Python, by the rules in its jitdump file, and have the names and callers that perf finds after
// perf inject --jit.
func TestLiveJITDumpPython(t *testing.T) {
	needLive(t, "perf")
	python := pythonWithJITDump()
	if python == "" {
		t.Skip("SKIPPED: no python3.13 with -X perf_jit in PATH or ~/.pyenv: Debian 12 has 3.11")
	}
	r := &jitRun{t: t, dir: t.TempDir(), self: liveBinary(t)}
	must.Write(t, filepath.Join(r.dir, "work.py"), []byte(workScript))
	r.run("perf", "record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "499", "--call-graph", "dwarf,16384",
		"-o", "perf.data", python, "-X", "perf_jit", "work.py")
	dump := regexp.MustCompile(`/\S*/jit-(\d+)\.dump`).FindStringSubmatch(r.run("perf", "script", "-i",
		"perf.data", "--show-mmap-events", "-F", "comm"))
	if dump == nil {
		t.Fatal("no jitdump file is mapped")
	}
	t.Cleanup(func() {
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(dump[0]), "jitted-"+dump[1]+"-*.so"))
		for _, path := range append(files, dump[0]) {
			os.Remove(path)
		}
	})
	text := r.resolve("perf.data")
	got := jitSamples(t, text, regexp.MustCompile(`/jit-\d+\.dump$`))
	if cut := regexp.MustCompile(`(?m)^.*jit-\d+\.dump\)\n.*\[chain broken\].*$`).FindString(text); cut != "" {
		t.Errorf("a stack breaks in Python's code: %s", cut)
	}
	r.run("perf", "inject", "--jit", "-i", "perf.data", "-o", "injected.data")
	want := jitSamples(t, r.script("injected.data"), regexp.MustCompile(`/jitted-\d+-\d+\.so$`))
	compareJIT(t, "CPython", got, want, func(a, b jitLine) bool {
		return a.name == b.name && (a.off == b.off || a.off == b.off+1) // perf prints the byte before
	})
}

// pythonWithJITDump returns a CPython that writes jitdump files; "" if there is none.
func pythonWithJITDump() string {
	home, _ := os.UserHomeDir()
	list, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "*", "bin", "python3"))
	for _, name := range append([]string{"python3.14", "python3.13", "python3"}, list...) {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		try := exec.Command(path, "-X", "perf_jit", "-c", "import sys; "+
			"sys.exit(sys.version_info < (3, 13) or not sys.is_stack_trampoline_active())")
		if err = try.Run(); try.ProcessState != nil {
			os.Remove("/tmp/jit-" + strconv.Itoa(try.ProcessState.Pid()) + ".dump")
		}
		if err == nil {
			return path
		}
	}
	return ""
}
