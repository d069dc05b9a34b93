//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/ingest"
	"symbolize/ingest/bundle"
	"symbolize/ingest/stackmap"
)

// controlGroup makes a control group of v2, and skips the test where it cannot.
func controlGroup(t *testing.T) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if unix.Statfs(root, &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		dir := filepath.Join(root, fmt.Sprintf("symbolize-live-%d", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
		t.Cleanup(func() { os.Remove(dir) })
		return dir
	}
	t.Skip("SKIPPED: no control groups of v2")
	return ""
}

// sample profiles the load with `capture --stacks` and with perf record. The bundle has the
// name that the dump of a stack map has in TestLiveStackMap.
func (l *liveStacks) sample(t *testing.T) (said string) {
	t.Helper()
	if err := os.WriteFile(l.in("load.sh"), []byte(liveLoad), 0o600); err != nil {
		t.Fatal(err)
	}
	group := controlGroup(t)
	cmd := exec.Command(liveBinary(t), "capture", "-o", l.in("stacks.raw"), "--stacks",
		"-F", "997", "--cgroup", group, "--",
		"perf", "record", "-q", "-N", "--buildid-mmap", "-g", "-e", "cpu-clock", "-F", "997",
		"-o", l.in("perf.data"),
		"sh", "-c", `echo $$ >"$1/cgroup.procs"; exec sh "$2/load.sh" "$2"`, "sh", group, l.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// saveMaps unpacks the mappings that the bundle has, which l.mapped reads, and returns how
// many processes they are of.
func (l *liveStacks) saveMaps(t *testing.T) (n int) {
	t.Helper()
	f, err := os.Open(l.in("stacks.raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(f.Name(), f, fi.Size())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, name := range b.Names() {
		pid, ok := bundle.MapsPID(name)
		if !ok {
			continue
		}
		text, err := b.ReadEntry(name, 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.in(fmt.Sprint(pid, ".maps")), text, 0o600); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// checkAddresses wants the addresses of the program that Go's own linker made to have names
// by the mappings in the bundle: of at least 99 % of its user samples the innermost frame
// has, that of a process that ended before it was looked at has none.
func (l *liveStacks) checkAddresses(t *testing.T, store string) {
	t.Helper()
	c, err := ingest.Open(t.Context(), l.in("stacks.raw"), ingest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	set := c.Stacks()
	if set.LostSamples > 0 {
		t.Errorf("%d samples are lost", set.LostSamples)
	}
	bare, samples := 0, 0
	for i := range set.Samples {
		sm := &set.Samples[i]
		if sm.Comm == "goint" && sm.User.Cause == stackmap.Present {
			samples++
			if set.Stack(sm.User.Stack)[0].Status == stackmap.IP {
				bare++
			}
		}
	}
	if bare < samples/2 || bare == 0 {
		t.Errorf("%d of %d stacks of goint are of addresses", bare, samples)
	}
	var all, without int
	for line := range strings.Lines(l.run(t, "resolve", "--quiet", "--store", store, "--count",
		"--format", "folded", "--comm", "goint", "--trust-paths", l.in("stacks.raw"))) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		var n int
		if _, err := fmt.Sscan(line[at+1:], &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all += n
		leaf := line[strings.LastIndexByte(line[:at], ';')+1 : at]
		if strings.HasPrefix(leaf, "[") && !strings.HasPrefix(leaf, "[kernel") {
			without += n
		}
	}
	t.Logf("goint: %d of %d samples end in an address without a name", without, all)
	if all == 0 || without*100 > all {
		t.Errorf("goint: %d of %d samples have no name", without, all)
	}
}

// TestLiveSampler: what TestLiveStackMap wants of a plain stack map, of the bundle that
// `capture --stacks` makes, which perf record ran beside: from the bundle alone every
// frame with a build ID has a name where its object is indexed, addresses have one by the
// mappings that it saved, and the shares of functions agree with perf's, by the test that
// is stated there.
func TestLiveSampler(t *testing.T) {
	needLive(t, "perf", "gcc", "objcopy", "dd")
	l := &liveStacks{dir: t.TempDir(), ids: make(map[string]string)}
	l.buildLive(t)
	said := l.sample(t)
	t.Logf("%s\n%d processes have their mappings in the bundle", said, l.saveMaps(t))
	store := l.in("store")
	runMain(t, "index", "--quiet", "--store", store, "--kernel", "--debug-root", l.in("debug"), l.dir)
	l.checkNamed(t, store)
	l.checkGo(t, store)
	l.checkAddresses(t, store)
	for _, comm := range []string{"pie", "nopie", "stripped", "id8", "id16", "gone", "goext",
		"goint", "dd"} {
		l.checkShares(t, store, comm)
	}
}
