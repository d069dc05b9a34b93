package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// FreeBytes returns the bytes that an ordinary user may still write to the file system.
func FreeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(dir, &st)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return 0, err
		}
	}
	return int64(min(st.Bavail, 1<<40)) * st.Bsize, nil
}

// Allocate reserves the blocks of a range of a file without changing its size. It does nothing on
// file systems that cannot: the check of free space protects those.
func Allocate(path string, from, n int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil // removed by rotation
	}
	defer f.Close()
	for {
		err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, from, n)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
			return err
		}
		return nil
	}
}
