package indexer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"symbolize/fixtures/must"
)

func TestDirHandle(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"b": "\x7fELF and more", "a": "x"} {
		must.Write(t, filepath.Join(root, name), []byte(text))
	}
	if err := os.Mkdir(filepath.Join(root, "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", filepath.Join(root, "link")); err != nil {
		t.Skip("SKIP: no symbolic links:", err)
	}
	d, err := openDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	list, err := d.list(make([]byte, 4096))
	want := []dirEntry{{"a", kindFile}, {"b", kindFile}, {"c", kindDir}, {"link", kindLink}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("entries %v, %v, want %v", list, err, want)
	}
	link, err1 := d.stat("link", false)
	file, err2 := d.stat("link", true)
	there, err3 := statFile(filepath.Join(root, "b"))
	if err1 != nil || err2 != nil || err3 != nil || link.kind != kindLink || file != there ||
		file.size != 13 || file.kind != kindFile {
		t.Errorf("link %+v, %v; file %+v, %v; by path %+v, %v", link, err1, file, err2, there, err3)
	}
	if self, err := d.self(); err != nil || self.kind != kindDir || self.key() == file.key() {
		t.Errorf("itself %+v, %v", self, err)
	}
	buf := make([]byte, 4)
	if n, err := d.head("b", buf); n != 4 || err != nil || string(buf) != "\x7fELF" {
		t.Errorf("head %q, %v", buf[:n], err)
	}
	if n, err := d.head("a", buf); n != 1 || err != nil {
		t.Errorf("head of a short file: %d bytes, %v", n, err)
	}
	for _, path := range []string{"absent", "a/below"} {
		if _, err := statFile(filepath.Join(root, path)); !isMissing(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
