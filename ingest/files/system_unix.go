//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW

// MaxOpen returns how many files the process may have open; ok is false if the limit is unknown.
func MaxOpen() (n uint64, ok bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err == nil
}

// OwnerOf returns the ID of a file's owner; ok is false if it has none.
func OwnerOf(info fs.FileInfo) (uid uint32, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}

// IsOwn reports whether a file belongs to the caller.
func IsOwn(info fs.FileInfo) bool {
	uid, ok := OwnerOf(info)
	return ok && uid == uint32(os.Geteuid())
}

// HasNames reports whether a file has more than one name.
func HasNames(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// ID identifies a file on this host.
type ID struct{ dev, ino uint64 }

// Inode returns the number of the file in its file system, 0 if it has none.
func (id ID) Inode() uint64 { return id.ino }

// Blocks returns the bytes of a file's allocated blocks, and the file's identity, zero if it has
// none.
func Blocks(info fs.FileInfo) (n int64, id ID) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), ID{}
	}
	return int64(st.Blocks) * 512, ID{uint64(st.Dev), uint64(st.Ino)}
}

// Lock locks a file until it is closed. locked is true if another process holds the lock.
func Lock(f *os.File) (locked bool, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return true, nil
		default:
			return false, err
		}
	}
}
