package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// outputBuffer is the size of the buffer before a result's file or pipe.
const outputBuffer = 256 << 10

// writeOutput gives write a place for its result: standard output if path is ""
// or "-", else the file at path. A regular file appears complete or not at all:
// it is written beside its place and renamed when write has succeeded.
func (a *app) writeOutput(path string, binary bool, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		if err := a.refuseTerminal(path, binary); err != nil {
			return err
		}
		return buffered(a.stdout(), write)
	}
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		return fmt.Errorf("write %s: it is a directory", path)
	case err == nil && !fi.Mode().IsRegular():
		return writeInPlace(path, write)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return writeRenamed(path, write)
}

// refuseTerminal refuses binary output on a terminal. Callers ask before the
// work, not after minutes of it.
func (a *app) refuseTerminal(path string, binary bool) error {
	if !binary || !a.env.StdoutTerminal || path != "" && path != "-" {
		return nil
	}
	return withHint(usagef("refusing to write binary output to a terminal"),
		"name a file with -o FILE, pipe it on, or ask for --format folded")
}

func buffered(w io.Writer, write func(io.Writer) error) error {
	bw := bufio.NewWriterSize(w, outputBuffer)
	if err := write(bw); err != nil {
		return err
	}
	return bw.Flush()
}

// writeInPlace writes to a file that cannot be replaced: a device, a pipe.
func writeInPlace(path string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return buffered(f, write)
}

// writeRenamed writes a temporary file in path's directory and renames it. A
// symbolic link is followed, as a plain write would. The temporary file is
// created before write runs, so that a place that cannot be written fails early.
func writeRenamed(path string, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := createBeside(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, reasonOf(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(f.Close()), os.Remove(f.Name()))
		}
	}()
	if err := buffered(f, write); err != nil {
		return renamed(err, f.Name(), path)
	}
	if old, err := os.Stat(path); err == nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// createBeside creates a new file in path's directory. Unlike os.CreateTemp it
// leaves the permissions to the umask, as for any file that a program writes.
func createBeside(path string) (*os.File, error) {
	const tries = 100
	for i := 0; ; i++ {
		name := fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(path), os.Getpid(), i)
		f, err := os.OpenFile(filepath.Join(filepath.Dir(path), name),
			os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) || i == tries {
			return f, err
		}
	}
}

// renamed makes an error about the temporary file one about path: the user asked
// for that.
func renamed(err error, tmp, path string) error {
	var pe *fs.PathError
	if errors.As(err, &pe) && pe.Path == tmp {
		return fmt.Errorf("write %s: %w", path, pe.Err)
	}
	return err
}

// reasonOf takes the name of the temporary file out of the error of its creation.
func reasonOf(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
