//go:build linux

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// TestLiveBundledJIT: a bundle has the lists of code that node compiled, which name a perf.data of
// the same time as the lists themselves did, and the bundle's own stacks.
func TestLiveBundledJIT(t *testing.T) {
	r := newJITRun(t)
	for _, tt := range []struct {
		flag string
		list *regexp.Regexp
		left string // files that node leaves
	}{
		{flag: "--perf-basic-prof", list: regexp.MustCompile(`^/tmp/perf-\d+\.map$`),
			left: "/tmp/perf-*.map"},
		{flag: "--perf-prof", list: regexp.MustCompile(`/jit-\d+\.dump$`),
			left: filepath.Join(r.dir, "jit-*.dump")},
	} {
		before, _ := filepath.Glob(tt.left)
		r.run(r.self, "capture", "-q", "--stacks", "-o", "bundle.data", "--", "perf", "record", "-q", "-k", "mono",
			"-e", "cpu-clock", "-F", "499", "-g", "-o", "perf.data", "node", tt.flag, "hot.js")
		want := jitSamples(t, r.resolve("perf.data"), tt.list)
		own := make(map[string]bool)
		for _, path := range before {
			own[path] = true
		}
		after, _ := filepath.Glob(tt.left)
		for _, path := range after {
			if !own[path] {
				os.Remove(path)
			}
		}
		if got := jitSamples(t, r.resolve("--with", "bundle.data", "perf.data"), tt.list); len(want) == 0 ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d samples are named by the bundle, %d by the lists", tt.flag, len(got), len(want))
		}
		r.ownStacks("own.data", "node", tt.flag, "hot.js")
		r.run(r.self, "index", "-q", "bundle.data")
		if got := jitSamples(t, r.resolve("--no-local", "perf.data"), tt.list); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d samples are named by the store, %d by the lists", tt.flag, len(got), len(want))
		}
	}
}

// TestLiveContainedJIT: the perf map of a process with a /tmp and a number of its own is in the
// bundle when the process and its /tmp are gone.
func TestLiveContainedJIT(t *testing.T) {
	r := newJITRun(t)
	r.ownStacks("bundle.data", "unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c",
		`mount -t tmpfs none /tmp && exec node --perf-basic-prof -e "$1"`, "sh", hotScript)
}

// ownStacks records a command with capture --stacks and finds the names of its compiled functions.
// If the program replaces memory with its own code by a file's code while it is sampled, its stacks
// are of two sets of mappings, and the list of code counts for the last alone: then the frames have
// no name, and it records again.
func (r *jitRun) ownStacks(bundle string, command ...string) {
	r.t.Helper()
	const tries = 4
	for try := 1; ; try++ {
		r.run(r.self, append([]string{"capture", "-q", "--stacks", "-o", bundle, "--"}, command...)...)
		own := r.run(r.self, "resolve", "-q", "--format", "folded", bundle)
		if strings.Contains(own, ";JS:*fib ") {
			return
		}
		if try == tries {
			r.t.Errorf("%v: the bundle's own stacks:\n%.3000s", command, own)
			return
		}
		r.t.Logf("%v: no compiled function has a name, once more", command)
	}
}

// replacedScript makes a function in each phase of 100 ms, named with the number in the thread's
// name, and drops the previous one: they have the same addresses.
const replacedScript = `const t0 = Date.now();
for (let k = 0; Date.now() - t0 < 4000; k++) {
  process.title = 'phase' + k;
  const f = new Function('n', 'function js_hot_' + k + '(n) { let s = 0; for (let i = 0; i < n; i++) ' +
    's = (s * 31 + i * ' + (k + 1) + ') % 1000003; return s } return js_hot_' + k + '(n)');
  for (const e = Date.now() + 100; Date.now() < e;) f(20000);
  if (k % 10 == 0) gc();
}`

// TestLiveReplacedJIT: no sample of a phase has the function of another phase, which was at the
// same address before or after, and most have the phase's own.
func TestLiveReplacedJIT(t *testing.T) {
	r := newJITRun(t)
	must.Write(t, filepath.Join(r.dir, "phases.js"), []byte(replacedScript))
	r.run(r.self, "capture", "-q", "--stacks", "-F", "999", "-o", "phases.data", "--", "node", "--expose-gc",
		"--perf-prof", "phases.js")
	own, wrong, samples := 0, 0, 0
	hot := regexp.MustCompile(`js_hot_(\d+)`)
	for line := range strings.Lines(r.run(r.self, "resolve", "-q", "--count", "--format", "folded", "phases.data")) {
		phase, ok := strings.CutPrefix(line[:strings.IndexByte(line, ';')], "phase")
		n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]))
		if err != nil || !ok {
			continue
		}
		samples += n
		found := hot.FindAllStringSubmatch(line, -1)
		other := slices.ContainsFunc(found, func(m []string) bool { return m[1] != phase })
		switch {
		case other:
			wrong += n
			t.Errorf("phase %s: %s", phase, line)
		case len(found) > 0:
			own += n
		}
	}
	t.Logf("%d samples, %d with their phase's function, %d with another's", samples, own, wrong)
	if samples < leastCompared || own < samples/2 {
		t.Errorf("%d of %d samples have their phase's function", own, samples)
	}
}
