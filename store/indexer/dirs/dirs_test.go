package dirs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHandle(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"b": "\x7fELF and more", "a": "x"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", filepath.Join(root, "link")); err != nil {
		t.Skip("SKIP: no symbolic links:", err)
	}
	d, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	list, err := d.List(make([]byte, 4096))
	want := []Entry{{"a", File}, {"b", File}, {"c", Dir}, {"link", Link}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("entries %v, %v, want %v", list, err, want)
	}
	link, err1 := d.Stat("link", false)
	file, err2 := d.Stat("link", true)
	there, err3 := StatFile(filepath.Join(root, "b"))
	if err1 != nil || err2 != nil || err3 != nil || link.Kind != Link || file != there ||
		file.Size != 13 || file.Kind != File {
		t.Errorf("link %+v, %v; file %+v, %v; by path %+v, %v", link, err1, file, err2, there, err3)
	}
	if self, err := d.Self(); err != nil || self.Kind != Dir || self.Key() == file.Key() {
		t.Errorf("itself %+v, %v", self, err)
	}
	buf := make([]byte, 4)
	if n, err := d.Head("b", buf); n != 4 || err != nil || string(buf) != "\x7fELF" {
		t.Errorf("head %q, %v", buf[:n], err)
	}
	if n, err := d.Head("a", buf); n != 1 || err != nil {
		t.Errorf("head of a short file: %d bytes, %v", n, err)
	}
	for _, path := range []string{"absent", "a/below"} {
		if _, err := StatFile(filepath.Join(root, path)); !IsMissing(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
