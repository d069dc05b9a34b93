//go:build !linux

package dirs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"symbolize/ingest/regular"
)

// Handle is a directory. There are no inode numbers here: a file is known by its size and time, and
// read again under each of its paths.
type Handle struct{ path string }

// Open returns the directory at a path.
func Open(path string) (Handle, error) { return Handle{path}, nil }

// Close closes the directory.
func (d Handle) Close() {}

// List returns the entries, sorted by name.
func (d Handle) List([]byte) ([]Entry, error) {
	list, err := os.ReadDir(d.path)
	entries := make([]Entry, 0, len(list))
	for _, e := range list {
		entries = append(entries, Entry{e.Name(), kindOf(e.Type())})
	}
	return entries, err
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m.IsRegular():
		return File
	case m.IsDir():
		return Dir
	case m&fs.ModeSymlink != 0:
		return Link
	}
	return Other
}

// Stat returns the stat of an entry, following a symbolic link if asked to.
func (d Handle) Stat(name string, follow bool) (Stat, error) {
	if follow {
		return StatFile(filepath.Join(d.path, name))
	}
	fi, err := os.Lstat(filepath.Join(d.path, name))
	if err != nil {
		return Stat{}, err
	}
	return fromInfo(fi), nil
}

// Self returns the stat of the directory itself.
func (d Handle) Self() (Stat, error) { return StatFile(d.path) }

// Head reads the first bytes of a file into buf.
func (d Handle) Head(name string, buf []byte) (int, error) {
	f, err := regular.Open(filepath.Join(d.path, name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}

// StatFile returns the stat of the file at a path, following links.
func StatFile(path string) (Stat, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return Stat{}, err
	}
	return fromInfo(fi), nil
}

func fromInfo(fi fs.FileInfo) Stat {
	return Stat{
		Kind: kindOf(fi.Mode()), Size: uint64(fi.Size()),
		Mtime: fi.ModTime().UnixNano(), Ctime: fi.ModTime().UnixNano(),
	}
}

// IsPseudo is false: those file systems are Linux's.
func (d Handle) IsPseudo() bool { return false }

// Generation is 0: there is none here.
func Generation(*os.File) uint64 { return 0 }

// IsMissing reports whether an error is for an absent path.
func IsMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
