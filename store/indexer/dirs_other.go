//go:build !linux

package indexer

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"symbolize/ingest/files"
)

// dirHandle is a directory. There are no inode numbers here: a file is identified by its size and
// time, and read again under each of its paths.
type dirHandle struct{ path string }

// openDir returns the directory at a path.
func openDir(path string) (dirHandle, error) { return dirHandle{path}, nil }

// close closes the directory.
func (d dirHandle) close() {}

// list returns the entries, sorted by name.
func (d dirHandle) list([]byte) ([]dirEntry, error) {
	list, err := os.ReadDir(d.path)
	entries := make([]dirEntry, 0, len(list))
	for _, e := range list {
		entries = append(entries, dirEntry{e.Name(), kindOf(e.Type())})
	}
	return entries, err
}

func kindOf(m fs.FileMode) fileKind {
	switch {
	case m.IsRegular():
		return kindFile
	case m.IsDir():
		return kindDir
	case m&fs.ModeSymlink != 0:
		return kindLink
	}
	return kindOther
}

// stat returns the stat of an entry, following a symbolic link if asked to.
func (d dirHandle) stat(name string, follow bool) (fileStat, error) {
	if follow {
		return statFile(filepath.Join(d.path, name))
	}
	fi, err := os.Lstat(filepath.Join(d.path, name))
	if err != nil {
		return fileStat{}, err
	}
	return fileStatOf(fi), nil
}

// self returns the stat of the directory itself.
func (d dirHandle) self() (fileStat, error) { return statFile(d.path) }

// head reads the first bytes of a file into buf.
func (d dirHandle) head(name string, buf []byte) (int, error) {
	f, err := files.Open(filepath.Join(d.path, name))
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

// statFile returns the stat of the file at a path, following links.
func statFile(path string) (fileStat, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return fileStat{}, err
	}
	return fileStatOf(fi), nil
}

func fileStatOf(fi fs.FileInfo) fileStat {
	return fileStat{
		kind: kindOf(fi.Mode()), size: uint64(fi.Size()),
		mtime: fi.ModTime().UnixNano(), ctime: fi.ModTime().UnixNano(),
	}
}

// isPseudo is false: those file systems are Linux's.
func (d dirHandle) isPseudo() bool { return false }

// generation is 0: files have no generation on this system.
func generation(*os.File) uint64 { return 0 }

// isMissing reports whether an error is for an absent path.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
