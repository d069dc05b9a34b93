package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/store"
)

// GCOptions select data to drop besides unused data.
type GCOptions struct {
	// Unreferenced drops objects that no file known to the store has any more. Kernels, JITed
	// functions and objects with a captured input stay: they cannot be made again.
	Unreferenced bool
	// Remove are objects to drop, whatever they are.
	Remove map[buildid.ID]bool
	// Since drops objects that were neither indexed nor used from that day on; see MarkUsed.
	// Objects of which no day is known stay. Zero drops none.
	Since time.Time
	// Exists reports whether a path is still there; nil uses the file system.
	Exists func(path string) bool
	// Gone is called for each dropped object, sorted by build ID; nil for no calls.
	Gone func(Gone)
}

// Gone is an object that was dropped.
type Gone struct {
	Manifest *store.Manifest
	LastUsed time.Time // the day, UTC; zero if it is not known
}

// GCResult counts the kept and dropped data.
type GCResult struct {
	Objects     int // kept
	Dropped     int // objects that no file has, that are too old or to be removed
	Undated     int // kept objects of which no day of use is known, with GCOptions.Since
	Superseded  int // sources that a newer decoder made anew from the same path
	Damaged     int // sources, manifests and directories that could not be read
	Rows        int // path rows kept
	RowsDropped int // of vanished files, and of damaged objects, to be indexed again
	Before      int64
	After       int64 // bytes of the whole store on disk, as du counts them

	undated []buildid.ID
	kept    map[buildid.Key]bool // objects
}

// GC copies all that is named and whole into a fresh database and makes that the next generation.
// Orphans, damaged sources and path rows of vanished files stay behind. Readers that have an older
// generation open keep it.
func (w *Writer) GC(ctx context.Context, opts GCOptions) (*GCResult, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.db == nil {
		return nil, fmt.Errorf("%s: %w", w.path, store.ErrClosed)
	}
	res, err := w.collect(ctx, opts)
	if err == nil {
		// They are dated from now on.
		err = errors.Join(MarkUsed(w.path, res.undated),
			os.RemoveAll(filepath.Join(w.path, remoteName)),
			compactUses(w.path, time.Now(), func(object buildid.Key) bool { return res.kept[object] }))
	}
	return res, err
}

// A Writer begins a value log of its own at each opening. From maxLogs of them a reader's opening
// becomes slow and needs many file descriptors; as long as they are small, copying them into one is
// cheap.
const (
	maxLogs      = 128
	maxSmallLogs = 256 << 20 // bytes of all logs
)

// manySmallLogs reports whether it is time to copy the logs of dir into one.
func manySmallLogs(dir string) bool {
	entries, _ := os.ReadDir(dir)
	logs, size := 0, int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && isLog(e.Name()) {
			logs++
			if info.Size() < 2*vlogFileSize { // the open one is sparse
				size += info.Size()
			}
		}
	}
	return logs >= maxLogs && size <= maxSmallLogs
}

// tidy is a GC that removes only orphans and damage. Too little free space is no error, because
// tidying is optional.
func (w *Writer) tidy() error {
	_, err := w.collect(context.Background(), GCOptions{Exists: func(string) bool { return true }})
	if errors.Is(err, store.ErrNoSpace) {
		return nil
	}
	return err
}

// collect is GC; the caller holds writing.
func (w *Writer) collect(ctx context.Context, opts GCOptions) (*GCResult, error) {
	err := w.flushRows()
	if err != nil {
		return nil, err
	}
	res, err := newResult(w.path, &opts)
	if err != nil {
		return nil, err
	}
	fresh, err := w.freshDatabase()
	if err != nil {
		return nil, err
	}
	c := &collector{d: w.database, to: &batch{ctx: ctx, w: fresh}, opts: opts, res: res}
	err = errors.Join(c.run(ctx), fresh.db.Close())
	dir := filepath.Join(w.path, tmpPrefix+liveName)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := w.swap(dir); err != nil {
		return nil, fmt.Errorf("store %s: %w", w.path, err)
	}
	res.After, err = DiskUse(w.path)
	return res, err
}

// freshDatabase opens an empty database beside db/.
func (w *Writer) freshDatabase() (*Writer, error) {
	dir := filepath.Join(w.path, tmpPrefix+liveName)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	f := &Writer{database: &database{path: w.path}, space: newSpaceGuard(dir)}
	db, err := openBadger(badgerOptions(dir, false, &w.log))
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", w.path, err)
	}
	f.db = db
	return f, nil
}

