package store

import (
	"errors"
	"fmt"
	"time"
)

// Errors of opening a store.
var (
	// ErrNoStore: the path has no store, or a store without a published generation.
	ErrNoStore = errors.New("no store")
	// ErrVersion: a newer program wrote the store.
	ErrVersion = errors.New("store is of a newer schema")
	// ErrLocked: another process writes; errors that wrap it are *LockedError.
	ErrLocked = errors.New("store is locked")
	// ErrLimit: a limit of the process is too low to open the store: ulimit -n.
	ErrLimit = errors.New("limit of the process")
	// ErrUnsafe: another user could make the writer change files outside of the store, or the
	// store contains something other than regular files and directories, such as a link.
	ErrUnsafe = errors.New("not safe to use")
)

// Errors of an open store.
var (
	// ErrDamaged: a value differs from the written one.
	ErrDamaged = errors.New("store is damaged")
	// ErrNotFound: the store has no such source.
	ErrNotFound = errors.New("not in the store")
	// ErrNoSpace: the disk has too little free space. Data written before is intact.
	ErrNoSpace = errors.New("no space left for the store")
	// ErrTooLarge: a value is over one of the store's limits.
	ErrTooLarge = errors.New("too large for the store")
	// ErrClosed: the store was closed before.
	ErrClosed = errors.New("store is closed")
)

// LockedError names the writer of a store. It wraps ErrLocked.
type LockedError struct {
	Path    string    // of the store
	PID     int       // 0 if not known
	Host    string    // "" if not known
	Command string    // "" if not known
	Since   time.Time // zero if not known
}

// Error returns one line: which process holds the lock, and since when.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("store %s is locked by another process", e.Path)
	}
	return fmt.Sprintf("store %s is locked by process %d (%s) on %s since %s", e.Path, e.PID,
		e.Command, e.Host, e.Since.Format(time.RFC3339))
}

// Waiting returns one line for a process that waits for the lock.
func (e *LockedError) Waiting() string {
	if e.PID == 0 {
		return fmt.Sprintf("waiting for another process that writes to the store %s", e.Path)
	}
	return fmt.Sprintf("waiting for process %d on %s, `%s`, which writes to the store %s since %s",
		e.PID, e.Host, e.Command, e.Path, e.Since.Format(time.RFC3339))
}

// Unwrap returns ErrLocked.
func (e *LockedError) Unwrap() error { return ErrLocked }

// Damagef returns an error that wraps ErrDamaged.
func Damagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
