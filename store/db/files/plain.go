// Package files opens and writes the files of a store. Another user may have prepared the
// directory: a symbolic link could make the store read, truncate or overwrite a file elsewhere, and
// a named pipe could block it for ever. So a store opens only regular files, never through a link;
// a file that is written has no second name; and no other user can change the parent directories.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"symbolize/store"
)

// Open opens a regular file of a store. The directory in its path is not checked. Errors about
// other kinds of file wrap ErrUnsafe. A file to be written that has a second name is refused before
// it is truncated.
func Open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return OpenIn(filepath.Dir(path), filepath.Base(path), flag, perm)
}

// OpenIn is Open for a relative name in a directory, no part of which may be a link.
func OpenIn(dir, name string, flag int, perm fs.FileMode) (*os.File, error) {
	path := filepath.Join(dir, name)
	if info, err := os.Lstat(path); err == nil {
		// Checked before it is opened: opening triggers some devices.
		if err := checkPlain(path, info, isWrite(flag)); err != nil {
			return nil, err
		}
	}
	f, err := openBeneath(dir, name, flag&^os.O_TRUNC|syscall.O_NONBLOCK, perm)
	if errors.Is(err, syscall.ELOOP) {
		return nil, unsafe("%s is a symbolic link", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkPlain(path, info, isWrite(flag))
	}
	if err == nil && flag&os.O_TRUNC != 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func isWrite(flag int) bool { return flag&(os.O_WRONLY|os.O_RDWR) != 0 }

// checkPlain refuses files that are not regular, and, with alone, files that have another name.
func checkPlain(path string, info fs.FileInfo, alone bool) error {
	if !info.Mode().IsRegular() {
		return unsafe("%s is %s", path, typeText(info.Mode()))
	}
	if alone && HasNames(info) {
		return unsafe("%s has a second name: writing would change that file too", path)
	}
	return nil
}

// typeText names the type of a file that is not regular.
func typeText(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}

// CheckDirs refuses subdirectories of a store that are not directories, such as links to others.
// Missing ones are no error.
func CheckDirs(root string, names ...string) error {
	for _, name := range names {
		f, err := openBeneath(root, name, openDirectory|syscall.O_NONBLOCK, 0)
		switch {
		case err == nil:
			f.Close()
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
			return unsafe("%s is no directory of its own", filepath.Join(root, name))
		default:
			return err
		}
	}
	return nil
}

func unsafe(format string, args ...any) error {
	return fmt.Errorf("%w: %s", store.ErrUnsafe, fmt.Sprintf(format, args...))
}
