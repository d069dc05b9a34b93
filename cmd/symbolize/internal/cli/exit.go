package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"symbolize/ingest/texts"
)

// The exit statuses. Scripts rely on them.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	Partial     = 3
	Unresolved  = 4
	Grown       = 5
	Interrupted = 130
)

// ExitError carries an exit status. Without an Err there is nothing to print: the messages are
// printed already.
type ExitError struct {
	Code int
	Err  error
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef is an error of the command line, status 2.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// AsUsage marks an error of cmd's flags or arguments as one of the command line.
func AsUsage(cmd *cobra.Command, err error) error {
	var coded *ExitError
	if errors.As(err, &coded) {
		return err
	}
	if Hint(err) == "" {
		err = texts.WithHint(err, "`%s --help` describes the command line", cmd.CommandPath())
	}
	return &ExitError{Code: Usage, Err: err}
}

// SilentUsage is an error of the command line with a message that is printed already.
func SilentUsage() error { return &ExitError{Code: Usage} }

// Hint returns the fix for err: its own hint, else one for well-known failures of operating
// systems.
func Hint(err error) string {
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
	case errors.Is(err, syscall.ENOTDIR):
		return "a part of the path is a file: name a directory"
	case errors.Is(err, fs.ErrPermission):
		return "the permissions forbid it: run as the owner, or choose another place"
	}
	return nearFile(err)
}

// isTemporary reports whether an error is about one of our temporary files.
func isTemporary(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) && filepath.Dir(p.Path) == filepath.Clean(os.TempDir()) &&
		strings.HasPrefix(filepath.Base(p.Path), "symbolize-")
}

// CaptureStatus ends the help text of commands that read captures.
const CaptureStatus = `

Exit status: 0 done; 1 failed; 2 usage; 3 a capture is damaged or unreadable, the others were used;
130 interrupted.`
