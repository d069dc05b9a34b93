package db

import (
	"fmt"
	"os"
	"path/filepath"

	"symbolize/store"
	"symbolize/store/db/files"
)

// Badger writes through sparse mapped files: where the disk is full the process dies of SIGBUS. So
// a spaceGuard makes sure before each batch that the blocks are there: it allocates the blocks that
// the batch itself will fill, and keeps enough free for the blocks that Badger may write in the
// background, flushing and compacting.
type spaceGuard struct {
	dir       string
	vlog, wal extent
	lsm       int64 // bytes put into memtables since the database was opened
	tables    int64 // bytes of table files when last looked
	// free returns the bytes that may be written to dir's file system.
	free func(dir string) (int64, error)
}

// extent is how far the newest file of a kind is surely allocated.
type extent struct {
	ext       string
	name      string
	used      int64 // bound of Badger's writes
	allocated int64
}

const (
	// spaceStep is how much is allocated at once.
	spaceStep = 1 << 20
	// spaceSlack covers directories, file-system metadata and the first pages of new files.
	spaceSlack = 4 << 20
	// entryOverhead bounds Badger's overhead per entry in a log: header, version, value pointer,
	// checksum.
	entryOverhead = 64
)

func newSpaceGuard(dir string) *spaceGuard {
	return &spaceGuard{
		dir: dir, vlog: extent{ext: ".vlog"}, wal: extent{ext: ".mem"}, free: files.FreeBytes,
	}
}

// reserve returns the bytes that must stay free besides a batch: enough to flush two full
// memtables, and to compact all tables into new ones.
func (g *spaceGuard) reserve() int64 {
	return spaceSlack + min(g.lsm, 2*memTableSize) + g.tables
}

// batch allocates disk space for a batch of this many bytes in the value log and in the memtable's
// log. Its error wraps ErrNoSpace.
func (g *spaceGuard) batch(vlogBytes, lsmBytes int64) error {
	need := g.reserve() + 2*lsmBytes // the journal has them too
	for _, x := range []struct {
		e     *extent
		bytes int64
	}{{&g.vlog, vlogBytes}, {&g.wal, lsmBytes}} {
		if x.e.used+x.bytes+spaceSlack/8 > x.e.allocated {
			need += x.bytes + spaceStep
		}
	}
	if err := g.check(need); err != nil {
		return err
	}
	if err := g.grow(&g.vlog, vlogBytes); err != nil {
		return err
	}
	if err := g.grow(&g.wal, lsmBytes); err != nil {
		return err
	}
	g.lsm += lsmBytes
	return nil
}

// check fails if fewer bytes than need are free.
func (g *spaceGuard) check(need int64) error {
	free, err := g.free(g.dir)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", g.dir, err)
	}
	if free < need {
		return fmt.Errorf("%w: %s: %d MiB free, %d MiB needed to go on safely", store.ErrNoSpace, g.dir,
			free>>20, (need+1<<20-1)>>20)
	}
	return nil
}

// grow allocates blocks ahead of Badger's writes to the newest file of a kind. When Badger begins
// another file, the first bytes go there unallocated until the next step; the slack covers them.
func (g *spaceGuard) grow(e *extent, n int64) error {
	if e.used+n+spaceSlack/8 > e.allocated {
		name, err := newestFile(g.dir, e.ext)
		if err != nil {
			return err
		}
		if name != e.name {
			e.name, e.used, e.allocated = name, vlogHeader, 0
		}
		g.tables = tableBytes(g.dir)
		to := e.used + n + spaceSlack/8 + spaceStep
		if name != "" {
			err := files.Allocate(filepath.Join(g.dir, name), e.allocated, to-e.allocated)
			if err != nil {
				return fmt.Errorf("%w: %s: %v", store.ErrNoSpace, g.dir, err)
			}
		}
		e.allocated = to
	}
	e.used += n
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
