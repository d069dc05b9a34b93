package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// MakeDirs is os.MkdirAll that also calls sync for each directory in which it has made one: else a
// power failure takes the name of a new store, with all that was published in it. One that may be
// written but not opened stays as it is.
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
	return os.MkdirAll(path, 0o755) // it was made meanwhile, or has the error
}
