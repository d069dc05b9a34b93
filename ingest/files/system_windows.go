package files

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// MaxOpen reports that there is no known limit of open files.
func MaxOpen() (n uint64, ok bool) { return 0, false }

// OwnerOf reports that a file has no owner by number.
func OwnerOf(fs.FileInfo) (uid uint32, ok bool) { return 0, false }

// IsOwn is always true: access lists decide instead.
func IsOwn(fs.FileInfo) bool { return true }

// HasNames is always false: a FileInfo of Windows does not count names.
func HasNames(fs.FileInfo) bool { return false }

// ID identifies a file on this host.
type ID struct{ dev, ino uint64 }

// Inode returns the number of the file in its file system, 0 if it has none.
func (id ID) Inode() uint64 { return id.ino }

// Blocks returns the bytes of a file, and the file's identity, zero if it has none.
func Blocks(info fs.FileInfo) (n int64, id ID) { return info.Size(), ID{} }

// lockOffset is the locked byte, beyond the content that others read.
const lockOffset = 1 << 30

// Lock locks a file until it is closed. locked is true if another process holds the lock.
func Lock(f *os.File) (locked bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: lockOffset})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}
