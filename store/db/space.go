package db

import (
	"fmt"
	"os"

	"symbolize/ingest/files"
	"symbolize/store"
)

// Badger writes through sparse mapped files: where the disk is full the process dies of SIGBUS. So
// a spaceGuard makes sure before each batch that there is enough for the batch itself, and for what
// Badger may write in the background, flushing and compacting.
type spaceGuard struct {
	dir    string
	lsm    int64 // bytes put into memtables since the database was opened
	tables int64 // bytes of table files when last looked
	unseen int64 // bytes put into memtables since
	// free returns the bytes that may be written to dir's file system.
	free func(dir string) (int64, error)
}

const (
	// spaceStep is after how many bytes the table files are looked at again.
	spaceStep = 1 << 20
	// spaceSlack covers directories, file-system metadata and the first pages of new files.
	spaceSlack = 4 << 20
	// entryOverhead bounds Badger's overhead per entry in a log: header, version, value pointer,
	// checksum.
	entryOverhead = 64
)

func newSpaceGuard(dir string) *spaceGuard {
	return &spaceGuard{dir: dir, free: files.FreeBytes}
}

// batch checks that a batch of this many bytes in the value log and in the memtable's log can be
// written, which are in the journal too. Enough must stay free besides to flush two full memtables,
// and to compact all tables into new ones. The error wraps ErrNoSpace.
func (g *spaceGuard) batch(vlogBytes, lsmBytes int64) error {
	if g.unseen += lsmBytes; g.unseen > spaceStep {
		g.tables, g.unseen = tableBytes(g.dir), 0
	}
	free, err := g.free(g.dir)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", g.dir, err)
	}
	need := spaceSlack + min(g.lsm, 2*memTableSize) + g.tables + 2*vlogBytes + 3*lsmBytes
	if free < need {
		return fmt.Errorf("%w: %s: %d MiB free, %d MiB needed to go on safely", store.ErrNoSpace, g.dir,
			free>>20, (need+1<<20-1)>>20)
	}
	g.lsm += lsmBytes
	return nil
}

// tableBytes returns the size of all table files.
func tableBytes(dir string) (n int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && isTable(e.Name()) {
			n += info.Size()
		}
	}
	return n
}
