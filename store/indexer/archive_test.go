package indexer

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// tarOf makes a tar of files by their names, with the links and directories of perf archive.
func tarOf(t testing.TB, names []string, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	link := &tar.Header{Typeflag: tar.TypeSymlink, Name: ".build-id/ab/cdef", Linkname: "/etc/passwd"}
	if err := w.WriteHeader(link); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o600,
			Format: tar.FormatGNU}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestArchive indexes the output of perf archive as the files themselves.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	const member = "srv/app/bin/mixed/8e0fdc/elf"
	files := map[string][]byte{member: fixture(t, "bin/mixed"), "../../escaped": []byte("x"),
		"notes.txt": []byte("no object")}
	plain := tarOf(t, []string{member, "../../escaped", "notes.txt"}, files)
	id := mixedID(t)
	archives := map[string][]byte{
		"plain.tar": plain, "x.tar.gz": must.Gzip(t, plain),
		"all.tar": tarOf(t, []string{"perf.symbols.tar.gz"},
			map[string][]byte{"perf.symbols.tar.gz": must.Gzip(t, plain)}),
	}
	if bzip2, err := exec.LookPath("bzip2"); err == nil { // as perf archive uses
		cmd := exec.CommandContext(t.Context(), bzip2, "-c")
		cmd.Stdin = bytes.NewReader(plain)
		if archives["x.tar.bz2"], err = cmd.Output(); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range archives {
		path := filepath.Join(dir, name)
		must.Write(t, path, data)
		m := newMemory()
		sum := m.index(t, Options{}, path)
		o := m.object(t, id)
		if len(sum.Problems) > 0 || len(m.puts) > 0 || sum.Objects != 1 {
			t.Errorf("%s: %d objects, problems %v, rows of %v", name, sum.Objects, sum.Problems, m.puts)
		}
		for _, s := range o.Sources {
			if s.Path != filepath.Join(path, member) {
				t.Errorf("%s: source from %s", name, s.Path)
			}
		}
	}
	left, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "escaped")); err == nil {
		t.Error("a file outside of the directory")
	}
}

// TestArchiveDamage keeps the files before damage, and reports it.
func TestArchiveDamage(t *testing.T) {
	dir := t.TempDir()
	object := fixture(t, "bin/mixed")
	whole := tarOf(t, []string{"a/elf", "b/elf"}, map[string][]byte{"a/elf": object,
		"b/elf": fixture(t, "bin/spawn")})
	path := filepath.Join(dir, "cut.tar")
	must.Write(t, path, whole[:len(object)+4000])
	m := newMemory()
	sum := m.index(t, Options{}, path)
	if len(sum.Problems) == 0 || !sum.Problems[0].Named && !sum.Problems[len(sum.Problems)-1].Named ||
		m.object(t, mixedID(t)) == nil {
		t.Errorf("problems %v", sum.Problems)
	}
	for _, p := range sum.Problems {
		if !strings.HasPrefix(p.Path, path) {
			t.Errorf("a problem of %s", p.Path)
		}
	}
	for n := 0; n < len(whole); n += 997 { // any length ends
		must.Write(t, path, whole[:n])
		newMemory().index(t, Options{NamesOnly: true}, path)
	}
}
