//go:build linux

package input

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"symbolize/ingest"
)

// TestTwoRecorders records without build IDs while another recorder asks for them: the
// kernel marks records of the first as if they had some. Files have their inodes all the same,
// and nothing that was recorded counts as a build ID. The outer recorder's events are there before
// the inner one's and after, so that no chance is in it.
func TestTwoRecorders(t *testing.T) {
	needsPerf(t)
	dir := t.TempDir()
	outer, inner := filepath.Join(dir, "outer.data"), filepath.Join(dir, "inner.data")
	record := func(args ...string) []string {
		return append([]string{"perf", "record", "-q", "-N", "-a", "-e", "cpu-clock", "-F", "999"}, args...)
	}
	command := append(record("-B", "-o", outer, "--"), record("--buildid-mmap", "-o", inner, "--",
		"sh", "-c", load+"; exec /bin/true")...)
	if text, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, text)
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(shell, &st); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), outer, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Objects {
		o := &p.Objects[i]
		if o.IDSource == ingest.IDRecorded {
			t.Errorf("%s has the build ID %s, which nothing recorded", o.File.Path, o.ID)
		}
		if o.File.Path == shell && o.File.Inode != st.Ino {
			t.Errorf("%s: inode %d, want %d", shell, o.File.Inode, st.Ino)
		}
	}
	if len(p.Samples) == 0 {
		t.Error("no samples")
	}
}
