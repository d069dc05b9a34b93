//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpenNoFollow is of systems without openat2, on those that have it.
func TestOpenNoFollow(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o755),
		os.Symlink("real", filepath.Join(dir, "link")),
		os.Symlink("../other", filepath.Join(dir, "real", "file")),
		os.WriteFile(filepath.Join(dir, "real", "plain"), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		err  error
	}{
		{name: "real/plain"}, {name: "link/plain", err: syscall.ELOOP},
		{name: "real/file", err: syscall.ELOOP},
		{name: "real/../real/plain", err: syscall.EXDEV},
		{name: "real/none", err: syscall.ENOENT},
	} {
		f, err := openNoFollow(dir, tc.name, os.O_RDONLY, 0)
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.err)
		}
		f, err = openBeneath(dir, tc.name, os.O_RDONLY, 0)
		if err == nil {
			f.Close()
		}
		if (err == nil) != (tc.err == nil) && tc.name != "real/../real/plain" {
			t.Errorf("%s beneath: %v, want %v", tc.name, err, tc.err)
		}
	}
}
