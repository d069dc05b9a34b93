package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"symbolize/ingest"
)

// The exit statuses (DESIGN.md section 7). Scripts rely on them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3
	exitUnresolved  = 4
	exitGrown       = 5
	exitInterrupted = 130
)

const exitHelp = `  0    done; frames that could not be named are no failure
  1    failed
  2    the command line is wrong
  3    partial: an input could not be read or was damaged, the rest was done
  4    fewer frames named than --min-resolved asks for
  5    a function grew by more than diff --fail-above
  130  interrupted
`

// exitError carries an exit status. Without an err there is nothing to print:
// the messages are printed already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func withHint(err error, format string, args ...any) error {
	return ingest.WithHint(err, format, args...)
}

// usagef is an error of the command line, status 2.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// asUsage marks an error of cmd's flags or arguments as one of the command line.
func asUsage(cmd *cobra.Command, err error) error {
	var coded *exitError
	if errors.As(err, &coded) {
		return err
	}
	if hintOf(err) == "" {
		err = withHint(err, "`%s --help` describes the command line", cmd.CommandPath())
	}
	return &exitError{code: exitUsage, err: err}
}

func silentUsage() error { return &exitError{code: exitUsage} }

// errBrokenPipe: the reader of standard output went away: `… | head`
// has read enough.
var errBrokenPipe = errors.New("standard output was closed")

// pipeWriter marks the broken pipe of standard output, so that no other EPIPE is
// taken for it.
type pipeWriter struct{ w io.Writer }

func (p *pipeWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = errBrokenPipe
	}
	return n, err
}

// finish prints the error and returns the exit status.
func (a *app) finish(ctx context.Context, err error) int {
	switch {
	case errors.Is(err, errBrokenPipe):
		return exitOK
	case err == nil && a.partial:
		return exitPartial
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		a.print("error", "interrupted")
		return exitInterrupted
	}
	code := exitFailed
	var coded *exitError
	if errors.As(err, &coded) {
		code = coded.code
		if coded.err == nil {
			return code
		}
	}
	if code == exitUnresolved && a.partial {
		code = exitPartial // an unread input may be the reason; both are reported
	}
	a.print("error", err.Error())
	if hint := hintOf(err); hint != "" {
		a.print("hint", hint)
	}
	return code
}

// print prints one line of the form `symbolize: KIND: TEXT` on stderr. Names in it
// may come from captures and files: no control character reaches the terminal.
func (a *app) print(kind, text string) {
	fmt.Fprintf(a.env.Stderr, "symbolize: %s: %s\n", kind, oneLine(text))
}

// warn prints a warning, with its hint unless that is empty, and no warning twice: a bundle is
// read for its samples and for its programs.
func (a *app) warn(text, hint string) {
	if a.quiet || a.warned[text] {
		return
	}
	if a.warned == nil {
		a.warned = make(map[string]bool)
	}
	a.warned[text] = true
	a.print("warning", text)
	if hint != "" {
		a.print("hint", hint)
	}
}

// note prints a message that is neither result nor warning.
func (a *app) note(text string) {
	if !a.quiet {
		a.print("note", text)
	}
}

// oneLine makes s fit for one line of a terminal.
func oneLine(s string) string {
	return ingest.OneLine(s)
}

// hintOf returns the fix for err: its own hint, else that of the well-known
// failures of operating systems.
func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	switch {
	case errors.Is(err, syscall.ENOSPC) && isTemporary(err):
		return "free some space, or have TMPDIR name a directory with more"
	case errors.Is(err, syscall.ENOSPC):
		return "free some space, or point --store or -o at another disk"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only: point --store or -o at another place"
	case errors.Is(err, syscall.EFBIG):
		return "the size of files is limited: `ulimit -f` shows it, or the file system's format"
	case errors.Is(err, syscall.EMFILE):
		return "more files have to be open at a time: raise the limit, ulimit -n"
	case errors.Is(err, fs.ErrPermission):
		return "the permissions forbid it: run as the owner, or choose another place"
	}
	return ""
}

// isTemporary reports whether an error is about one of our temporary files.
func isTemporary(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) && filepath.Dir(p.Path) == filepath.Clean(os.TempDir()) &&
		strings.HasPrefix(filepath.Base(p.Path), "symbolize-")
}
