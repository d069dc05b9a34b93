package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteSynced writes a small file and syncs it to disk.
func WriteSynced(path string, b []byte) error {
	f, err := OpenPlain(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncFile syncs the content of a file to disk.
func SyncFile(path string) error {
	f, err := OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncDir syncs the entries of a directory to disk.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// MakeDirs is os.MkdirAll, and calls sync for each directory that gets a new entry: otherwise a new
// store could vanish in a power failure, with all that was published in it. A directory that may
// not be opened is not synced.
func MakeDirs(path string, sync func(dir string) error) error {
	fi, err := os.Stat(path)
	if parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && parent != path {
		if err := MakeDirs(parent, sync); err != nil {
			return err
		}
		if err = os.Mkdir(path, 0o755); err == nil {
			if err = sync(parent); errors.Is(err, fs.ErrPermission) {
				err = nil
			}
			return err
		}
	} else if err == nil && fi.IsDir() {
		return nil
	}
	return os.MkdirAll(path, 0o755) // another process made it, or MkdirAll has the error
}

// OpenDir opens a directory to list or lock it, but no link to one.
func OpenDir(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, refused("%s is not a directory of its own", path)
	}
	return os.Open(path)
}
