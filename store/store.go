// Package store is the model of the symbol store, without a database: the Manifest of an object
// with its sources, path rows, the variants of JITed functions, their stored forms (codecs), and
// how contributions of files merge, in any order, to the same bytes.
//
// A View serves look-ups: a published generation of a store on disk (package db), an
// Overlay in memory, or several layered. A Sink is written by the indexer. FindOne and
// FindCode return the one object of a build ID, or the reason why there is none. Export and Import
// write and read archives of objects, which move them between stores (export.go has the format).
package store

import (
	"errors"
	"fmt"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/files"
)

// Errors of opening a store.
var (
	// ErrNoStore: the path has no store, or a store without a published generation.
	ErrNoStore = errors.New("no store")
	// ErrVersion: a newer program wrote the store.
	ErrVersion = errors.New("store has a newer schema")
	// ErrOldSchema: an older program wrote the store. Nothing is migrated.
	ErrOldSchema = errors.New("store has an older schema")
	// ErrLocked: another process writes; errors that wrap it are *LockedError.
	ErrLocked = errors.New("store is locked")
	// ErrLimit: a limit of the process is too low to open the store: ulimit -n.
	ErrLimit = errors.New("limit of the process")
	// ErrUnsafe: another user could make the writer change files outside of the store, or the
	// store contains something other than regular files and directories, such as a link.
	ErrUnsafe = files.ErrUnsafe
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

// SchemaVersion is the version of a store's files. A store with a newer one is refused with
// ErrVersion, one with an older one with ErrOldSchema. Since 3 tables are in files that are named by
// their digest.
const SchemaVersion = 3

// CheckSchema refuses a schema other than SchemaVersion, of the store at path.
func CheckSchema(path string, schema int) error {
	switch {
	case schema > SchemaVersion:
		return fmt.Errorf("%s: %w: schema %d, this program knows %d", path, ErrVersion, schema,
			SchemaVersion)
	case schema < SchemaVersion:
		return fmt.Errorf("%s: %w: schema %d, this program reads %d", path, ErrOldSchema, schema,
			SchemaVersion)
	}
	return nil
}

// ObjectName is the name of an object in archives and lists: SPACE-HEX of its build ID.
func ObjectName(id buildid.ID) string { return id.Space().String() + "-" + id.Hex() }
