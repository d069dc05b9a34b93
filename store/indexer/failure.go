package indexer

import (
	"errors"
	"syscall"

	"symbolize/ingest/object/dwarf"
)

// runError: a file could not be read whole for want of a resource that this run lacked: space for
// temporary files, memory, descriptors. The file is not at fault: it gets no row, so that the next
// run reads it again.
type runError struct{ err error }

func (e *runError) Error() string {
	return "not read whole, the next run reads it again: " + e.err.Error()
}

func (e *runError) Unwrap() error { return e.err }

// ofRun returns a runError for an error that is not caused by the file, nil for others.
func ofRun(err error) *runError {
	var known *runError
	if errors.As(err, &known) {
		return known
	}
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG,
		syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return &runError{err}
		}
	}
	return nil
}

// failed returns why sections of a file could not be loaded, if that was for want of
// something here.
func failed(l *dwarf.Loaded) *runError {
	if l.Failed == nil {
		return nil
	}
	return &runError{l.Failed}
}
