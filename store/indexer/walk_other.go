//go:build !linux

package indexer

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"symbolize/ingest/regular"
)

// dirHandle is a directory. There are no inode numbers here: a file is known by
// its size and time, and read again under each of its paths.
type dirHandle struct{ path string }

func openDir(path string) (dirHandle, error) { return dirHandle{path}, nil }

func (d dirHandle) close() {}

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

func (d dirHandle) stat(name string, follow bool) (fileStat, error) {
	if follow {
		return statFile(filepath.Join(d.path, name))
	}
	fi, err := os.Lstat(filepath.Join(d.path, name))
	if err != nil {
		return fileStat{}, err
	}
	return fromInfo(fi), nil
}

func (d dirHandle) self() (fileStat, error) { return statFile(d.path) }

func (d dirHandle) head(name string, buf []byte) (int, error) {
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

func statFile(path string) (fileStat, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return fileStat{}, err
	}
	return fromInfo(fi), nil
}

func fromInfo(fi fs.FileInfo) fileStat {
	return fileStat{
		kind: kindOf(fi.Mode()), size: uint64(fi.Size()),
		mtime: fi.ModTime().UnixNano(), ctime: fi.ModTime().UnixNano(),
	}
}

func (d dirHandle) isPseudo() bool { return false }

func generation(*os.File) uint64 { return 0 }

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
