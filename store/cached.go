package store

import (
	"sync"

	"symbolize/buildid"
)

// maxCached bounds the manifests that a cached view keeps; those of large objects have some
// kilobytes.
const maxCached = 4096

// CachedView is a View that keeps the manifests which it has found.
type CachedView struct {
	View
	mu    sync.Mutex
	found map[buildid.ID][]*Manifest
	size  int // manifests and IDs without one in found
	epoch int // counts Forget
}

// Cached returns a View of v that asks v for the manifests of an ID once: the join, the check of
// return addresses and each table that is opened need them. The content of v must not change
// without a call of Forget; an Overlay is layered in front of it. Errors are not kept.
func Cached(v View) *CachedView {
	return &CachedView{View: v, found: make(map[buildid.ID][]*Manifest)}
}

// Forget drops all that is kept: the content of the view has changed.
func (c *CachedView) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.found)
	c.size = 0
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
