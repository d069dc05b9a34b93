package files

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// Flags of openBeneath, which has none for these here: the type of a file is looked at before and
// after it is opened.
const (
	openDirectory = 0
	openNoLink    = 0
)

// MaxOpen returns how many files the process may have open, which is not limited here.
func MaxOpen() (n uint64, ok bool) { return 0, false }

// ownerOf returns the user that a file belongs to, where files belong to numbered users.
func ownerOf(fs.FileInfo) (uid uint32, ok bool) { return 0, false }

// IsOwn reports whether a file belongs to the caller. Access lists decide instead.
func IsOwn(fs.FileInfo) bool { return true }

// HasNames reports whether a file has more than one name, which a FileInfo does not have here.
func HasNames(fs.FileInfo) bool { return false }

// ID identifies a file on this host.
type ID struct{ dev, ino uint64 }

// Blocks returns the bytes of a file, and the file's identity, zero if it has none.
func Blocks(info fs.FileInfo) (n int64, id ID) { return info.Size(), ID{} }

// lockOffset is the byte that is locked. Readers of the file must not meet it.
const lockOffset = 1 << 30

// Lock takes the lock of a file, which ends with the process. locked is true if another
// process has it.
func Lock(f *os.File) (locked bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: lockOffset})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}
