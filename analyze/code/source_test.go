package code

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
		filepath.Join(dir, "more")}, false)
	defer s.Close()
	for _, tt := range []struct {
		file string
		line uint32
		want string
	}{
		{file: "/srv/app/a.c", line: 1, want: "whole"}, {file: "/srv/app/a.c", line: 2,
			want: "two"}, {file: "/srv/app/a.c", line: 3},
		{file: "/other/a.c", line: 1, want: "end"}, {file: "/x/lib/b.c", line: 1, want: "b"}, {file: "lib/b.c",
			line: 1, want: "b"}, {file: "c.c", line: 1, want: "c"},
		{file: "/srv/app/a.c", line: 0}, {line: 1}, {file: "/none.c", line: 1}, {file: "/",
			line: 1},
		{file: "../secret.c", line: 1}, {file: "/../../secret.c", line: 1}, {file: "/x/link.c",
			line: 1}, {file: "lib", line: 1},
	} {
		if got := textOf(s, tt.file, tt.line); got != tt.want {
			t.Errorf("%s:%d is %q, want %q", tt.file, tt.line, got, tt.want)
		}
	}
	if got := textOf(newSourceDirs(nil, false), "/etc/passwd", 1); got != "" {
		t.Errorf("without --source-dir: %q", got)
	}
}

func textOf(s *sourceDirs, file string, line uint32) string {
	text, _ := s.line(file, line, "", time.Time{})
	return text
}

// TestRecordedSource: a file at the recorded path is read if it has a name of source code and is
// not younger than the object; hostile debug information gets nothing else printed.
func TestRecordedSource(t *testing.T) {
	dir := t.TempDir()
	built := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	write := func(name string, changed time.Time) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("first\nsecond\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, changed, changed); err != nil {
			t.Fatal(err)
		}
		return file
	}
	link := filepath.Join(dir, "link.c")
	key := write("key", built)
	if err := os.Symlink(key, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.c"), 0o777); err != nil {
		t.Fatal(err)
	}
	huge := write("huge.c", built)
	if err := os.Truncate(huge, maxSource+1); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(huge, built, built); err != nil {
		t.Fatal(err)
	}
	old, young := write("old.c", built), write("young.c", built.Add(time.Second))
	f := &Finder{sources: newSourceDirs(nil, true)}
	for _, tt := range []struct {
		name, file string
		built      time.Time
		want       string
	}{
		{name: "older", file: old, built: built, want: "second"},
		{name: "younger", file: young, built: built},
		{name: "no time of the object", file: old, built: time.Time{}},
		{name: "no name of source code", file: key, built: built},
		{name: "a link to such a file", file: link, built: built},
		{name: "a directory", file: filepath.Join(dir, "dir.c"), built: built},
		{name: "a device", file: "/dev/zero", built: built},
		{name: "too large", file: huge, built: built},
		{name: "relative", file: "old.c", built: built},
		{name: "not there", file: filepath.Join(dir, "none.c"), built: built},
	} {
		if got, _ := f.sources.line(tt.file, 2, tt.name, tt.built); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	want := "no source of " + young + ": it was changed at 2026-01-02 03:04:06, and younger was " +
		"written at 2026-01-02 03:04:05"
	if got := f.Newer(); len(got) != 1 || got[0] != want {
		t.Errorf("newer: %q", got)
	}
	f.sources = newSourceDirs(nil, false)
	if got, _ := f.sources.line(old, 2, "x", built); got != "" {
		t.Errorf("switched off: %q", got)
	}
}
