package code

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSourceDirs: recorded paths are looked up whole, then by their ends, and never lead
// out of the directories.
func TestSourceDirs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret.c": "secret\n", "src/srv/app/a.c": "whole\ntwo", "src/a.c": "end\n",
		"src/lib/b.c": "b\n", "more/c.c": "c\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.c", filepath.Join(dir, "src", "link.c")); err != nil {
		t.Fatal(err)
	}
	s := newSourceDirs([]string{filepath.Join(dir, "none"), filepath.Join(dir, "src"),
		filepath.Join(dir, "more")})
	defer s.Close()
	for _, tt := range []struct {
		file string
		line uint32
		want string
	}{
		{"/srv/app/a.c", 1, "whole"}, {"/srv/app/a.c", 2, "two"}, {"/srv/app/a.c", 3, ""},
		{"/other/a.c", 1, "end"}, {"/x/lib/b.c", 1, "b"}, {"lib/b.c", 1, "b"}, {"c.c", 1, "c"},
		{"/srv/app/a.c", 0, ""}, {"", 1, ""}, {"/none.c", 1, ""}, {"/", 1, ""},
		{"../secret.c", 1, ""}, {"/../../secret.c", 1, ""}, {"/x/link.c", 1, ""}, {"lib", 1, ""},
	} {
		if got := textOf(s, tt.file, tt.line); got != tt.want {
			t.Errorf("%s:%d is %q, want %q", tt.file, tt.line, got, tt.want)
		}
	}
	if got := textOf(newSourceDirs(nil), "/etc/passwd", 1); got != "" {
		t.Errorf("without --source-dir: %q", got)
	}
}

func textOf(s *sourceDirs, file string, line uint32) string {
	text, _ := s.line(file, line)
	return text
}
