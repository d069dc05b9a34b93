package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// loggedShare is how much CPU time a thread spent in a function, by its own log.
type loggedShare struct {
	comm, function string
	ns             float64
}

// readLogged reads the logs of fixtures/src/logged.c and signals.c.
func readLogged(t *testing.T, path string) (list []loggedShare) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var l loggedShare
		if _, err := fmt.Sscan(sc.Text(), &l.comm, &l.function, &l.ns); err != nil {
			t.Fatalf("%s: %q: %v", path, sc.Text(), err)
		}
		list = append(list, l)
	}
	return list
}

// anyFrame counts the samples of a thread by the functions in their stacks, each once.
func anyFrame(t *testing.T, folded, comm string) (counts map[string]int, samples int) {
	t.Helper()
	counts = make(map[string]int)
	for line := range strings.Lines(folded) {
		at := strings.LastIndexByte(line, ' ')
		n, err := strconv.Atoi(strings.TrimSpace(line[at+1:]))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		frames := strings.Split(line[:at], ";")
		if frames[0] != comm {
			continue
		}
		samples += n
		seen := make(map[string]bool)
		for _, f := range frames[1:] {
			if !seen[f] {
				seen[f] = true
				counts[f] += n
			}
		}
	}
	return counts, samples
}

// checkLogged compares the shares of a thread's functions with its log: of n samples, a
// share may be off by five standard deviations, and two hundredths for code that is not in the
// log. It returns how many samples the thread has.
func checkLogged(t *testing.T, folded, comm string, logged []loggedShare) {
	t.Helper()
	counts, samples := anyFrame(t, folded, comm)
	total := 0.0
	for _, l := range logged {
		if l.comm == comm {
			total += l.ns
		}
	}
	if samples < 50 || total == 0 {
		t.Errorf("%s: %d samples, %.0f ns in the log", comm, samples, total)
		return
	}
	for _, l := range logged {
		if l.comm != comm {
			continue
		}
		want, got := l.ns/total, float64(counts[l.function])/float64(samples)
		most := 5*math.Sqrt(want*(1-want)/float64(samples)) + 0.02
		t.Logf("%s: %s has %.1f %% of %d samples, %.1f %% by its log", comm, l.function, 100*got,
			samples, 100*want)
		if math.Abs(got-want) > most {
			t.Errorf("%s: %s has %.3f of the samples, %.3f by the log", comm, l.function, got, want)
		}
	}
}

// checkNoneOf wants no function of others in the stacks of a thread.
func checkNoneOf(t *testing.T, folded, comm string, logged []loggedShare) {
	t.Helper()
	own := make(map[string]bool)
	for _, l := range logged {
		if l.comm == comm {
			own[l.function] = true
		}
	}
	counts, samples := anyFrame(t, folded, comm)
	if samples < 50 {
		t.Errorf("%s: %d samples", comm, samples)
	}
	for _, l := range logged {
		if n := counts[l.function]; n > 0 && !own[l.function] {
			t.Errorf("%s: %d of %d samples are named %s, of another file", comm, n, samples, l.function)
		}
	}
}

// buildLogged compiles fixtures/src/logged.c twice, with other functions at the same addresses.
func buildLogged(t *testing.T, dir string) {
	t.Helper()
	src, err := filepath.Abs("../../fixtures/src/logged.c")
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"-O1", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id"}
	command(t, dir, "gcc", append(flags, "-DFIRST=old_first", "-DSECOND=old_second", "-o", "old.bin",
		src)...)
	command(t, dir, "gcc", append(flags, "-DFIRST=new_first", "-DSECOND=new_second", "-o", "new.bin",
		src)...)
}

// replacedLoad runs programs at one path, run/prog in $1; $2 has the log.
const (
	replacedBoth = `cd "$1"; cp old.bin run/a; mv run/a run/prog; run/prog older "$2" 400
cp new.bin run/b; mv run/b run/prog; run/prog newer "$2" 400`
	replacedUnrun = `cd "$1"; cp old.bin run/a; mv run/a run/prog; run/prog older "$2" 400
cp new.bin run/b; mv run/b run/prog; ./new.bin newer "$2" 400`
	deletedRunning = `cd "$1"; cp old.bin run/prog; run/prog older "$2" 400 & sleep 0.1; rm run/prog; wait
cp new.bin run/prog; run/prog newer "$2" 400`
	inContainer = `cd "$1"; cp new.bin run/prog; run/prog newer "$2" 800 & sleep 0.1
unshare --mount --pid --fork --mount-proc sh -c 'mount -t tmpfs none run; cp old.bin run/prog
run/prog older "$0" 400' "$2"; wait`
	inContainerAlone = `cd "$1"; cp new.bin run/prog; ./new.bin newer "$2" 400
unshare --mount --pid --fork --mount-proc sh -c 'mount -t tmpfs none run; cp old.bin run/prog
run/prog older "$0" 400' "$2"`
)

