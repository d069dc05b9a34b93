//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/pprof/profile"

	"symbolize/cmd/symbolize/internal/cli"
)

// TestLiveHardened loads a program of three functions twice while the kernel hardens code:
// each load has other bytes and another length. Lines that the kernel has moved are not
// printed, which is reported; where functions begin is; and each function is one row.
func TestLiveHardened(t *testing.T) {
	needLive(t, "perf")
	const setting = "/proc/sys/net/core/bpf_jit_harden"
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	dir := t.TempDir()
	object, err := filepath.Abs("../../ingest/object/bpfobj/testdata/count.bpf.o")
	if err != nil {
		t.Fatal(err)
	}
	command(t, ".", "go", "build", "-o", filepath.Join(dir, "bpfrun"), "../../fixtures/bpfrun")
	restore := restoreLater(t, setting, string(before))
	if err := os.WriteFile(setting, []byte("2"), 0); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	data := filepath.Join(dir, "perf.data")
	// perf reads programs while they are loaded: the second round runs long enough.
	command(t, dir, "perf", "record", "-q", "-a", "-g", "-F", "997", "-o", data, "--",
		"./bpfrun", "-rounds", "3", "-run", "500ms", object)
	restore()
	code, out, said := runLive(t, "top", "-v", "-n", "0", data)
	if code != cli.OK { // nothing is damaged
		t.Fatalf("status %d: %s", code, said)
	}
	if !strings.Contains(said, "net.core.bpf_jit_harden") {
		t.Errorf("nothing is said of moved lines: %s", said)
	}
	for _, name := range []string{"bpf_prog_d45027060d1d16e6_mix_bits",
		"bpf_prog_91621db7a64bdc62_count_system_calls_on_enter"} {
		if n := strings.Count(out, name); n != 1 {
			t.Errorf("%s is in %d rows", name, n)
		}
	}
	for _, fr := range programLines(t, data) {
		if fr.File == "" || fr.Line != 0 {
			t.Errorf("%+v: only where the function begins is known", fr)
		}
	}
}

// restoreLater returns a function that writes a file as it was. A shell does the work, when a pipe
// to it ends: at the end of the test too, and where the test's process is killed.
func restoreLater(t *testing.T, path, before string) (restore func()) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `trap "" INT TERM HUP; read end; printf %s "$1" >"$2"`, "sh",
		before,
		path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	restore = sync.OnceFunc(func() {
		pipe.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != before {
			t.Errorf("%s: %q, was %q, %v", path, b, before, err)
		}
	})
	t.Cleanup(restore)
	return restore
}

// programLines resolves a capture and returns the frames in mix_bits.
func programLines(t *testing.T, data string) (frames []lineFrame) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.pb.gz")
	runLive(t, "resolve", "-o", path, data)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range p.Location {
		for _, ln := range l.Line {
			if strings.HasSuffix(ln.Function.Name, "_mix_bits") {
				frames = append(frames, lineFrame{ln.Function.Filename, ln.Line})
			}
		}
	}
	if len(frames) == 0 {
		t.Error("no sample is in mix_bits")
	}
	return frames
}

type lineFrame struct {
	File string
	Line int64
}
