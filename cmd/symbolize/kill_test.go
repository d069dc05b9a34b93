package main

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/fixtures/must"
	"symbolize/fixtures/sweep"
	"symbolize/ingest/object/elf"
	"symbolize/store/db"
)

const (
	killTimes = 4  // kills of each
	killDirs  = 16 // directories of each half of the tree
	killFiles = 10 // objects in each
)

// TestKilledIndex kills `index` with SIGKILL at random moments, again and again: the store must be
// sound after each kill, and in the end equal to the store of an undisturbed run.
func TestKilledIndex(t *testing.T) {
	dir := t.TempDir()
	bin, err := exec.LookPath("symbolize") // this program, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	makeObjects(t, first, 0)
	makeObjects(t, second, killDirs*killFiles)
	k := &killer{t: t, bin: bin, dir: dir}

	k.store = filepath.Join(dir, "undisturbed")
	k.mustRun("index", "-q", first)
	start := time.Now()
	k.mustRun("index", "-q", second)
	took := time.Since(start)
	want := k.mustRun("store", "digest")

	rng := sweep.Rand(t)
	runs := sweep.Most(4, 1) // stores that are made and disturbed
	for run := range runs {
		k.store = filepath.Join(dir, fmt.Sprint("store", run))
		k.mustRun("index", "-q", first)
		for i, killed := 0, 0; killed < killTimes; i++ {
			touch(t, second, time.Unix(int64(1e9+i), 0)) // all of it is to be read again
			if k.kill(time.Duration(rng.Int64N(int64(took)+1)), "index", "-q", second) {
				killed++
			} else {
				took = took * 2 / 3 // the machine has less to do than when it was measured
			}
			k.wantSound()
		}
		k.mustRun("index", "-q", first, second)
		k.wantSound()
		if got := k.mustRun("store", "digest"); got != want {
			t.Errorf("store %d: digest %s, undisturbed %s", run, got, want)
		}
	}
	k.wantInterrupted(second)
}

// killer runs the binary on one store.
type killer struct {
	t               *testing.T
	bin, dir, store string
}

func (k *killer) command(args []string) *exec.Cmd {
	cmd := exec.Command(k.bin, args...)
	cmd.Env = append(os.Environ(), "SYMBOLIZE_STORE="+k.store, "HOME="+k.dir)
	return cmd
}

func (k *killer) mustRun(args ...string) string {
	k.t.Helper()
	var stderr bytes.Buffer
	cmd := k.command(args)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("%v: %v\n%s%s", args, err, out, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// kill runs the command and kills it after delay; false if it ended before that.
func (k *killer) kill(delay time.Duration, args ...string) bool {
	k.t.Helper()
	cmd := k.command(args)
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	timer := time.AfterFunc(delay, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	if err != nil && cmd.ProcessState.Exited() {
		k.t.Errorf("%v failed by itself: %v", args, err)
	}
	return err != nil
}

// wantInterrupted interrupts a run that waits for the lock, as ^C does, and wants its own exit
// status of it.
func (k *killer) wantInterrupted(path string) {
	k.t.Helper()
	w, err := db.OpenWriter(k.t.Context(), k.store, db.WriterOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	defer w.Close()
	touch(k.t, path, time.Unix(2e9, 0))
	// A signal that comes before the program is ready for it kills: then once more.
	for delay := 100 * time.Millisecond; delay < 10*time.Second; delay *= 2 {
		cmd := k.command([]string{"index", "-q", path})
		if err := cmd.Start(); err != nil {
			k.t.Fatal(err)
		}
		timer := time.AfterFunc(delay, func() { cmd.Process.Signal(os.Interrupt) })
		cmd.Wait()
		timer.Stop()
		if !cmd.ProcessState.Exited() {
			continue
		}
		if got := cmd.ProcessState.ExitCode(); got != cli.Interrupted {
			k.t.Errorf("interrupted run: exit status %d, want %d", got, cli.Interrupted)
		}
		return
	}
	k.t.Error("an interrupt kills the program")
}

func (k *killer) wantSound() {
	k.t.Helper()
	if out := k.mustRun("store", "verify"); !strings.Contains(out, "sound: ") {
		k.t.Errorf("verify says:\n%s", out)
	}
}

// makeObjects fills dir with copies of recorded objects, each with a build ID of its own: there is
// work for more than an instant, and the same on any machine.
func makeObjects(t *testing.T, dir string, number int) {
	t.Helper()
	var templates [][]byte
	for _, name := range []string{"bin/fixed", "bin/spawn", "lib/libkernels.so"} {
		b := must.Read(t, filepath.Join("../../fixtures/objects", name))
		templates = append(templates, b)
	}
	for d := range killDirs {
		sub := filepath.Join(dir, fmt.Sprintf("%02d", d))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for f := range killFiles {
			b := withBuildID(t, templates[number%len(templates)], fmt.Sprint("object ", number))
			number++
			path := filepath.Join(sub, fmt.Sprint("object", f))
			must.Write(t, path, b)
		}
	}
}

// touch gives all files below dir another modification time.
func touch(t *testing.T, dir string, mtime time.Time) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(path, mtime, mtime)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// withBuildID returns a copy of an ELF file with the SHA-1 of name for a build ID.
func withBuildID(t *testing.T, object []byte, name string) []byte {
	t.Helper()
	f, err := elf.Open(name, bytes.NewReader(object), int64(len(object)))
	if err != nil {
		t.Fatal(err)
	}
	old, id := f.ID.Bytes(), sha1.Sum([]byte(name))
	if len(old) != len(id) || bytes.Count(object, old) != 1 {
		t.Fatalf("%s: cannot replace the build ID %s", name, f.ID)
	}
	return bytes.Replace(object, old, id[:], 1)
}
