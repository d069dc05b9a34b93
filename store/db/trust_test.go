//go:build unix

package db

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"symbolize/store"
)

// TestTrust has directories above a store, or the store itself, that others can change.
// Only root can make directories of others: without it those cases are left out.
func TestTrust(t *testing.T) {
	const other = 54321
	mkdir := func(t *testing.T, path string, uid int, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		if uid >= 0 {
			if err := os.Lchown(path, uid, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		name string
		root bool
		make func(t *testing.T, dir string)
		path string
		safe bool
	}{
		{name: "nothing there", path: "a/b/store", safe: true},
		{name: "own and shared", path: "a/store", safe: true, make: func(t *testing.T, dir string) {
			mkdir(t, filepath.Join(dir, "a"), -1, 0o777)
		}},
		{name: "own link", path: "link/store", safe: true, make: func(t *testing.T, dir string) {
			mkdir(t, filepath.Join(dir, "a"), -1, 0o755)
			plant(t, "symbolic link", filepath.Join(dir, "link"), "./a/../a")
		}},
		{name: "links without end", path: "link/store", make: func(t *testing.T, dir string) {
			plant(t, "symbolic link", filepath.Join(dir, "link"), "link")
		}},
		{name: "store of another", root: true, path: "store", make: func(t *testing.T, dir string) {
			mkdir(t, filepath.Join(dir, "store"), other, 0o755)
		}},
		{name: "home of another", root: true, path: "home/store", make: func(t *testing.T, dir string) {
			mkdir(t, filepath.Join(dir, "home", "store"), -1, 0o755)
			mkdir(t, filepath.Join(dir, "home"), other, 0o755)
		}},
		{name: "to be made in the home of another", root: true, path: "home/x/store",
			make: func(t *testing.T, dir string) { mkdir(t, filepath.Join(dir, "home"), other, 0o755) }},
		{name: "link of another", root: true, path: "tmp/store", make: func(t *testing.T, dir string) {
			mkdir(t, filepath.Join(dir, "a"), -1, 0o755)
			mkdir(t, filepath.Join(dir, "tmp"), -1, 0o777|os.ModeSticky)
			plant(t, "symbolic link", filepath.Join(dir, "tmp", "store"), "../a")
			if err := os.Lchown(filepath.Join(dir, "tmp", "store"), other, -1); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "own link to the home of another", root: true, path: "link/store",
			make: func(t *testing.T, dir string) {
				mkdir(t, filepath.Join(dir, "home"), other, 0o755)
				plant(t, "symbolic link", filepath.Join(dir, "link"), "home")
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.root && os.Geteuid() != 0 {
				t.Skip("TEST SKIPPED: only root can make directories of others")
			}
			dir := t.TempDir()
			if tc.make != nil {
				tc.make(t, dir)
			}
			path := filepath.Join(dir, tc.path)
			w, err := OpenWriter(context.Background(), path, WriterOptions{})
			if err == nil {
				err = w.Close()
			}
			if tc.safe && err != nil || tc.root && !errors.Is(err, store.ErrUnsafe) ||
				!tc.safe && err == nil {
				t.Errorf("opened: %v", err)
			}
			if !tc.root {
				return
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", "FORMAT")); len(left) > 0 {
				t.Errorf("written to: %v", left)
			}
			w, err = OpenWriter(context.Background(), path, WriterOptions{Shared: true})
			if err != nil && tc.name == "link of another" {
				return // the kernel follows no such link, either: fs.protected_symlinks
			}
			if err != nil {
				t.Fatalf("shared: %v", err)
			}
			if err := w.Close(); err != nil {
				t.Errorf("shared: %v", err)
			}
		})
	}
}
