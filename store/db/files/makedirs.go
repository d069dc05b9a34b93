package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

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
