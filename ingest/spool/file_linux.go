package spool

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// unnamedFile makes a file that never has a name, where the file system can.
func unnamedFile(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return createUnnamed(dir)
	}
	// The name is for messages only; nothing can have it.
	return os.NewFile(uintptr(fd), filepath.Join(dir, "symbolize-unnamed/spool")), nil
}

// freeSpace returns the bytes that the user can still write to the file system of a file.
func freeSpace(f *os.File) (free int64, known bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}
