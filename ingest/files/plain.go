package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrUnsafe is wrapped by the errors of files and directories by which another user could make a
// program read or write others than its own.
var ErrUnsafe = errors.New("not safe to use")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsafe, fmt.Sprintf(format, args...))
}

// OpenPlain opens a regular file of a directory that another user may have prepared. The directory
// is not checked. A file to be written that has a second name is refused before it is truncated.
func OpenPlain(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return OpenPlainIn(filepath.Dir(path), filepath.Base(path), flag, perm)
}

// OpenPlainIn is OpenPlain for a name in a directory, or in a directory there, which may not be a
// link.
func OpenPlainIn(dir, name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := openPlain(dir, name, flag&^os.O_TRUNC|syscall.O_NONBLOCK, perm)
	if err != nil {
		return nil, err
	}
	if flag&os.O_TRUNC != 0 {
		if err := f.Truncate(0); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// plainTries is how often a file is opened that another process replaces at the same time.
const plainTries = 16

func openPlain(dir, name string, flag int, perm fs.FileMode) (*os.File, error) {
	// OpenRoot would wait for the writer of a pipe.
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	path := filepath.Join(dir, name)
	if parent := filepath.Dir(name); parent != "." {
		if err := CheckDirs(dir, parent); err != nil {
			return nil, err
		}
		in, err := root.OpenRoot(parent)
		if err != nil {
			return nil, asOpen(path, err)
		}
		defer in.Close()
		root, name = in, filepath.Base(name)
	}
	for range plainTries {
		// Checked before it is opened: opening triggers some devices.
		if info, err := root.Lstat(name); err == nil {
			if err := checkPlain(path, info, flag); err != nil {
				return nil, err
			}
		}
		f, err := root.OpenFile(name, flag, perm)
		if err != nil {
			return nil, asOpen(path, err)
		}
		info, err := f.Stat()
		if err == nil {
			err = checkPlain(path, info, flag)
		}
		// The name may have become a link, which leads to another file of the directory.
		if now, nowErr := root.Lstat(name); err == nil && nowErr == nil && os.SameFile(info, now) {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return nil, refused("%s is replaced again and again", path)
}

// checkPlain refuses files that are not regular, and files to be written that have another name.
func checkPlain(path string, info fs.FileInfo, flag int) error {
	if !info.Mode().IsRegular() {
		return refused("%s is %s", path, kindOf(info.Mode()))
	}
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 && HasNames(info) {
		return refused("%s has a second name: writing would change that file too", path)
	}
	return nil
}

// CheckDirs refuses subdirectories that are not directories, such as links to others. Missing ones
// are no error.
func CheckDirs(root string, names ...string) error {
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(root, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
			return refused("%s is not a directory of its own", filepath.Join(root, name))
		case err != nil:
			return err
		}
	}
	return nil
}
