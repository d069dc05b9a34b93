package db

import (
	"fmt"

	"symbolize/ingest/files"
	"symbolize/store"
)

// Badger writes through sparse mapped files: where the disk is full the process dies of SIGBUS. So
// enough must be free, before anything is written, to write the next generation too.
type spaceGuard struct {
	dir string
	// free returns the bytes that may be written to dir's file system.
	free func(dir string) (int64, error)
}

// spaceSlack covers directories, file-system metadata and the first pages of new files.
const spaceSlack = 4 << 20

func newSpaceGuard(dir string) *spaceGuard {
	return &spaceGuard{dir: dir, free: files.FreeBytes}
}

// need returns an error that wraps ErrNoSpace unless so many bytes are free.
func (g *spaceGuard) need(n int64) error {
	free, err := g.free(g.dir)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", g.dir, err)
	}
	if free < n {
		return fmt.Errorf("%w: %s: %d MiB free, %d MiB needed to go on safely", store.ErrNoSpace, g.dir,
			free>>20, (n+1<<20-1)>>20)
	}
	return nil
}

// roomToOpen makes sure that a store can be written to.
func (w *Writer) roomToOpen(g *spaceGuard) error { return g.need(spaceSlack) }

// roomFor makes sure that n bytes can be written, and after them a generation.
func (w *Writer) roomFor(n int64) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	need := spaceSlack + 3*n
	if w.state != nil {
		need += w.state.indexNeeds()
	}
	return w.space.need(need)
}
