package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file that is being written.
type File struct {
	*os.File
	name string // hidden one; "" where there is none
}

// Create creates a file for a path, readable and writable. Errors name the path.
func Create(path string, perm fs.FileMode) (*File, error) {
	if err := replaceable(path); err != nil {
		return nil, err
	}
	if f, ok := unnamed(path, perm); ok {
		return &File{File: f}, nil
	}
	return named(path, perm)
}

// Temp creates a temporary file without a name, of which a crash leaves nothing.
func Temp(pattern string) (*os.File, error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unnamed is createUnnamed, but in tests.
var unnamed = createUnnamed

// nameTries bounds the names that are tried.
const nameTries = 100

// named creates a file with a hidden name.
func named(path string, perm fs.FileMode) (*File, error) {
	var f *os.File
	name, err := withHidden(path, func(name string) (err error) {
		f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: reasonOf(err)}
	}
	return &File{f, name}, nil
}

// withHidden calls make with a hidden name beside a path, and with another one while there is a
// file of that name.
func withHidden(path string, make func(name string) error) (name string, err error) {
	for i := range nameTries {
		name = fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(path), os.Getpid(), i)
		name = filepath.Join(filepath.Dir(path), name)
		if err = make(name); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return name, err
}

// reasonOf removes the name of the hidden file from an error.
func reasonOf(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}

// Publish puts the file at a path of the same file system, in place of a regular file that is
// there. The file stays open.
func (f *File) Publish(path string) error {
	if f.name != "" {
		return f.rename(f.name, path)
	}
	err := link(f.File, path)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return f.replace(path)
	}
	return &fs.PathError{Op: "create", Path: path, Err: reasonOf(err)}
}

// replace puts a file without a name in place of the one at path, by way of a hidden name, as no
// call does it at once. The name is the same for all: what a killed process left under it, and what
// another one has just linked, is renamed before, so that nothing is left for ever.
func (f *File) replace(path string) error {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	err := fs.ErrExist
	for try := 0; errors.Is(err, fs.ErrExist) && try < nameTries; try++ {
		if fi, there := os.Lstat(name); there == nil && fi.Mode().IsRegular() {
			os.Rename(name, path)
		}
		err = link(f.File, name)
	}
	if errors.Is(err, fs.ErrExist) { // another user's
		name, err = withHidden(path, func(name string) error { return link(f.File, name) })
	}
	if err != nil {
		return &fs.PathError{Op: "create", Path: path, Err: reasonOf(err)}
	}
	err = f.rename(name, path)
	if _, there := os.Lstat(path); there == nil && errors.Is(err, fs.ErrNotExist) {
		return nil // another process renamed it
	}
	return err
}

// rename gives the file with a hidden name the name of a path. If that fails, the file has no name.
func (f *File) rename(name, path string) error {
	err := replaceable(path)
	if err == nil {
		err = os.Rename(name, path)
	}
	f.name = ""
	if err == nil {
		return nil
	}
	if removed := os.Remove(name); removed != nil && !errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(reasonOf(err), removed)
	}
	return &fs.PathError{Op: "create", Path: path, Err: reasonOf(err)}
}

// Commit is Publish and Close; on a file system that reports errors with Close nothing is
// published then.
func (f *File) Commit(path string) error {
	if f.name == "" {
		return errors.Join(f.Publish(path), f.Close())
	}
	if err := f.Close(); err != nil {
		return errors.Join(err, os.Remove(f.name))
	}
	return f.Publish(path)
}

// Unname removes the hidden name: the file exists as long as it is open, and cannot be published.
func (f *File) Unname() error {
	if f.name == "" {
		return nil
	}
	err := os.Remove(f.name)
	if err == nil {
		f.name = ""
	}
	return err
}

// Discard closes the file and removes it. It may be called after Commit.
func (f *File) Discard() error {
	err := f.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	return errors.Join(err, f.Unname())
}
