//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
)

// Exit statuses of shells for commands that they cannot run, and the base for the number of the
// signal that ended one.
const (
	cannotRun = 126
	noCommand = 127
	bySignal  = 128
)

// entryFlag is the linker's flag for the entry point of ours, where there is one.
func entryFlag() string {
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		return "-E=entry"
	}
	return ""
}

// liveBinary builds the program. Each test builds it at the same place, where it is linked once.
func liveBinary(t *testing.T) string {
	t.Helper()
	bin, err := filepath.Abs("../../build/livetest/symbolize")
	if err != nil {
		t.Fatal(err)
	}
	command(t, ".", "env", "CGO_ENABLED=0", "go", "build", "-ldflags="+entryFlag(),
		"-o", bin, ".") // as make build does
	return bin
}

// liveCapture runs `symbolize capture` as a process of its own, and returns the bundle, the
// messages and the exit status. A signal that is not nil is sent as soon as there is a sign
// of the recording: an event. A command sends its own.
func liveCapture(t *testing.T, bin string, sig os.Signal, args ...string,
) (*bundle.Bundle, string, int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.data")
	cmd := exec.Command(bin, append([]string{"capture", "-o", path}, args...)...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	// Without a terminal: interrupts of the keyboard would be the command's, too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if sig != nil {
		awaitSpool(t, cmd.Process.Pid)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Errorf("it has ended: %v", err)
		}
	}
	cmd.Wait()
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if len(b.Warnings) > 0 {
		t.Fatal(b.Warnings)
	}
	t.Cleanup(func() { b.Close() })
	return b, said.String(), cmd.ProcessState.ExitCode()
}

