package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"symbolize/fixtures/must"
)

func TestPermOf(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no permissions there")
	}
	dir := t.TempDir()
	file := func(name string, perm fs.FileMode) string {
		path := filepath.Join(dir, name)
		must.Write(t, path, nil)
		if err := os.Chmod(path, perm); err != nil {
			t.Fatal(err)
		}
		return path
	}
	all, group, owner := file("all", 0o644), file("group", 0o440), file("owner", 0o400)
	for _, tt := range []struct {
		name  string
		paths []string
		want  fs.FileMode
	}{
		{name: "no file", want: 0o666},
		{name: "missing files and directories", paths: []string{"-", filepath.Join(dir, "missing"), dir}, want: 0o666},
		{name: "readable by all", paths: []string{all}, want: 0o644},
		{name: "by the group", paths: []string{all, group}, want: 0o640},
		{name: "by the owner", paths: []string{owner, all}, want: 0o600},
	} {
		if got := PermOf(0o666, tt.paths...); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
