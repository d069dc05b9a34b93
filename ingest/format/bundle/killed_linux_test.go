package bundle

import (
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"symbolize/fixtures/sweep"
	"symbolize/fixtures/tracerun"
)

const killedEnv = "SYMBOLIZE_TEST_COMMIT"

// TestKilledCommit kills a writer at any of its system calls: there is the whole bundle, or
// nothing at all.
func TestKilledCommit(t *testing.T) {
	if path := os.Getenv(killedEnv); path != "" {
		commitOne(t, path)
		return
	}
	rnd, calls := sweep.Rand(t), 0
	for round := range sweep.Most(25, 7) {
		dir := t.TempDir()
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err != nil {
			t.Skipf("SKIPPED: TMPDIR has no files without a name: %v", err)
		}
		unix.Close(fd)
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledCommit$")
		cmd.Env = append(os.Environ(), killedEnv+"="+filepath.Join(dir, "out.data"))
		after := 0 // the first one is not killed
		if round > 0 {
			after = 1 + rnd.IntN(calls)
		}
		if n, killed := tracerun.Kill(t, cmd, after); !killed {
			calls = n
		}
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if b, err := OpenFile(filepath.Join(dir, e.Name())); err != nil || e.Name() != "out.data" {
				t.Errorf("%s is left: %v", e.Name(), err)
			} else {
				b.Close()
			}
		}
	}
}

// commitOne commits an entry of several writes.
func commitOne(t *testing.T, path string) {
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<20)
	rand.New(rand.NewSource(1)).Read(b)
	if err := w.Add("dumps/a", b); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(testManifest()); err != nil {
		t.Fatal(err)
	}
}
