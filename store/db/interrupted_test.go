//go:build linux

package db

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/fixtures/must"
	"symbolize/fixtures/sweep"
	"symbolize/fixtures/tracerun"
)

// TestLostData is TestCrash with power cuts that keep all renames and lose all data that was not
// synced: a name never comes before its content.
func TestLostData(t *testing.T) {
	t.Parallel()
	c := &crasher{t: t, rnd: sweep.Rand(t), names: true}
	quiet := filepath.Join(t.TempDir(), "quiet")
	stops, err := c.run(quiet, func(int, int, *disk) error { return nil })
	if errors.Is(err, unix.EPERM) {
		t.Skipf("SKIPPED: no right to trace a process: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.want = digestOf(t, quiet)
	for cuts := sweep.Most(40, 10); c.cuts < cuts && !t.Failed(); {
		c.series(stops, min(10, cuts-c.cuts))
	}
}

// TestKilledAnywhere kills the writer of the crash test after one of its system calls: between any two
// steps of a commit, of a generation, of a collection. What was published is there, and a writer that
// goes on comes to the digest of one that nobody disturbed, with nothing left over.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	crash := func(path string) (*exec.Cmd, *os.File) {
		says, err := os.Create(filepath.Join(t.TempDir(), "says"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childRole+"=crash", childStore+"="+path)
		cmd.Stdout, cmd.Stderr = says, os.Stderr
		return cmd, says
	}
	quiet := filepath.Join(t.TempDir(), "quiet")
	cmd, _ := crash(quiet)
	calls, _ := tracerun.Kill(t, cmd, 0)
	c := &crasher{t: t, rnd: sweep.Rand(t), want: digestOf(t, quiet)}
	for range sweep.Most(60, 12) {
		at := 1 + c.rnd.IntN(calls)
		path := filepath.Join(t.TempDir(), "store")
		cmd, says := crash(path)
		if _, killed := tracerun.Kill(t, cmd, at); !killed {
			continue
		}
		text := must.Read(t, says.Name())
		published := 0
		for line := range strings.Lines(string(text)) {
			if n, err := strconv.Atoi(strings.TrimSuffix(line, "\n")); err == nil {
				published = n
			}
		}
		c.check(path, published)
		w := openTestWriter(t, path)
		_, err := w.GC(t.Context(), GCOptions{Exists: func(string) bool { return true }})
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		emptied(t, path)
		if v := mustVerify(t, path); len(v.Problems) > 0 {
			t.Errorf("after gc: %v", v.Problems)
		}
		if got := digestOf(t, path); got != c.want {
			t.Errorf("digest %x, undisturbed %x", got, c.want)
		}
		if t.Failed() {
			t.Fatalf("killed after call %d of %d", at, calls)
		}
	}
}

// emptied waits until writers have emptied the trash: a generation may be locked for forkWait.
func emptied(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(forkWait); ; {
		left, _ := os.ReadDir(filepath.Join(path, trashName))
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("trash is left: %v", left)
			return
		}
		if err := openTestWriter(t, path).Close(); err != nil {
			t.Fatal(err)
		}
	}
}
