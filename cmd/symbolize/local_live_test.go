//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"symbolize/fixtures/must"
)

// manyPrograms runs some eighty programs of the system with their libraries, for two rounds.
const manyPrograms = `for round in 1 2; do
for f in $(ls /usr/bin/[a-z]* | grep -v -e sh -e login -e 'su$' -e passwd | awk 'NR % 10 == 0'); do
	timeout 1 $f --help </dev/null >/dev/null 2>&1
done
gzip -c /usr/bin/perf >/dev/null
sort -R /etc/services | md5sum >/dev/null
done; true`

// TestLiveNamesAtOnce records a mixed load and names it without a store: at least as many frames
// have names as with perf, and the same after `index --for`, from the store alone. The times are
// for reading.
func TestLiveNamesAtOnce(t *testing.T) {
	needLive(t, "perf")
	dir := t.TempDir()
	data := filepath.Join(dir, "perf.data")
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "SYMBOLIZE_STORE="+filepath.Join(dir, "store"),
			"SYMBOLIZE_LOCAL=", "DEBUGINFOD_URLS=")
		var messages strings.Builder
		cmd.Stderr = &messages
		start := time.Now()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, messages.String())
		}
		t.Logf("%-9s %-8s %6.2f s, %6.2f s of CPU time", filepath.Base(name), args[0],
			time.Since(start).Seconds(),
			(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
		return string(out)
	}
	run("perf", "record", "-q", "-N", "-g", "-F", "999", "-o", data, "--", "sh", "-c", manyPrograms)
	self := liveBinary(t)
	run("perf", "report", "--stdio", "-i", data)
	first := run(self, "top", "-n", "0", data)
	perfNamed, perfAll := countNamed(run("perf", "script", "--no-inline", "-F", "ip,sym,dso",
		"-i", data))
	script := []string{"resolve", "-q", "--no-inlines", "--format", "script", data}
	named, all := countNamed(run(self, script...))
	t.Logf("perf names %d of %d frames, symbolize %d of %d", perfNamed, perfAll, named, all)
	if named < perfNamed || named == 0 {
		t.Errorf("%d frames have names, with perf %d", named, perfNamed)
	}
	run(self, "index", "--for", data)
	if second := run(self, "top", "-n", "0", "--no-local", data); second != first {
		t.Errorf("after index --for:\n%s\nand before:\n%s", second, first)
	}
	if again, _ := countNamed(run(self, append(script, "--no-local")...)); again != named {
		t.Errorf("%d frames have names after index --for, %d before", again, named)
	}
}

// TestLiveKernelWithoutID has recordings that list no build ID of the kernel, compressed and piped:
// the kernel is proven to be the running one.
func TestLiveKernelWithoutID(t *testing.T) {
	needLive(t, "perf")
	dir, self := t.TempDir(), liveBinary(t)
	for name, args := range map[string]string{"compressed": "-z -o x.data", "piped": "-o -"} {
		script := "perf record -q -N -g -F 999 " + args + " -- ls -laR /usr/lib 2>&1 >/dev/null"
		if name == "piped" {
			script = "perf record -q -N -g -F 999 -o - -- sh -c 'ls -laR /usr/lib >&2' " +
				"2>/dev/null >x.data"
		}
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		cmd = exec.Command(self, "resolve", "-v", "--store", dir+"/none", "-o", dir+"/x.folded",
			dir+"/x.data")
		cmd.Env = append(os.Environ(), "SYMBOLIZE_LOCAL=", "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "[kernel.kallsyms]") ||
			!regexp.MustCompile(`(?m)^  kernel +(100|>?9\d\.\d+)% named`).Match(out) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

var frameLine = regexp.MustCompile(`(?m)^\s+[0-9a-f]+ (\S+)`)

// countNamed counts the frames in the text of perf script, and those with a name.
func countNamed(text string) (named, all int) {
	for _, m := range frameLine.FindAllStringSubmatch(text, -1) {
		all++
		if m[1] != "[unknown]" {
			named++
		}
	}
	return named, all
}

// TestLiveBtrfs names programs of a btrfs, where stat's device is not the one that records have, in
// a recording without build IDs: by the files, and by a store.
func TestLiveBtrfs(t *testing.T) {
	needLive(t, "perf", "gcc", "mkfs.btrfs", "mount", "umount")
	dir, self := t.TempDir(), liveBinary(t)
	run := func(script string) string {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "SYMBOLIZE_STORE="+filepath.Join(dir, "store"),
			"DEBUGINFOD_URLS=", "S="+self)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	run(`truncate -s 200M image; mkfs.btrfs -q image; mkdir b`)
	if out, err := exec.Command("mount", "-o", "loop", filepath.Join(dir, "image"), filepath.Join(dir, "b")).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no btrfs can be mounted: %v\n%s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", filepath.Join(dir, "b")).Run() })
	const program = `volatile unsigned long n;
__attribute__((noinline)) void work(void) { for (long i = 0; i < 300000000; i++) n += i; }
int main(void) { work(); return 0; }`
	must.Write(t, filepath.Join(dir, "p.c"), []byte(program))
	run(`gcc -O1 -o b/known p.c; gcc -O1 -Wl,--build-id=none -o b/unknown p.c; sync; sleep 1
for p in known unknown; do perf record -q -B -e cpu-clock -F 999 -o $p.data b/$p; done`)
	for _, step := range []string{"", `$S index -q b`} {
		run(step)
		for _, name := range []string{"known", "unknown"} {
			if out := run(`$S top -q -n 1 ` + name + `.data`); !strings.Contains(out, "work  ("+name+")") {
				t.Errorf("%q, the program is %s:\n%s", step, name, out)
			}
		}
	}
}
