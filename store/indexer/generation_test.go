package indexer

import (
	"os"
	"path/filepath"
	"testing"

	"symbolize/fixtures/must"
)

// TestGeneration: a row remembers the generation of its inode, which a file that comes after
// a deleted one with the same inode number does not have.
func TestGeneration(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "program")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := must.Read(t, self)
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := generation(f)
	if want == 0 {
		t.Skipf("SKIPPED: the file system of %s tells no generations", dir)
	}
	m := newMemory()
	m.index(t, Options{}, path)
	rows, _, err := m.Dir(dir)
	if err != nil || len(rows) != 1 || rows[0].Gen != want {
		t.Errorf("rows %+v, %v; want generation %d", rows, err, want)
	}
}
