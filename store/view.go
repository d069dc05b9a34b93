package store

import (
	"context"
	"fmt"
	"sync"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/store/calltab"
	"symbolize/store/symtab"
	"symbolize/store/typetab"
	"symbolize/store/unwindtab"
)

// Sink receives the indexer's output: a store opened for writing, or an Overlay. Its methods may be
// called from several goroutines.
type Sink interface {
	// Merge adds a file's facts to its object. Contributions may come in any order and more than
	// once: the result is the same bytes. The sink keeps no reference to c once it has returned,
	// but an Overlay keeps the tables.
	Merge(ctx context.Context, c *Contribution) error
	// PutBlob keeps a captured input under the hash of its content. The next GC drops it unless
	// a variant names it. The sink keeps no reference to data.
	PutBlob(ctx context.Context, data []byte) (BlobID, error)
	// PutDir replaces the path rows of a directory, named by its clean absolute path. No rows
	// remove the directory.
	PutDir(dir string, rows DirRows) error
}

// InputSink is a Sink for objects of another store, with their inputs as they are.
type InputSink interface {
	Sink
	// PutInput keeps an input and notes the blobs in it. One that is damaged wraps ErrDamaged; tables
	// are not decoded. The sink may keep content.
	PutInput(ctx context.Context, id Digest, content []byte) error
	// MergeObject adds the facts that another store has of an object, and its sources. The inputs and
	// blobs that m names were put before.
	MergeObject(ctx context.Context, m *Manifest) error
}

// View serves resolve: a published generation, an Overlay, or several layered. Its methods may be
// called from several goroutines; a table may not.
type View interface {
	// Find returns the manifests of the objects that id matches: none, one, or several if id is
	// inexact, sorted by ID. They belong to the caller.
	Find(id buildid.ID) ([]*Manifest, error)
	// Open returns the table of m.Sources[i], of a kind with names. It is valid until the
	// view is closed.
	Open(m *Manifest, i int) (*symtab.Table, error)
	// OpenUnwind is Open for a source of kind Unwind.
	OpenUnwind(m *Manifest, i int) (*unwindtab.Table, error)
	// OpenCalls is Open for a source of kind Calls.
	OpenCalls(m *Manifest, i int) (*calltab.Table, error)
	// OpenTypes is Open for a source of kind Types.
	OpenTypes(m *Manifest, i int) (*typetab.Table, error)
	// Blob returns the content of a blob, which must not be changed; ErrNotFound if the view
	// does not have it.
	Blob(id BlobID) ([]byte, error)
	// Dir returns the path rows of a directory; ok is false if none are known.
	Dir(dir string) (rows DirRows, ok bool, err error)
}

// FindOne returns the one object that id matches. Where there is not exactly one it returns
// nil and the reason: NoBuildID, NotIndexed, Ambiguous, or TableDamaged with the error.
func FindOne(v View, id buildid.ID) (*Manifest, ingest.Reason, error) {
	if id.IsZero() {
		return nil, ingest.NoBuildID, nil
	}
	found, err := v.Find(id)
	switch {
	case err != nil:
		return nil, ingest.TableDamaged, err
	case len(found) == 0:
		return nil, ingest.NotIndexed, nil
	case len(found) > 1:
		return nil, ingest.Ambiguous, nil
	}
	return found[0], ingest.ReasonNone, nil
}

// FindCode is FindOne for look-ups of addresses: a kernel is not indexed if the store has only the
// build IDs of its vdsos.
func FindCode(v View, id buildid.ID) (*Manifest, ingest.Reason, error) {
	m, reason, err := FindOne(v, id)
	if m != nil && m.OnlyVDSO() {
		return nil, ingest.NotIndexed, nil
	}
	return m, reason, err
}

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

// Counted is a View that counts distinct opened symbol tables.
type Counted struct {
	View
	mu     sync.Mutex
	opened map[string]struct{}
}

// NewCounted returns a Counted of v.
func NewCounted(v View) *Counted {
	return &Counted{View: v, opened: make(map[string]struct{})}
}

// Open implements View.
func (c *Counted) Open(m *Manifest, i int) (*symtab.Table, error) {
	t, err := c.View.Open(m, i)
	if err == nil {
		key := TableKey(m, i)
		c.mu.Lock()
		c.opened[key] = struct{}{}
		c.mu.Unlock()
	}
	return t, err
}

// Tables returns how many distinct tables were opened.
func (c *Counted) Tables() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(len(c.opened))
}

// TableKey names the table of m.Sources[i].
func TableKey(m *Manifest, i int) string {
	info := &m.Sources[i]
	return fmt.Sprintf("%s %d %x", m.ID, info.Kind, info.Digest)
}
