//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLiveStacksOfCommand: with a command, it and its children are sampled and nothing else, with
// -a everything; the control group is gone at the end, also if a child outlives the command.
func TestLiveStacksOfCommand(t *testing.T) {
	needLive(t)
	const busy = `i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done`
	dir := t.TempDir()
	for name, target := range map[string]string{"otherload": "/bin/sh", "childload": "/bin/sh"} {
		command(t, dir, "cp", "-L", target, filepath.Join(dir, name))
	}
	other := exec.Command(filepath.Join(dir, "otherload"), "-c", "while :; do :; done")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		other.Process.Kill()
		other.Wait()
	}()
	for _, tt := range []struct {
		name string
		all  []string
	}{{name: "command"}, {name: "all", all: []string{"-a"}}} {
		data := filepath.Join(dir, tt.name+".data")
		args := []string{"capture", "-o", data, "--stacks", "-F", "499"}
		args = append(append(args, tt.all...), "--", "sh", "-c", // a child that stays, one that works
			"sleep 0.5 >/dev/null 2>&1 & "+filepath.Join(dir, "childload")+" -c '"+busy+"'")
		out, err := exec.Command(liveBinary(t), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if strings.Contains(string(out), "control group") {
			if tt.all == nil && strings.Contains(string(out), "cannot be") {
				t.Skipf("SKIPPED: %s", out)
			}
			t.Errorf("%s: the control group was not removed:\n%s", tt.name, out)
		}
		folded := runMain(t, "resolve", "-q", "--store", filepath.Join(dir, "store"), "--no-local",
			"--format", "folded", data)
		if !strings.Contains(folded, "childload;") {
			t.Errorf("%s: no sample of the command's child:\n%s", tt.name, folded)
		}
		if got := strings.Contains(folded, "otherload;"); got != (tt.all != nil) {
			t.Errorf("%s: samples of another process: %v", tt.name, got)
		}
	}
}
