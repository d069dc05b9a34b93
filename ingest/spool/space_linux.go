package spool

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeSpace returns the bytes that the user can still write to the file system of a file.
func freeSpace(f *os.File) (free int64, known bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
