package indexer

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/object/elf"
)

// openAlt opens a supplementary file as relatedFiles does.
func openAlt(t *testing.T, a *altFiles, path string) *altFile {
	t.Helper()
	st, err := statFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ef, err := elf.Open(path, f, int64(st.size))
	if err != nil {
		t.Fatal(err)
	}
	return a.acquire(f, ef, st, 1)
}

// TestAltFilesAreShared counts how often a supplementary file is read.
func TestAltFilesAreShared(t *testing.T) {
	_, alt := dwzPair("x")
	dir := realDir(t)
	paths := make([]string, maxIdleAlts+2)
	for i := range paths {
		paths[i] = filepath.Join(dir, fmt.Sprint(i))
		must.Write(t, paths[i], alt)
	}
	var a altFiles
	first := openAlt(t, &a, paths[0])
	if second := openAlt(t, &a, paths[0]); second != first {
		t.Error("read again while it is in use")
	}
	a.release(first)
	if len(first.load.Sections.Info) == 0 || len(a.idle) != 0 {
		t.Error("closed while it is in use")
	}
	a.release(first)
	if third := openAlt(t, &a, paths[0]); third != first || len(a.idle) != 0 {
		t.Error("read again soon after it was used")
	}
	a.release(first)
	for _, p := range paths[1:] {
		a.release(openAlt(t, &a, p))
		if len(a.idle) > maxIdleAlts || len(a.open) != len(a.idle) {
			t.Errorf("%d files idle, %d open, at most %d may be", len(a.idle), len(a.open), maxIdleAlts)
		}
	}
	if again := openAlt(t, &a, paths[0]); again == first {
		t.Error("the longest idle file is still open")
	} else {
		a.release(again)
	}
	must.Write(t, paths[0], append(alt, 0)) // another file, though its build ID is the same
	last := openAlt(t, &a, paths[0])
	if last.key.st.size != uint64(len(alt)+1) {
		t.Error("a file that was replaced is taken for the old one")
	}
	a.release(last)
	a.close()
	if len(a.open)+len(a.idle) != 0 || last.load.Sections.Info != nil {
		t.Errorf("%d files left open", len(a.open))
	}
}

// TestAltFileOfMany indexes libraries that share one, several at a time.
func TestAltFileOfMany(t *testing.T) {
	root := realDir(t)
	lib, alt := dwzPair("../common/alt.debug")
	must.Write(t, filepath.Join(root, "common/alt.debug"), alt)
	for i := range 20 {
		must.Write(t, filepath.Join(root, "app", fmt.Sprint(i)+".so"), lib)
	}
	settle()
	m := newMemory()
	sum := m.index(t, Options{Workers: 4}, filepath.Join(root, "app"))
	if len(sum.Problems) != 0 || sum.Read != 20 {
		t.Errorf("%d files read, problems %v", sum.Read, sum.Problems)
	}
}
