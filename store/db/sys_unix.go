//go:build unix

package db

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Flags of openBeneath: the file is a directory, and not a symbolic link.
const (
	openDirectory = syscall.O_DIRECTORY
	openNoLink    = syscall.O_NOFOLLOW
)

// maxOpenFiles returns how many files the process may have open; ok is false if that is not known.
func maxOpenFiles() (n uint64, ok bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err == nil
}

// ownerOf returns the user that a file belongs to, where files belong to numbered users.
func ownerOf(info fs.FileInfo) (uid uint32, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}

// isOwn reports whether a file belongs to the caller.
func isOwn(info fs.FileInfo) bool {
	uid, ok := ownerOf(info)
	return ok && uid == uint32(os.Geteuid())
}

// hasNames reports whether a file has more than one name.
func hasNames(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// fileID identifies a file on this host.
type fileID struct{ dev, ino uint64 }

// blocksOf returns the bytes of a file's allocated blocks, and the file's identity, zero if it has
// none.
func blocksOf(info fs.FileInfo) (n int64, id fileID) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), fileID{}
	}
	return int64(st.Blocks) * 512, fileID{uint64(st.Dev), uint64(st.Ino)}
}

// lockFile takes the lock of a file, which ends with the process. locked is true if another
// process has it.
func lockFile(f *os.File) (locked bool, err error) {
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
