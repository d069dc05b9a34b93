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

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/input"
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
	must.Write(t, l.in("load.sh"), []byte(liveLoad))
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
	b, err := bundle.OpenFile(l.in("stacks.raw"))
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
		must.Write(t, l.in(fmt.Sprint(pid, ".maps")), text)
		n++
	}
	return n
}

// checkAddresses checks that the program of Go's own linker is identified by the build ID that the
// kernel does not see, and the program without a build ID by its address and its mapping in the
// bundle, and that both are named: at least 97 % of their user samples by the innermost frame,
// except samples of a process that ended before it was read.
func (l *liveStacks) checkAddresses(t *testing.T, store string) {
	t.Helper()
	c, err := input.Open(t.Context(), l.in("stacks.raw"), input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	set := c.Stacks()
	if set.LostSamples > 0 {
		t.Errorf("%d samples are lost", set.LostSamples)
	}
	goint := framed(objectID(t, l.in("goint")))
	for comm, wanted := range map[string]func(f stackmap.Frame) bool{
		"goint": func(f stackmap.Frame) bool {
			return f.Status == stackmap.Valid && set.IDs[f.Ref].Hex() == goint
		},
		"noid": func(f stackmap.Frame) bool {
			return f.Status == stackmap.IP && f.Offset != bundle.GoneAddress
		},
	} {
		var right, samples uint64
		for i := range set.Samples {
			sm := &set.Samples[i]
			if sm.Comm != comm || sm.User.Cause != stackmap.Present {
				continue
			}
			samples += sm.Count
			if wanted(set.Frames()[set.Numbers(sm.User.Stack)[0]]) {
				right += sm.Count
			}
		}
		t.Logf("%s: of %d of %d samples the code is told as it should", comm, right, samples)
		if samples == 0 || right*10 < samples*9 { // there are the loader and the C library, too
			t.Errorf("%s: of %d of %d samples the code is told as it should", comm, right, samples)
		}
		l.checkLeaves(t, store, comm)
	}
	if len(c.Bundle().Manifest.Samples[0].Files) == 0 {
		t.Error("no paths of files whose build ID the kernel does not see")
	}
}

// checkLeaves wants names for the innermost frames of a program's samples.
func (l *liveStacks) checkLeaves(t *testing.T, store, comm string) {
	t.Helper()
	all, without := l.leaves(t, store, comm, l.in("stacks.raw"))
	t.Logf("%s: %d of %d samples end in an address without a name", comm, without, all)
	if all == 0 || without*100 > 3*all { // the loader runs before its mappings are read
		t.Errorf("%s: %d of %d samples have no name", comm, without, all)
	}
}

// leaves returns how many samples a program has, and of how many the innermost frame is the
// user's and has no name.
func (l *liveStacks) leaves(t *testing.T, store, comm, path string) (all, without int) {
	t.Helper()
	for line := range strings.Lines(l.run(t, "resolve", "--quiet", "--store", store, "--count",
		"--format", "folded", "--comm", comm, "--trust-paths", path)) {
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
	return all, without
}

// TestLiveSampler: as TestLiveStackMap for a plain stack map, for the bundle that
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
	runMain(t, "index", "--quiet", "--store", store, "--kernel", "--debug-root", l.in("debug"),
		l.dir)
	l.checkNamed(t, store)
	l.checkGo(t, store)
	l.checkAddresses(t, store)
	for _, comm := range []string{"pie", "nopie", "stripped", "id8", "id16", "noid", "gone",
		"goext",
		"goint", "dd"} {
		l.checkShares(t, store, comm)
	}
}

// TestLiveSamplerBrief wants names for programs without a build ID that run for a few samples
// only: of a process with addresses in its stack the mappings are read at once, not when the
// next look is due. Samples while it begins or ends have none.
func TestLiveSamplerBrief(t *testing.T) {
	needLive(t, "gcc")
	dir := t.TempDir()
	src, err := filepath.Abs("../../fixtures/src/fixed.c")
	if err != nil {
		t.Fatal(err)
	}
	command(t, dir, "gcc", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id=none", "-o", "brief",
		src)
	data := filepath.Join(dir, "stacks.data")
	out, err := exec.Command(liveBinary(t), "capture", "-o", data, "--stacks", "-a", "-F", "199",
		"--",
		"sh", "-c", `for i in $(seq 60); do "$1" 0.02; done`, "sh", filepath.Join(dir, "brief"),
	).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	store := filepath.Join(dir, "store")
	runMain(t, "index", "--quiet", "--store", store, filepath.Join(dir, "brief"))
	l := &liveStacks{dir: dir}
	all, without := l.leaves(t, store, "brief", data)
	t.Logf("%d of %d samples of 60 processes end in an address without a name", without, all)
	if all < 100 || without*100 > 40*all { // it is 5 % of them, 75 % if looked at every 50 ms
		t.Errorf("%d of %d samples of processes that end soon have no name", without, all)
	}
}

// TestLiveSamplerTarget: where there is nothing to sample that is an error, with a hint of
// the option to change, and no file.
func TestLiveSamplerTarget(t *testing.T) {
	needLive(t)
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{args: []string{"-p", "2147483647"},
			want: "nothing to sample: no process 2147483647"},
		{args: []string{"--cgroup", dir}, want: "not a cgroup v2 directory"},
		{args: []string{"--cgroup", filepath.Join(dir, "none")},
			want: "no such file or directory"},
	} {
		data := filepath.Join(dir, "stacks.data")
		args := append([]string{"capture", "-o", data, "--stacks", "--duration", "1ms"}, c.args...)
		code, _, said := runLive(t, args...)
		_, err := os.Stat(data)
		if code != cli.Failed || !strings.Contains(said, c.want) || !os.IsNotExist(err) ||
			!strings.Contains(said, "hint: --pid is a number") {
			t.Errorf("%q: status %d, file: %v\n%s", c.args, code, err, said)
		}
	}
}
