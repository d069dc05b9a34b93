package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"symbolize/analyze/table"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

// outputBuffer is the size of the buffer before a result's file or pipe.
const outputBuffer = 256 << 10

// WriteOutput calls write with standard output if path is "" or "-", else with the file at path.
// Regular files are written atomically: beside their place, and renamed when write has succeeded.
func (a *App) WriteOutput(path string, binary bool, write func(io.Writer) error) error {
	return a.WriteOutputOf(nil, path, binary, write)
}

// WriteOutputOf is WriteOutput for a result with the run-time addresses of captures: users who may
// not read these may not read it either.
func (a *App) WriteOutputOf(captures []string, path string, binary bool, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		if err := a.RefuseTerminal(path, binary, ""); err != nil {
			return err
		}
		if !a.Env.StdoutTerminal {
			return buffered(a.Stdout(), write)
		}
		return buffered(a.Stdout(), func(w io.Writer) error {
			return write(&table.Styled{Writer: w, Style: a.Style()})
		})
	}
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		return fmt.Errorf("write %s: it is a directory", path)
	case err == nil && !fi.Mode().IsRegular():
		return WriteInPlace(path, write)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return writeRenamed(path, files.PermOf(outputPerm, captures...), write)
}

// OpenInput opens a file that is no capture, such as a list; "-" is standard input.
func (a *App) OpenInput(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.Env.Stdin), nil
	}
	return files.Open(path)
}

// RefuseTerminal refuses binary output on a terminal. Callers ask before they begin the work. text
// is appended to the hint.
func (a *App) RefuseTerminal(path string, binary bool, text string) error {
	if !binary || !a.Env.StdoutTerminal || path != "" && path != "-" {
		return nil
	}
	return texts.WithHint(Usagef("refusing to write binary output to a terminal"),
		"name a file with -o FILE, or pipe it on%s", text)
}

// WriteFacts prints facts as JSON of the schema, or as text.
func (a *App) WriteFacts(format, schema string, facts any, text func(io.Writer) error) error {
	return a.WriteOutput("", false, func(w io.Writer) error {
		if format == JSON {
			return texts.WriteJSON(w, schema, facts)
		}
		return text(w)
	})
}

func buffered(w io.Writer, write func(io.Writer) error) error {
	bw := bufio.NewWriterSize(w, outputBuffer)
	if err := write(bw); err != nil {
		return err
	}
	return bw.Flush()
}

// WriteInPlace writes to a file that cannot be replaced, such as a device or a pipe.
func WriteInPlace(path string, write func(io.Writer) error) (err error) {
	if err := files.CheckLinks(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return buffered(f, write)
}

// writeRenamed writes a new file and puts it at path when it is complete. A symbolic link is
// followed, as a plain write would. The new file is created before write runs, so that an
// unwritable directory fails early.
func writeRenamed(path string, perm fs.FileMode, write func(io.Writer) error) (err error) {
	if path, err = files.Target(path); err != nil {
		return err
	}
	f, err := files.Create(path, perm)
	if err != nil {
		return writing(err, path, path)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Discard())
		}
	}()
	if err := buffered(f, write); err != nil {
		return writing(err, f.Name(), path)
	}
	if old, err := os.Stat(path); err == nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return writing(err, f.Name(), path)
		}
	}
	return f.Commit(path)
}

// outputPerm leaves the permissions to the umask, as for any file that a program writes.
const outputPerm = 0o666

// writing makes an error of the temporary file one of path, which the user named.
func writing(err error, name, path string) error {
	var pe *fs.PathError
	if errors.As(err, &pe) && pe.Path == name {
		return fmt.Errorf("write %s: %w", path, pe.Err)
	}
	return err
}

// Style is how tables are printed: on a terminal cut to its width, and coloured unless NO_COLOR is
// set or the terminal is dumb; otherwise plain and whole.
func (a *App) Style() table.Style {
	if !a.Env.StdoutTerminal {
		return table.Style{}
	}
	return table.Style{Width: a.Env.StdoutWidth, Color: a.Colour()}
}

// Colour reports whether standard output is to be coloured: on a terminal, unless the
// user does not want it (no-color.org).
func (a *App) Colour() bool {
	return a.Env.StdoutTerminal && a.Env.Getenv("NO_COLOR") == "" && a.Env.Getenv("TERM") != "dumb"
}

// RefuseOverwrite refuses to write a result over a capture.
func RefuseOverwrite(captures, outputs []string) error {
	for _, out := range outputs {
		fi, err := os.Stat(out)
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		for _, c := range captures {
			if other, err := os.Stat(c); err == nil && os.SameFile(fi, other) {
				return Usagef("-o %s would overwrite the capture %s", out, c)
			}
		}
	}
	return nil
}

// OrEmpty returns m, or an empty map for nil: {} in JSON, and not null.
func OrEmpty(m map[string]uint64) map[string]uint64 {
	if m == nil {
		return map[string]uint64{}
	}
	return m
}