// swap makes the closed database in dir the newest generation and continues with a clone of it.
func (w *Writer) swap(dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	// All whole data was copied: a source that cannot be closed is no loss.
	if err := skipDamage(w.shut()); err != nil {
		return err
	}
	gen, err := publish(w.path, dir, 0, nil)
	if err != nil {
		return err
	}
	w.gen, w.dirty = gen, false
	// The generations before hold the dropped data. Their space becomes free when the last of their
	// readers ends.
	err = errors.Join(removeTree(filepath.Join(w.path, liveName)), removeOld(w.path, 1),
		os.RemoveAll(filepath.Join(w.path, asideName)))
	if err != nil {
		return err
	}
	return w.open()
}

// collector copies the data to keep.
type collector struct {
	d    *database
	to   target
	opts GCOptions
	res  *GCResult

	wanted map[buildid.Key]bool // objects that a path row names
	lost   map[buildid.Key]bool // objects that lost something, or are dropped
	uses   lastUses
	blobs  map[store.BlobID]bool // checked blobs; true for whole ones
}

func (c *collector) run(ctx context.Context) error {
	c.wanted, c.lost = make(map[buildid.Key]bool), make(map[buildid.Key]bool)
	c.blobs = make(map[store.BlobID]bool)
	var err error
	if c.uses, err = readUses(c.d.path, time.Now()); err != nil && !c.opts.Since.IsZero() {
		return fmt.Errorf("store: %w", err)
	}
	if c.opts.Unreferenced {
		for dir, err := range c.d.Dirs() {
			if err := skipDamage(err); err != nil {
				return err
			}
			for _, row := range c.liveRows(dir, nil) {
				c.wanted[row.ID.Key()] = true
			}
		}
	}
	for e, err := range c.d.scan([]byte{prefixManifest}, true) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if err := c.object(e); err != nil {
			return err
		}
	}
	for dir, err := range c.d.Dirs() {
		if errors.Is(err, store.ErrDamaged) {
			c.res.Damaged++
			continue
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if err := c.dir(dir); err != nil {
			return err
		}
	}
	return c.to.commit()
}

// skipDamage returns err unless it is damage.
func skipDamage(err error) error {
	if errors.Is(err, store.ErrDamaged) {
		return nil
	}
	return err
}

// liveRows returns the rows of files that still exist, except rows of objects in without.
func (c *collector) liveRows(dir Directory, without map[buildid.Key]bool) store.DirRows {
	if !c.opts.Exists(dir.Path) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(dir.Rows), func(r store.PathRow) bool {
		return !r.ID.IsZero() && without[r.ID.Key()] ||
			!c.opts.Exists(filepath.Join(dir.Path, r.Name))
	})
}

// object copies one object with the sources that are whole and not superseded.
func (c *collector) object(e entry) error {
	id, _, _ := cutObjKey(e.key[1:])
	var m *store.Manifest
	err := e.err
	if err == nil {
		m, err = store.DecodeManifest("manifest", e.payload)
	}
	if files.OfMachine(err) {
		return err
	}
	if err != nil {
		c.lost[id.Key()] = true
		c.res.Damaged++
		return nil
	}
	if c.drops(m) {
		c.lost[m.ID.Key()] = true
		if !m.IsAlias() {
			c.res.Dropped++
			if c.opts.Gone != nil {
				c.opts.Gone(Gone{m, c.uses.day(m.ID)})
			}
		}
		return nil
	}
	kept := m.Sources[:0:0]
	for i := range m.Sources {
		if superseded(m, i) {
			c.res.Superseded++
			continue
		}
		err := c.source(m, i)
		if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNotFound) {
			c.lost[m.ID.Key()] = true
			c.res.Damaged++
			continue
		}
		if err != nil {
			return err
		}
		kept = append(kept, m.Sources[i])
	}
	m.Sources = kept
	if err := c.variants(m); err != nil {
		return err
	}
	if !m.IsAlias() {
		c.res.Objects++
		c.res.kept[m.ID.Key()] = true
	}
	return c.to.put(e.key, store.EncodeManifest(m))
}

// superseded reports whether a newer decoder has read the same path and kind.
func superseded(m *store.Manifest, i int) bool {
	old := &m.Sources[i]
	return old.RawSize == 0 && slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind == old.Kind && s.Path == old.Path && s.Producer > old.Producer
	})
}

