//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLiveContainer records in a namespace of processes and of mounts of its own, as in a
// container, while a program without a build ID runs in it and another one on the host: the code
// of their frames is known by each process's mappings alone. Without the host's /proc the
// processes inside have their numbers and their names, and of the host's nothing is mixed up
// with them; with it both have names.
func TestLiveContainer(t *testing.T) {
	needLive(t, "unshare", "gcc", "mount")
	bin, dir := liveBinary(t), t.TempDir()
	src, err := filepath.Abs("../../fixtures/src/fixed.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"inside", "outside"} {
		command(t, dir, "gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-inline",
			"-fno-optimize-sibling-calls", "-Wl,--build-id=none", "-o", name, src)
	}
	const script = `set -e
mkdir hostproc && mount --bind /proc hostproc && mount -t proc proc /proc
%COMMAND%`
	for _, tt := range []struct {
		name    string
		flags   string
		outside bool // its frames have names
	}{
		{name: "its own numbers"},
		{name: "the host's /proc", flags: "--host-proc hostproc", outside: true},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			run := t.TempDir()
			host := exec.Command(filepath.Join(dir, "outside"), "60") // till it is killed
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				host.Process.Kill()
				host.Wait()
			}()
			line := bin + " capture -o out.data --stacks -a -F 499 " + tt.flags + " -- " +
				filepath.Join(dir, "inside") + " 1"
			cmd := exec.Command("unshare", "--pid", "--fork", "--mount", "sh", "-c",
				strings.ReplaceAll(script, "%COMMAND%", line))
			cmd.Dir = run
			said, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if warned := strings.Contains(string(said), "--host-proc"); warned == tt.outside {
				t.Errorf("it was said before what will be missing: %v\n%s", warned, said)
			}
			path := filepath.Join(run, "out.data")
			resolve := func(comm string) string {
				return runMain(t, "resolve", "--quiet", "--store", filepath.Join(run, "store"), "--with",
					dir, "--trust-paths", "--format", "folded", "--labels", "pid", "--comm", comm, path)
			}
			in, out := resolve("inside"), resolve("outside")
			if !strings.Contains(in, "main;") {
				t.Errorf("of the process inside:\n%s", in)
			}
			if strings.Contains(out, "main;") != tt.outside || out == "" {
				t.Errorf("of the process on the host:\n%s", out)
			}
			if strings.Contains(string(said), "cannot be told") {
				t.Errorf("the host's /proc was not recognised:\n%s", said)
			}
			small := regexp.MustCompile(`(?m)^inside-[0-9]{1,2}[/;]`)
			if small.MatchString(in) == tt.outside {
				t.Errorf("numbers of processes:\n%s", in)
			}
			t.Logf("%s", said)
		})
	}
}