// awaitSpool waits until a process has an event open, before which it makes the file that a bundle
// is collected in.
func awaitSpool(t *testing.T, pid int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	for range 6000 {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			to, err := os.Readlink(filepath.Join(dir, e.Name()))
			if err == nil && strings.Contains(to, "[perf_event]") {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nothing is recorded after a minute")
}

// TestLiveCaptureInterrupted wants a whole bundle after each signal; the command gets
// the signal, and its end is in the exit status.
func TestLiveCaptureInterrupted(t *testing.T) {
	needLive(t)
	bin := liveBinary(t)
	tests := []struct {
		sig    os.Signal
		args   []string
		status int
	}{
		{sig: syscall.SIGINT, status: 0},
		{sig: syscall.SIGTERM, args: []string{"--duration", "1m"}, status: 0},
		{args: []string{"--", "sh", "-c", "kill -INT $PPID; exec sleep 60"},
			status: cli.Interrupted},
		{args: []string{"--", "sh", "-c", "trap 'exit 0' TERM; sleep 60 >/dev/null 2>&1 & " +
			"kill -TERM $PPID; wait"}, status: 0},
		{args: []string{"--", "sh", "-c", "exit 7"}, status: 7},
		{args: []string{"--", "sh", "-c", "kill -SEGV $$"},
			status: bySignal + int(syscall.SIGSEGV)},
		{args: []string{"--", "sh", "-c", "kill -TERM $PPID; exec sleep 60"},
			status: bySignal + int(syscall.SIGTERM)},
		{args: []string{"--duration", "200ms", "--", "sleep", "60"}, status: 0},
	}
	for _, tt := range tests {
		b, said, status := liveCapture(t, bin, tt.sig, tt.args...)
		if status != tt.status || !b.Has(bundle.PerfDataName) || !b.Has(bundle.KallsymsName) {
			t.Errorf("%v %v: status %d, want %d; entries %q\n%s", tt.sig, tt.args, status,
				tt.status,
				b.Names(), said)
		}
		if m := &b.Manifest; m.Begin.Perf == 0 || m.End.Perf <= m.Begin.Perf || m.BootID == "" ||
			m.KernelBuildID == "" || m.Text == 0 {
			t.Errorf("manifest %+v", m)
		}
	}
}

// TestLiveCaptureAtOnce: an interrupt that came before the recording began ends it, and the
// bundle is there.
func TestLiveCaptureAtOnce(t *testing.T) {
	needLive(t)
	path := filepath.Join(t.TempDir(), "capture.data")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const long = time.Minute
	env, _, stderr := inProcess("capture", "-o", path, "--duration", long.String())
	if status := Main(ctx, env); status != cli.OK {
		t.Errorf("exit status %d\n%s", status, stderr)
	}
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m := &b.Manifest
	if lasted := time.Duration(m.End.Monotonic - m.Begin.Monotonic); lasted >= long {
		t.Errorf("it recorded for %s all the same", lasted)
	}
}

// TestLiveCapturePerf has perf record as the command.
func TestLiveCapturePerf(t *testing.T) {
	needLive(t, "perf")
	out := filepath.Join(t.TempDir(), "perf.data")
	b, said, status := liveCapture(t, liveBinary(t), nil, "--", "perf", "record", "-q", "-a", "-e",
		"cpu-clock", "-o", out, "sleep", "0.3")
	if fi, err := os.Stat(out); err != nil || fi.Size() == 0 || status != 0 {
		t.Errorf("status %d, %v\n%s", status, err, said)
	}
	n := 0
	for _, name := range b.Names() {
		if _, ok := bundle.MapsPID(name); ok {
			n++
		}
	}
	if n < 2 {
		t.Errorf("mappings of %d processes, perf and sleep were two: %q", n, b.Names())
	}
}

// TestLiveCaptureFullDisk: if the disk of the bundle, or of a temporary file before it, is full,
// there is one line of error and one of hint and no part of a file, and an existing file of that
// name stays.
func TestLiveCaptureFullDisk(t *testing.T) {
	needLive(t)
	bin := liveBinary(t)
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("SKIPPED: no small disk can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	roomy := t.TempDir()
	for _, tt := range []struct{ name, dir, tmp string }{
		{name: "the bundle's", dir: small, tmp: roomy}, {name: "that of temporary files",
			dir: roomy, tmp: small},
	} {
		const old = "of before"
		path := filepath.Join(tt.dir, "capture.data")
		must.Write(t, path, []byte(old))
		// The mappings of all processes are larger than the small disk.
		cmd := exec.Command(bin, "capture", "-o", path, "--all-processes", "--duration", "100ms")
		cmd.Env = append(os.Environ(), "TMPDIR="+tt.tmp)
		var said strings.Builder
		cmd.Stderr = &said
		cmd.Run()
		text := said.String()
		if cmd.ProcessState.ExitCode() != cli.Failed ||
			strings.Count(text, "symbolize: error: ") != 1 ||
			strings.Count(text, "symbolize: hint: ") != 1 || !strings.Contains(text,
			"no space left on device") {
			t.Errorf("%s disk is full: exit status %d\n%s", tt.name, cmd.ProcessState.ExitCode(),
				text)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != old {
			t.Errorf("%s: the file has %d bytes, %v", tt.name, len(b), err)
		}
		left, err := os.ReadDir(tt.dir)
		if err != nil || len(left) != 1 {
			t.Errorf("%s: left behind: %v, %v", tt.name, left, err)
		}
	}
}

// TestLiveCaptureCommand: a command that cannot be run leaves no bundle, and has the status that a
// shell gives it; one that runs has its own, its input and its output.
func TestLiveCaptureCommand(t *testing.T) {
	needLive(t)
	bin := liveBinary(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	must.Write(t, text, []byte("no program"))
	for _, tt := range []struct {
		command []string
		status  int
		out     string
		written bool
	}{
		{command: []string{filepath.Join(dir, "nothing")}, status: noCommand},
		{command: []string{"no-such-command-anywhere"}, status: noCommand},
		{command: []string{text}, status: cannotRun},
		{command: []string{dir}, status: cannotRun},
		{command: []string{"sh", "-c", "cat; exit 3"}, status: 3, out: "input", written: true},
		{command: []string{"true"}, status: cli.OK, written: true},
	} {
		path := filepath.Join(dir, "capture.data")
		os.Remove(path)
		cmd := exec.Command(bin, append([]string{"capture", "-o", path, "--"}, tt.command...)...)
		var out, said strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("input"), &out, &said
		cmd.Run()
		_, err := os.Stat(path)
		if got := cmd.ProcessState.ExitCode(); got != tt.status || out.String() != tt.out ||
			(err == nil) != tt.written || (got != 0) != strings.Contains(said.String(), "error: ") {
			t.Errorf("%q: exit status %d, want %d; output %q; file: %v\n%s", tt.command, got,
				tt.status,
				out.String(), err, &said)
		}
	}
}
