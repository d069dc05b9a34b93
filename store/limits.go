package store

import "fmt"

// maxBlocks bounds the blocks of one kind in one table: at 64 KiB raw each that
// is a table of 64 GiB.
const maxBlocks = 1 << 20

// checkDir refuses what no path rows can be kept for.
func checkDir(dir string, rows DirRows) error {
	if len(dir) == 0 || len(dir) > maxPath {
		return fmt.Errorf("directory name: %w: %d bytes, at most %d", ErrTooLarge, len(dir),
			maxPath)
	}
	for i := range rows {
		r := &rows[i]
		if len(r.Name) > maxPath || len(r.Error) > maxPath || len(r.Looked) > maxLooked {
			return fmt.Errorf("path row %q: %w", r.Name, ErrTooLarge)
		}
	}
	return nil
}
