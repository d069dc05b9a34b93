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
)

// limitedCapture records for a second under limits that a shell sets first, and returns the
// exit status and the messages. Into dir it writes nothing but stacks.data.
func limitedCapture(t *testing.T, bin, dir, limits string) (status int, messages string) {
	t.Helper()
	path := filepath.Join(dir, "stacks.data")
	cmd := exec.Command("sh", "-c", limits+"; exec "+bin+" capture -o "+path+
		" --stacks -F 499 --duration 1s")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// oneError reports whether messages are one error, which has these words, and a hint at most.
func oneError(messages string, words ...string) bool {
	first, rest, _ := strings.Cut(messages, "\n")
	for _, w := range words {
		if !strings.Contains(first, w) {
			return false
		}
	}
	return strings.HasPrefix(first, "symbolize: error: ") && (rest == "" ||
		strings.HasPrefix(rest, "symbolize: hint: ") && strings.Count(rest, "\n") == 1)
}

// TestLiveAddressSpace: where Go's runtime cannot start, the program of `make build` ends in a
// line.
func TestLiveAddressSpace(t *testing.T) {
	needLive(t)
	if entryFlag() == "" {
		t.Skip("SKIPPED: this machine has no entry of ours")
	}
	bin := liveBinary(t)
	for _, limit := range []string{"100000", "400000", "1200000", "1499000"} {
		cmd := exec.Command("sh", "-c", "ulimit -v "+limit+"; exec \"$0\" version", bin)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != cli.Failed || !oneError(string(out), "ulimit -v") {
			t.Errorf("ulimit -v %s: %v\n%s", limit, cmd.ProcessState, out)
		}
	}
}

// TestLiveCaptureLimits: a recording that a limit of its process ends leaves one error, status 1
// and no file. Memory is where the recorder may or may not get along with a limit: the range
// begins where Go programs and their supervisor always start.
func TestLiveCaptureLimits(t *testing.T) {
	needLive(t)
	bin := liveBinary(t)
	for _, tt := range []struct {
		name, limits string
		words        []string
		mayWork      bool
	}{
		{name: "open files", limits: "ulimit -n 63", words: []string{"63 files", "ulimit -n"}},
		{name: "no room for a file", limits: "ulimit -f 0", words: []string{"file too large"}},
		{name: "size of a file", limits: "ulimit -f 400", words: []string{"file too large"}},
		{name: "address space", limits: "ulimit -v 1800000", mayWork: true,
			words: []string{"memory"}},
		{name: "more address space", limits: "ulimit -v 2000000", mayWork: true,
			words: []string{"memory"}},
	} {
		dir := t.TempDir()
		status, messages := limitedCapture(t, bin, dir, tt.limits)
		t.Logf("%s: status %d: %s", tt.name, status, firstLine(messages))
		switch list, _ := filepath.Glob(filepath.Join(dir, "stacks*")); {
		case status == cli.OK && tt.mayWork:
			if n, _ := sampledIn(t, filepath.Join(dir, "stacks.data")); n == 0 {
				t.Errorf("%s: no samples", tt.name)
			}
		case status != cli.Failed || !oneError(messages, tt.words...) || len(list) > 0:
			t.Errorf("%s: status %d, files %q\n%s", tt.name, status, list, messages)
		}
	}
}

// TestLiveCaptureFileSize: a limit on the size of files that is reached while it records, or when
// it ends, ends a recording in one error with a hint; the data made durable before stays as a
// bundle.
func TestLiveCaptureFileSize(t *testing.T) {
	needLive(t)
	t.Parallel()
	bin := liveBinary(t)
	for _, tt := range []struct {
		name string
		stop bool // it is asked to end
	}{{name: "while it records"}, {name: "when it ends", stop: true}} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "stacks.data")
			cmd := exec.Command(bin, "capture", "-o", path, "--stacks", "-F", "499", "--duration",
				"60s")
			var messages strings.Builder
			cmd.Stderr = &messages
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			awaitBundle(t, path, 0)
			limit := unix.Rlimit{Cur: 4096, Max: 4096}
			if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
				t.Fatal(err)
			}
			if tt.stop {
				_ = cmd.Process.Signal(os.Interrupt)
			}
			err := cmd.Wait()
			t.Logf("%v: %s", err, firstLine(messages.String()))
			if cmd.ProcessState.ExitCode() != cli.Failed || !strings.Contains(messages.String(),
				"ulimit -f") ||
				!oneError(messages.String(), "file too large", path+" contains the data recorded before") {
				t.Errorf("%v\n%s", err, &messages)
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
				t.Errorf("files %v, %v", list, err)
			}
			if n, _ := sampledIn(t, path); n == 0 {
				t.Error("no samples")
			}
		})
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// memoryGroup makes a control group of so many bytes of memory, and returns the file that
// processes enter it by.
func memoryGroup(t *testing.T, bytes int) (enter string) {
	t.Helper()
	for _, kind := range []struct{ root, limit string }{
		{root: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes"}, {root: "/sys/fs/cgroup",
			limit: "memory.max"}} {
		dir := filepath.Join(kind.root, fmt.Sprintf("symbolize-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(dir) })
		if err := os.WriteFile(filepath.Join(dir, kind.limit), fmt.Append(nil, bytes),
			0); err == nil {
			return filepath.Join(dir, "cgroup.procs")
		}
	}
	t.Skip("SKIPPED: no control group with a limit of memory can be made")
	return ""
}

// TestLiveCaptureGroup: in a control group with too little memory for the sampler's maps, or for
// the recorder beside them, a recording ends in one error that names memory.
func TestLiveCaptureGroup(t *testing.T) {
	needLive(t)
	bin := liveBinary(t)
	for _, mb := range []int{16, 40} {
		t.Run(fmt.Sprintf("%d_MB", mb), func(t *testing.T) {
			enter := memoryGroup(t, mb<<20)
			status, messages := limitedCapture(t, bin, t.TempDir(), "echo $$ >"+enter)
			t.Logf("status %d: %s", status, firstLine(messages))
			if status != cli.Failed || !oneError(messages, "memory") {
				t.Errorf("status %d\n%s", status, messages)
			}
		})
	}
}

// TestLiveCaptureTempFull: a directory for temporary files that is full, or gets full during the
// recording, ends the recording in one error with a hint that names TMPDIR; the data made durable
// before is a bundle.
func TestLiveCaptureTempFull(t *testing.T) {
	needLive(t, "mount", "dd")
	t.Parallel()
	temp, bin := t.TempDir(), liveBinary(t)
	command(t, ".", "mount", "-t", "tmpfs", "-o", "size=64m", "none", temp)
	defer exec.Command("umount", temp).Run()
	filler := filepath.Join(temp, "filler")
	fill := func() { exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=4k").Run() }
	for _, tt := range []struct {
		name    string
		durable bool // something was, before it got full
	}{{name: "from the start"}, {name: "in the middle", durable: true}} {
		path := filepath.Join(t.TempDir(), "stacks.data")
		if !tt.durable {
			fill()
		}
		cmd := exec.Command(bin, "capture", "-o", path, "--stacks", "-F", "499", "--duration",
			"60s")
		if !tt.durable {
			cmd.Args = append(cmd.Args, "--duration", "1s")
		}
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		var messages strings.Builder
		cmd.Stderr = &messages
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		words := []string{temp + "/symbolize-", "no space left on device"}
		if tt.durable {
			awaitBundle(t, path, 0)
			fill()
			words = append(words, path+" contains the data recorded before")
		}
		err := cmd.Wait()
		t.Logf("%s: %v: %s", tt.name, err, firstLine(messages.String()))
		if cmd.ProcessState.ExitCode() != cli.Failed || !oneError(messages.String(), words...) ||
			!strings.Contains(messages.String(), "TMPDIR") {
			t.Errorf("%s: %v\n%s", tt.name, err, messages.String())
		}
		switch _, err := os.Stat(path); {
		case (err == nil) != tt.durable:
			t.Errorf("%s: a file is there: %v", tt.name, err == nil)
		case tt.durable:
			if n, _ := sampledIn(t, path); n == 0 {
				t.Errorf("%s: no samples", tt.name)
			}
		}
		os.Remove(filler)
	}
}
