package store

import (
	"sync"

	"symbolize/buildid"
)

// maxCached limits how many manifests a cached view keeps; the manifest of a large object has some
// kilobytes.
const maxCached = 4096

// maxCachedRows bounds the path rows that a cached view keeps; each has some 150 bytes.
const maxCachedRows = 1 << 14

// CachedView is a View that keeps the manifests and path rows that it found.
type CachedView struct {
	View
	mu    sync.Mutex
	found map[buildid.ID][]*Manifest
	size  int // manifests and IDs without one in found
	dirs  map[string]cachedDir
	rows  int // in dirs, and directories without any
	epoch int // counts Forget
}

// cachedDir is an answer of Dir.
type cachedDir struct {
	rows DirRows
	ok   bool
}

// Cached returns a View that reads the manifests of an ID from v once, because the join, the check
// of return addresses and each opened table need them, and the rows of a directory once, because
// the objects of a capture are in few directories. Call Forget when the content of v has changed;
// layer an Overlay in front of a CachedView. Errors are not kept.
func Cached(v View) *CachedView {
	return &CachedView{View: v, found: make(map[buildid.ID][]*Manifest),
		dirs: make(map[string]cachedDir)}
}

// Forget empties the cache, after the content of the view has changed.
func (c *CachedView) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.found)
	clear(c.dirs)
	c.size, c.rows = 0, 0
	c.epoch++
}

// Find implements View.
func (c *CachedView) Find(id buildid.ID) ([]*Manifest, error) {
	c.mu.Lock()
	list, ok := c.found[id]
	epoch := c.epoch
	c.mu.Unlock()
	if !ok {
		var err error
		if list, err = c.View.Find(id); err != nil {
			return nil, err
		}
		c.keep(id, list, epoch)
	}
	own := make([]*Manifest, len(list)) // callers may change theirs
	for i, m := range list {
		own[i] = m.Clone()
	}
	return own, nil
}

// keep adds the manifests of an ID, read in the given epoch, to the cache, unless another goroutine
// has added them.
func (c *CachedView) keep(id buildid.ID, list []*Manifest, epoch int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.found[id]; ok || epoch != c.epoch {
		return
	}
	if c.size += max(1, len(list)); c.size > maxCached {
		clear(c.found)
		c.size = max(1, len(list))
	}
	c.found[id] = list
}

// Dir implements View. Its rows are the view's: they must not be changed.
func (c *CachedView) Dir(dir string) (DirRows, bool, error) {
	c.mu.Lock()
	d, known := c.dirs[dir]
	epoch := c.epoch
	c.mu.Unlock()
	if known {
		return d.rows, d.ok, nil
	}
	rows, ok, err := c.View.Dir(dir)
	if err == nil && len(rows) < maxCachedRows {
		c.keepDir(dir, cachedDir{rows[:len(rows):len(rows)], ok}, epoch)
	}
	return rows, ok, err
}

// keepDir is keep for a directory.
func (c *CachedView) keepDir(dir string, d cachedDir, epoch int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.dirs[dir]; ok || epoch != c.epoch {
		return
	}
	if c.rows += max(1, len(d.rows)); c.rows > maxCachedRows {
		clear(c.dirs)
		c.rows = max(1, len(d.rows))
	}
	c.dirs[dir] = d
}
