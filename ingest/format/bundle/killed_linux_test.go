package bundle

import (
	"bufio"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const killedEnv = "SYMBOLIZE_TEST_COMMIT"

// TestKilledCommit kills a writer in the middle of its commit: there is the whole bundle, or
// nothing at all.
func TestKilledCommit(t *testing.T) {
	if path := os.Getenv(killedEnv); path != "" {
		commitSlowly(t, path)
		return
	}
	for _, after := range []time.Duration{0, 5, 20, 50, 100, 200} {
		dir := t.TempDir()
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err != nil {
			t.Skipf("SKIPPED: TMPDIR has no files without a name: %v", err)
		}
		unix.Close(fd)
		path := filepath.Join(dir, "out.data")
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledCommit$")
		cmd.Env = append(os.Environ(), killedEnv+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
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

// commitSlowly commits bytes that take a second to pack.
func commitSlowly(t *testing.T, path string) {
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, packBest-1<<10)
	rand.New(rand.NewSource(1)).Read(b)
	if err := w.Add("dumps/a", b); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("commits\n")
	if err := w.Commit(testManifest()); err != nil {
		t.Fatal(err)
	}
}
