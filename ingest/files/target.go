package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks bounds the symbolic links that are followed one after another, as kernels do.
const maxLinks = 40

// Target follows the symbolic links of a path that a user wants written: it returns the path of the
// regular file that is to be replaced, or where nothing is yet. What else is there is an error that
// wraps ErrNotRegular: a device, a pipe or a directory is never replaced.
func Target(path string) (string, error) {
	target := path
	for range maxLinks {
		fi, err := os.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return target, nil
		case err != nil:
			return "", err
		case fi.Mode()&fs.ModeSymlink == 0:
			return target, asTarget(path, target, fi)
		}
		to, err := os.Readlink(target)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(target), to)
		}
		target = to
	}
	return "", &fs.PathError{Op: "create", Path: path, Err: errors.New("too many symbolic links")}
}

// asTarget checks that a file can be replaced, and that it is what a path leads to: links of /proc
// lead elsewhere than they read.
func asTarget(path, target string, fi fs.FileInfo) error {
	if err := CheckRegular(path, fi); err != nil {
		return err
	}
	if at, err := os.Stat(path); err != nil || !os.SameFile(at, fi) {
		return &fs.PathError{Op: "create", Path: path, Err: errors.New("it does not lead to " + target)}
	}
	return nil
}

// replaceable checks that there is nothing at a path, or a regular file.
func replaceable(path string) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil // creating it will fail with the reason if there is one
	}
	return CheckRegular(path, fi)
}

// Rename gives a file another name, in place of nothing: fs.ErrExist if there is something.
func Rename(from, to string) error {
	if err := replaceable(from); err != nil {
		return err
	}
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	if _, there := os.Lstat(to); there == nil { // a file system without hard links
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}

// WalkDir is filepath.WalkDir for a path that a user named: it enters the directory that root leads
// to by a symbolic link. Other links are not followed.
func WalkDir(root string, fn fs.WalkDirFunc) error {
	start := root
	if fi, err := os.Stat(root); err == nil && fi.IsDir() {
		start += string(filepath.Separator)
	}
	return filepath.WalkDir(start, func(path string, d fs.DirEntry, err error) error {
		if path == start {
			path = root
		}
		return fn(path, d, err)
	})
}
