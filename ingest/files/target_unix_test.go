//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// irregular makes in a directory a pipe, a directory, a file, and links to these, to nothing, to a
// link, and to itself.
func irregular(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	errs := []error{unix.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("dir"), 0o700),
		os.WriteFile(at("file"), []byte("old"), 0o600)}
	for _, name := range []string{"pipe", "dir", "file", "none"} {
		errs = append(errs, os.Symlink(name, at("to "+name)))
	}
	errs = append(errs, os.Symlink(at("to file"), at("to to file")), os.Symlink("loop", at("loop")),
		os.Symlink("../file", at("dir/up")))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTarget: links are followed to a file or to where nothing is, and to nothing else.
func TestTarget(t *testing.T) {
	dir := irregular(t)
	for _, c := range []struct{ path, want, err string }{
		{path: "none", want: "none"},
		{path: "file", want: "file"},
		{path: "to file", want: "file"},
		{path: "to to file", want: "file"},
		{path: "dir/up", want: "file"},
		{path: "to none", want: "none"},
		{path: "pipe", err: "it is a pipe"},
		{path: "to pipe", err: "it is a pipe"},
		{path: "dir", err: "it is a directory"},
		{path: "to dir", err: "it is a directory"},
		{path: "loop", err: "too many symbolic links"},
		{path: "file/below", err: "not a directory"},
		{path: "/dev/null", err: "it is a device"},
	} {
		path := c.path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		got, err := Target(path)
		switch {
		case c.err == "" && (err != nil || got != filepath.Join(dir, c.want)):
			t.Errorf("%s: %s, %v, want %s", c.path, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %s, %v, want %q", c.path, got, err, c.err)
		}
	}
}

// TestOthersLinks: another user's link in a directory where anyone may put one decides nothing, as the
// kernel has it with fs.protected_symlinks, but whatever that is set to.
func TestOthersLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to other users")
	}
	const other, third = 65534, 65533
	for _, c := range []struct {
		perm        fs.FileMode
		dirUID, uid int
		refused     bool
	}{
		{0o777 | fs.ModeSticky, 0, other, true},
		{0o777 | fs.ModeSticky, third, other, true},
		{0o777 | fs.ModeSticky, 0, 0, false},
		{0o777 | fs.ModeSticky, other, other, false}, // the owner of the directory
		{0o777, 0, other, false},
		{0o755 | fs.ModeSticky, 0, other, false},
	} {
		base := t.TempDir()
		dir, target := filepath.Join(base, "tmp"), filepath.Join(base, "target")
		link, chain := filepath.Join(dir, "link"), filepath.Join(base, "chain")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, c.perm), os.Symlink(target, link),
			os.Symlink(link, chain), os.Lchown(link, c.uid, -1), os.Chown(dir, c.dirUID, -1)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{link, chain} {
			got, err := Target(path)
			if refused := errors.Is(err, fs.ErrPermission); refused != c.refused ||
				!refused && (err != nil || got != target) {
				t.Errorf("%+v: %s: %s, %v", c, filepath.Base(path), got, err)
			}
			if c.refused {
				if err := MakeDir(path + "/"); !errors.Is(err, fs.ErrPermission) {
					t.Errorf("%+v: %s: %v", c, filepath.Base(path), err)
				}
			}
		}
		if _, err := os.Lstat(target); err == nil {
			t.Errorf("%+v: the target was made", c)
		}
	}
}

// TestRegularOnly: nothing but a regular file is replaced, neither one that was there before nor one
// that came meanwhile.
func TestRegularOnly(t *testing.T) {
	both(t, func(t *testing.T, _ int) {
		for _, name := range []string{"pipe", "dir", "to file", "to none", "to pipe"} {
			dir := irregular(t)
			path, before := filepath.Join(dir, name), names(t, dir)
			if f, err := Create(path, 0o600); !errors.Is(err, ErrNotRegular) {
				t.Errorf("%s: %v", name, err)
				if err == nil {
					_ = f.Discard()
				}
			}
			was, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Create(filepath.Join(dir, "new"), 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Commit(path); !errors.Is(err, ErrNotRegular) {
				t.Errorf("%s, which came meanwhile: %v", name, err)
			}
			if err := f.Discard(); err != nil {
				t.Error(err)
			}
			is, err := os.Lstat(path)
			if err != nil || !os.SameFile(was, is) || len(names(t, dir)) != len(before) {
				t.Errorf("%s is another file, or something is left: %q, %v", name, names(t, dir), err)
			}
		}
	})
}

// TestRename: a file gets another name in place of nothing.
func TestRename(t *testing.T) {
	dir := irregular(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, taken := range []string{"pipe", "dir", "to file", "to none"} {
		if err := Rename(at("file"), at(taken)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("to %s: %v", taken, err)
		}
	}
	if err := Rename(at("to file"), at("renamed")); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a link: %v", err)
	}
	if err := Rename(at("file"), at("renamed")); err != nil || content(t, at("renamed")) != "old" {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(at("file")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name: %v", err)
	}
}
