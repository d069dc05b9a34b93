package newfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// createUnnamed creates a file without a name in the directory of a path. ok is false where the
// file system has no such files, or /proc is absent, by which they get their names.
func createUnnamed(path string, perm fs.FileMode) (f *os.File, ok bool) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC,
		uint32(perm.Perm()))
	if err != nil {
		return nil, false
	}
	if f = os.NewFile(uintptr(fd), path); unix.Access(self(f), unix.R_OK) != nil {
		f.Close()
		return nil, false
	}
	return f, true
}

// self is the path that leads to an open file.
func self(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// link gives a file without a name a name that no file has.
func link(f *os.File, path string) error {
	return unix.Linkat(unix.AT_FDCWD, self(f), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}