// TestLiveOnePathTwoFiles: two programs at one path, one after the other or in a container beside
// the host, are never named by each other. With build IDs of mappings both have their names in the
// shares of their logs; with build IDs of paths uncertain ones have none.
func TestLiveOnePathTwoFiles(t *testing.T) {
	needLive(t, "perf", "gcc", "unshare", "mount")
	for _, tc := range []struct {
		name, load string
		named      string // those with names by the build IDs of paths
	}{
		{name: "replaced", load: replacedBoth, named: "newer"},
		{name: "replaced, the new one ran elsewhere", load: replacedUnrun, named: "newer"},
		{name: "deleted while it ran", load: deletedRunning, named: "newer"},
		{name: "container beside the host", load: inContainer},
		{name: "container alone", load: inContainerAlone, named: "newer"},
	} {
		t.Run(strings.ReplaceAll(tc.name, " ", "_"), func(t *testing.T) {
			dir := t.TempDir()
			buildLogged(t, dir)
			for _, byMapping := range []bool{true, false} {
				checkOnePath(t, dir, tc.load, byMapping, tc.named)
			}
		})
	}
}

// checkOnePath records a load, with the build ID of each mapping or of paths, and compares
// it with its log and with perf.
func checkOnePath(t *testing.T, dir, load string, byMapping bool, named string) {
	t.Helper()
	os.RemoveAll(filepath.Join(dir, "run"))
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, fmt.Sprint("log", byMapping))
	data := filepath.Join(dir, fmt.Sprint(byMapping, ".data"))
	args := []string{"record", "-q", "-N", "-g", "-e", "cpu-clock", "-F", "997", "-o", data}
	if byMapping {
		args = append(args, "--buildid-mmap")
	}
	cmd := exec.Command("perf", append(args, "sh", "-c", load, "sh", dir, log)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	store := filepath.Join(dir, fmt.Sprint("store", byMapping))
	runMain(t, "index", "--quiet", "--store", store, filepath.Join(dir, "old.bin"),
		filepath.Join(dir, "new.bin"), filepath.Join(dir, "run"))
	folded := runMain(t, "resolve", "--quiet", "--count", "--store", store, "--format", "folded", data)
	logged := readLogged(t, log)
	for _, comm := range []string{"older", "newer"} {
		checkNoneOf(t, folded, comm, logged)
		if byMapping || comm == named {
			checkLogged(t, folded, comm, logged)
		}
		ours, wrong := perfNames(t, data, comm, logged)
		t.Logf("build IDs of mappings %v: perf script names %d of %d samples of %s by the other file",
			byMapping, wrong, ours, comm)
		if _, samples := anyFrame(t, folded, comm); samples != ours {
			t.Errorf("%s: %d samples, perf script has %d", comm, samples, ours)
		}
	}
}

var perfScriptHead = regexp.MustCompile(`^(\S+) +[0-9]+ `)

// perfNames counts the samples of a thread in the output of perf script, and those with a
// function that the thread's log does not have, but another's.
func perfNames(t *testing.T, data, comm string, logged []loggedShare) (samples, wrong int) {
	t.Helper()
	other := make(map[string]bool)
	for _, l := range logged {
		if l.comm != comm {
			other[l.function] = true
		}
	}
	text := command(t, filepath.Dir(data), "perf", "script", "-i", data, "-F", "comm,tid,ip,sym")
	mine, found := false, false
	for line := range strings.Lines(text) {
		if m := perfScriptHead.FindStringSubmatch(line); m != nil {
			mine, found = m[1] == comm, false
			if mine {
				samples++
			}
			continue
		}
		if fields := strings.Fields(line); mine && !found && len(fields) == 2 && other[fields[1]] {
			wrong++
			found = true
		}
	}
	return samples, wrong
}
