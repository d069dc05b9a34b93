//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpenPlainIn follows no link, inside of the directory or out of it.
func TestOpenPlainIn(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o755),
		os.Symlink("real", filepath.Join(dir, "link")),
		os.Symlink("../other", filepath.Join(dir, "real", "file")),
		os.Symlink("plain", filepath.Join(dir, "real", "near")),
		os.WriteFile(filepath.Join(dir, "real", "plain"), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		err  error
	}{
		{name: "real/plain"}, {name: "link/plain", err: ErrUnsafe}, {name: "real/near", err: ErrUnsafe},
		{name: "real/file", err: ErrUnsafe}, {name: "real", err: ErrUnsafe},
		{name: "real/none", err: syscall.ENOENT},
	} {
		f, err := OpenPlainIn(dir, tc.name, os.O_RDONLY, 0)
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.err)
		}
	}
}
