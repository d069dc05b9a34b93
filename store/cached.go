package store

import (
	"sync"

	"symbolize/buildid"
)

// maxCached bounds the manifests that a cached view keeps; those of large objects have some
// kilobytes.
const maxCached = 4096

// maxCachedRows bounds the path rows that a cached view keeps; each has some 150 bytes.
const maxCachedRows = 1 << 14

// CachedView is a View that keeps the manifests and the path rows which it has found.
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

// Cached returns a View of v that asks v for the manifests of an ID once: the join, the check of
// return addresses and each table that is opened need them; and once for the rows of a directory,
// as a capture's objects lie in few. The content of v must not change without a call of Forget; an
// Overlay is layered in front of it. Errors are not kept.
func Cached(v View) *CachedView {
	return &CachedView{View: v, found: make(map[buildid.ID][]*Manifest),
		dirs: make(map[string]cachedDir)}
}

// Forget drops all that is kept: the content of the view has changed.
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
	own := make([]*Manifest, len(list)) // the caller's
	for i, m := range list {
		own[i] = m.Clone()
	}
	return own, nil
}

// keep enters the manifests of an ID, as they were in an epoch. Another goroutine may have entered
// the same.
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
