package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"symbolize/fixtures/must"
)

// both runs a test on files without a name, and as if there were none.
func both(t *testing.T, test func(t *testing.T, hidden int)) {
	t.Run("unnamed", func(t *testing.T) {
		f, ok := createUnnamed(filepath.Join(t.TempDir(), "x"), 0o600)
		if !ok {
			if runtime.GOOS == "linux" {
				t.Log("the file system of TMPDIR has no files without a name")
			}
			t.Skip("SKIPPED: there are no files without a name")
		}
		f.Close()
		test(t, 0)
	})
	t.Run("named", func(t *testing.T) {
		unnamed = func(string, fs.FileMode) (*os.File, bool) { return nil, false }
		defer func() { unnamed = createUnnamed }()
		test(t, 1)
	})
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func content(t *testing.T, path string) string {
	t.Helper()
	b := must.Read(t, path)
	return string(b)
}

// TestCommit: nothing is to be seen of a file that is being written where that can be, and
// afterwards nothing but the file, whether another one was there or not.
func TestCommit(t *testing.T) {
	both(t, func(t *testing.T, hidden int) {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		for _, text := range []string{"first", "second"} {
			before := len(names(t, dir))
			f, err := Create(path, 0o640)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if n := len(names(t, dir)); n != before+hidden {
				t.Errorf("%q while it is written", names(t, dir))
			}
			if err := f.Commit(path); err != nil {
				t.Fatal(err)
			}
			if err := f.Discard(); err != nil {
				t.Errorf("Discard after Commit: %v", err)
			}
			if got := content(t, path); got != text || len(names(t, dir)) != 1 {
				t.Errorf("%q has %q, want %q", names(t, dir), got, text)
			}
			if fi, err := os.Stat(path); err != nil || fi.Mode().Perm()&^0o640 != 0 {
				t.Errorf("%v, %v", fi.Mode(), err)
			}
		}
	})
}

// TestPublish: a published file can be written further.
func TestPublish(t *testing.T) {
	both(t, func(t *testing.T, _ int) {
		path := filepath.Join(t.TempDir(), "out")
		must.Write(t, path, []byte("old"))
		f, err := Create(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Discard()
		for _, text := range []string{"a", "b"} {
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if text == "a" {
				err = f.Publish(path)
			}
		}
		if got := content(t, path); err != nil || got != "ab" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestPublishAfterKill: what a process killed between two steps of Publish left beside a path goes
// with the next file for it, and writers at the same time do not disturb one another.
func TestPublishAfterKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	for _, name := range []string{path, filepath.Join(dir, ".out.tmp")} {
		must.Write(t, name, []byte("old"))
	}
	if f, ok := createUnnamed(path, 0o600); !ok {
		t.Skip("SKIPPED: there are no files without a name")
	} else {
		f.Close()
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				f, err := Create(path, 0o600)
				if err == nil {
					_, err = f.WriteString("new")
				}
				if err == nil {
					err = f.Commit(path)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := content(t, path); got != "new" || len(names(t, dir)) != 1 {
		t.Errorf("%q, and there are %q", got, names(t, dir))
	}
}

// TestDiscard: nothing is left of a file that is given up, or that cannot be published.
func TestDiscard(t *testing.T) {
	both(t, func(t *testing.T, _ int) {
		dir := t.TempDir()
		f, err := Create(filepath.Join(dir, "out"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Discard(); err != nil || len(names(t, dir)) != 0 {
			t.Errorf("%q, %v", names(t, dir), err)
		}
		if f, err = Create(filepath.Join(dir, "taken"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "taken", "by"), 0o700); err != nil {
			t.Fatal(err)
		}
		var pe *fs.PathError
		if err := f.Commit(filepath.Join(dir, "taken")); !errors.As(err, &pe) || pe.Path != filepath.Join(dir, "taken") {
			t.Errorf("in place of a directory: %v", err)
		}
		if len(names(t, dir)) != 1 {
			t.Errorf("%q are left", names(t, dir))
		}
		_, err = Create(filepath.Join(dir, "none", "out"), 0o600)
		if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &pe) || pe.Path != filepath.Join(dir, "none", "out") {
			t.Errorf("in a directory that is not there: %v", err)
		}
	})
}

// TestUnname: a file without a name lasts while it is open.
func TestUnname(t *testing.T) {
	both(t, func(t *testing.T, _ int) {
		dir := t.TempDir()
		f, err := Create(filepath.Join(dir, "out"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Unname(); err != nil || len(names(t, dir)) != 0 {
			t.Errorf("%q, %v", names(t, dir), err)
		}
		if _, err := f.WriteString("x"); err != nil {
			t.Error(err)
		}
		if err := f.Discard(); err != nil {
			t.Error(err)
		}
	})
}
