package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks bounds the symbolic links that are followed one after another, as kernels do.
const maxLinks = 40

// Target follows the symbolic links of a path that a user wants written: it returns the path of the
// regular file that is to be replaced, or where nothing is yet. What else is there is an error that
// wraps ErrNotRegular: a device, a pipe or a directory is never replaced. Links of other users are
// refused as CheckLinks does.
func Target(path string) (string, error) {
	target, fi, err := follow(path)
	if err != nil || fi == nil {
		return target, err
	}
	return target, asTarget(path, target, fi)
}

// CheckLinks refuses a path for an output, be it a file, a directory or a device, that leads over
// another user's symbolic link in a directory where anyone may put one, as /tmp: the link decides what
// is overwritten. The rule is the kernel's for fs.protected_symlinks, which may be off: the link
// belongs to the caller or to the owner of its directory.
func CheckLinks(path string) error {
	_, _, err := follow(filepath.Clean(path)) // behind a slash at its end a link is not seen
	return err
}

// MakeDir is os.MkdirAll for a directory of outputs that a user named, with CheckLinks.
func MakeDir(path string) error {
	if err := CheckLinks(path); err != nil {
		return err
	}
	return os.MkdirAll(path, 0o755)
}

// follow follows the symbolic links at the end of a path. fi is nil if nothing is at the target.
func follow(path string) (target string, fi fs.FileInfo, err error) {
	target = path
	for range maxLinks {
		fi, err := os.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return target, nil, nil
		case err != nil:
			return "", nil, err
		case fi.Mode()&fs.ModeSymlink == 0:
			return target, fi, nil
		}
		if err := checkLink(path, target, fi); err != nil {
			return "", nil, err
		}
		to, err := os.Readlink(target)
		if err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(target), to)
		}
		target = to
	}
	return "", nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("too many symbolic links")}
}

// checkLink refuses a link, to which a path leads, as CheckLinks describes.
func checkLink(path, link string, fi fs.FileInfo) error {
	dir, err := os.Stat(filepath.Dir(link))
	if err != nil {
		return err
	}
	owner, ok := OwnerOf(fi)
	if !ok || IsOwn(fi) || dir.Mode()&fs.ModeSticky == 0 || dir.Mode().Perm()&0o002 == 0 {
		return nil
	}
	if of, ok := OwnerOf(dir); !ok || of == owner {
		return nil
	}
	return &fs.PathError{Op: "create", Path: path, Err: fmt.Errorf("%w: %s is a symbolic link of user %d, "+
		"in a directory where anyone may put one", fs.ErrPermission, link, owner)}
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
