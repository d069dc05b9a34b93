// Package files opens, creates, keeps and unpacks files, and limits parallel work on them.
//
// Open is for untrusted paths: paths in captures, in links of debug information, in tables of a
// store, and on command lines. Such a path can lead anywhere by the time it is followed. Opening a
// pipe waits for a writer, forever and without reaction to signals; opening a device can start it.
// So only regular files are opened. All files are opened here except those of the kernel (/proc,
// /sys) and new ones; a test in fixtures/house checks it.
//
// OpenPlain is for the files of a store. Another user may have prepared the directory: a symbolic
// link could make the store read, truncate or overwrite a file elsewhere, and a pipe could block it
// for ever. So they are never opened through a link, a file that is written has no second name, and
// no other user can change the parent directories (CheckTrust).
//
// Create makes files that appear complete or not at all. While a file is written it has no name,
// where the file system supports that, so that nothing is left of it when the program is killed;
// elsewhere it has a hidden name in the directory of its target. It replaces a regular file only:
// anything else at its path is refused. Commands that write where a user wants it follow symbolic
// links first (Target), and write into devices and pipes without this package.
//
// A Spool keeps bytes that can be read only once, or only in order: in memory as long as they are
// few, then in a temporary file without a name, of which nothing is left after a crash.
//
// Unpack unpacks files and sections of ELF files, within bounds on the result: by the packed size,
// and absolute ones.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is wrapped by the errors of paths that lead to a pipe, a device, a socket
// or a directory.
var ErrNotRegular = errors.New("no regular file")

// Open opens a regular file for reading; links are followed.
func Open(path string) (*os.File, error) {
	return open(path, os.Stat, os.OpenFile, 0)
}

// OpenNoLink is Open for a path that must not end in a symbolic link.
func OpenNoLink(path string) (*os.File, error) {
	return open(path, os.Lstat, os.OpenFile, noFollow)
}

// ReadHead returns the first bytes of a regular file, at most limit.
func ReadHead(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// OpenIn is Open for a name in a directory that it cannot leave.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return open(name, root.Stat, root.OpenFile, 0)
}

// open checks the file before opening it, since opening a device has effects, and again
// after it: the path can lead to another file by then. O_NONBLOCK avoids waiting for that
// one.
func open(path string, stat func(string) (fs.FileInfo, error),
	openFile func(string, int, fs.FileMode) (*os.File, error), flags int) (*os.File, error) {
	fi, err := stat(path)
	if err != nil {
		return nil, asOpen(path, err)
	}
	if err := CheckRegular(path, fi); err != nil {
		return nil, err
	}
	f, err := openFile(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, asOpen(path, err)
	}
	if fi, err = f.Stat(); err == nil {
		err = CheckRegular(path, fi)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// asOpen gives the errors of all system calls one text: their names do not help a user.
func asOpen(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return &fs.PathError{Op: "open", Path: path, Err: pe.Err}
	}
	return err
}

// CheckRegular returns an error that names the type of a file, unless it is a regular file.
func CheckRegular(path string, fi fs.FileInfo) error {
	m := fi.Mode()
	if m.IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w: it is %s", ErrNotRegular,
		kindOf(m))}
}

// kindOf names the kind of a file that is not regular.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "neither file nor directory"
}
