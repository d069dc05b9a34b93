package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openBeneath opens the file with this relative name in a directory. No part of the
// name may be a symbolic link, nor lead out of the directory.
func openBeneath(dir, name string, flag int, perm fs.FileMode) (*os.File, error) {
	root, err := openRetry(func() (int, error) {
		return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(root)
	how := unix.OpenHow{
		Flags:   uint64(flag) | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_LARGEFILE,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	if flag&os.O_CREATE != 0 {
		how.Mode = uint64(perm.Perm())
	}
	fd, err := openRetry(func() (int, error) { return unix.Openat2(root, name, &how) })
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		// Before Linux 5.6, or in a sandbox that does not know the call.
		return openNoFollow(dir, name, flag, perm)
	}
	path := filepath.Join(dir, name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openAgain bounds how often an open is repeated that fails because another process renamed
// something at the same time (EAGAIN).
const openAgain = 16

// openRetry repeats an open that a signal or a concurrent rename interrupted.
func openRetry(open func() (int, error)) (int, error) {
	for again := 0; ; again++ {
		fd, err := open()
		if !errors.Is(err, unix.EINTR) && (!errors.Is(err, unix.EAGAIN) || again == openAgain) {
			return fd, err
		}
	}
}

// outsideOwner returns the user ID that a user namespace shows for owners that it does not map;
// -1 outside of user namespaces. In one even the root directory may have such an owner.
func outsideOwner() int64 {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil ||
		strings.Join(strings.Fields(string(text)), " ") == "0 0 4294967295" {
		return -1
	}
	text, err = os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return -1
	}
	uid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return -1
	}
	return int64(uid)
}
