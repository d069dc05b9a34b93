package batch

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"symbolize/ingest/files"
)

// ErrOutput is wrapped by the errors of files that could not be written, as on a full disk. All
// that needs none of them is written.
var ErrOutput = errors.New("not written")

// outputError is the error of a file that could not be written.
type outputError struct{ error }

// Unwrap has errors.Is find ErrOutput and the cause.
func (e outputError) Unwrap() []error { return []error{ErrOutput, e.error} }

// outputErr marks an error, if there is one, as one of a file that could not be written.
func outputErr(err error) error {
	if err == nil {
		return nil
	}
	return outputError{err}
}

// ofMachine reports whether an error is of this machine's disks rather than of the input: temporary
// files are written while captures are read.
func ofMachine(err error) bool {
	for _, is := range []error{ErrOutput, files.ErrFull, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// Unwritten counts the files that could not be written, each of which the hooks got.
type Unwritten struct {
	Files int `json:"files_not_written,omitempty"`
}

// Err returns an error that wraps ErrOutput if there are such files.
func (u Unwritten) Err() error {
	if u.Files == 0 {
		return nil
	}
	return outputErr(fmt.Errorf("%d of the files could not be written; the rest was done", u.Files))
}

// WriteAll writes the profiles of groups, one after another, and calls written with each. What
// cannot be written is reported to OnUnwritten, and the others are written; the error then wraps
// ErrOutput.
func WriteAll(ctx context.Context, groups []*Group, a *Answers, out Output,
	written func(*Group, *Written)) error {
	var left Unwritten
	for _, g := range groups {
		w, err := g.Write(ctx, a, out)
		switch {
		case err == nil:
			g.warn(out.Hooks)
			written(g, w)
		case errors.Is(err, ErrOutput) && ctx.Err() == nil:
			left.Files++
			out.unwritten(err)
		default:
			return err
		}
	}
	return left.Err()
}
