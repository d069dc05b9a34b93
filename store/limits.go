package store

import "fmt"

// MaxBlocks bounds the blocks of one kind in one table: at 64 KiB raw each that is a table of 64
// GiB.
const MaxBlocks = 1 << 20

// CheckDir refuses path rows that are over a limit of the store.
func CheckDir(dir string, rows DirRows) error {
	if len(dir) == 0 || len(dir) > MaxPath {
		return fmt.Errorf("directory name: %w: %d bytes, at most %d", ErrTooLarge, len(dir),
			MaxPath)
	}
	for i := range rows {
		r := &rows[i]
		if len(r.Name) > MaxPath || len(r.Error) > MaxPath || len(r.Looked) > maxLooked {
			return fmt.Errorf("path row %q: %w", r.Name, ErrTooLarge)
		}
	}
	return nil
}

// MaxPath bounds paths: of a source, and of a directory, which is a key. PATH_MAX is 4,096.
const MaxPath = 16 << 10