// source copies the parts of one source. A part that is lost or damaged makes it fail with
// ErrDamaged or ErrNotFound; the copied parts are dropped by the next GC.
func (c *collector) source(m *store.Manifest, i int) error {
	info := &m.Sources[i]
	if sum, _, err := c.d.readTable(m, i); err != nil || sum != info.Digest {
		return store.Damagef("table of %s: %v", m.ID, err)
	}
	for key := range sourceKeys(m.ID, info) {
		payload, err := c.d.get(key)
		if err == nil {
			err = c.to.put(key, payload)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// variants copies the blobs of an object's variants and drops variants with one that is lost or
// damaged.
func (c *collector) variants(m *store.Manifest) error {
	kept := m.Variants[:0:0]
	for _, v := range m.Variants {
		whole := true
		for _, id := range v.Blobs() {
			ok, err := c.blob(id)
			if err != nil {
				return err
			}
			whole = whole && ok
		}
		if !whole {
			c.lost[m.ID.Key()] = true
			c.res.Damaged++
			continue
		}
		kept = append(kept, v)
	}
	m.Variants = kept
	return nil
}

// blob copies a blob that was not copied before, and reports whether it is whole.
func (c *collector) blob(id store.BlobID) (bool, error) {
	if whole, done := c.blobs[id]; done {
		return whole, nil
	}
	data, err := c.d.Blob(id)
	c.blobs[id] = err == nil
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		err = putBlob(c.to, id, data)
	}
	return err == nil, err
}

// dir copies the rows of files that are still there. Rows of objects that lost
// something go too, so that the next index reads their files again.
func (c *collector) dir(dir Directory) error {
	rows := c.liveRows(dir, c.lost)
	c.res.Rows += len(rows)
	c.res.RowsDropped += len(dir.Rows) - len(rows)
	if len(rows) == 0 {
		return nil
	}
	text, err := store.EncodeRows(rows)
	if err != nil {
		return fmt.Errorf("directory %s: %w", dir.Path, err)
	}
	return c.to.put(dirKey(dir.Path), text)
}

// target receives the data to keep: a batch of the fresh database, or a measure.
type target interface {
	put(key, payload []byte) error
	commit() error
}

// PlanGC returns the effects of a GC of the open generation. After is an estimate: the bytes of
// all values that would be kept, without the database's own.
func (r *Reader) PlanGC(ctx context.Context, opts GCOptions) (*GCResult, error) {
	res, err := newResult(r.path, &opts)
	if err != nil {
		return nil, err
	}
	to := &measure{}
	c := &collector{d: r.database, to: to, opts: opts, res: res}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	for _, name := range []string{gensName, liveName, leftName, asideName} {
		n, err := DiskUse(filepath.Join(r.path, name))
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		to.bytes -= n
	}
	res.After = min(res.Before, res.Before+to.bytes+emptyDatabase)
	return res, nil
}

// emptyDatabase is about the size on disk of the files of a generation besides its values.
const emptyDatabase = 24 << 10

// measure is a target that only adds up the sizes of a database.
type measure struct{ bytes int64 }

func (m *measure) put(key, payload []byte) error {
	m.bytes += int64(len(key)+len(payload)) + entryOverhead
	return nil
}

func (m *measure) commit() error { return nil }

// newResult returns the result of a GC that has yet to be done, and completes its options.
func newResult(path string, opts *GCOptions) (res *GCResult, err error) {
	if opts.Exists == nil {
		opts.Exists = func(path string) bool {
			_, err := os.Lstat(path)
			return !errors.Is(err, fs.ErrNotExist)
		}
	}
	res = &GCResult{kept: make(map[buildid.Key]bool)}
	if res.Before, err = DiskUse(path); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return res, nil
}

// drops reports whether the options have an object dropped.
func (c *collector) drops(m *store.Manifest) bool {
	if m.IsAlias() { // with the last object that it leads to; those come before it
		return !slices.ContainsFunc(m.Probable, func(id buildid.ID) bool {
			return c.res.kept[id.Key()]
		})
	}
	if c.opts.Remove[m.ID] || c.opts.Unreferenced && !c.wanted[m.ID.Key()] && replaceable(m) {
		return true
	}
	if c.opts.Since.IsZero() {
		return false
	}
	day := c.uses.day(m.ID)
	if day.IsZero() {
		c.res.Undated++
		c.res.undated = append(c.res.undated, m.ID)
	}
	return !day.IsZero() && day.Before(c.opts.Since)
}

// replaceable reports whether indexing its files again would bring the object back.
func replaceable(m *store.Manifest) bool {
	return m.ID.Space() != buildid.JIT && len(m.RefSyms)+len(m.VDSO) == 0 &&
		!slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool { return s.RawSize > 0 })
}
