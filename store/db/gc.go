package db

import (
	"bytes"
	"context"
	"encoding/binary"
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

	trust bool // inputs are not read
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
	After       int64 // bytes of the whole store on disk, as du counts them, without trash/

	undated []buildid.ID
	kept    hashes // objects
}

// GC joins all facts, without what is neither named nor whole: damaged sources and path rows of
// vanished files stay behind. It publishes that, and then moves the inputs that are no longer named to
// trash/, where readers that have an older generation open find them.
func (w *Writer) GC(ctx context.Context, opts GCOptions) (*GCResult, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.open(); err != nil {
		return nil, err
	}
	res, err := newResult(w.path, &opts)
	if err != nil {
		return nil, err
	}
	if err := w.collect(ctx, opts, res); err != nil {
		return nil, err
	}
	res.After, err = diskUseWithoutTrash(w.path)
	// They are dated from now on.
	return res, errors.Join(err, MarkUsed(w.path, res.undated),
		compactUses(w.path, time.Now(), func(id buildid.ID) bool { return res.kept.has(objectHash(id)) }))
}

// maxFacts is from how many files of facts on a writer joins them.
const maxFacts = 256

// tidy is a GC that drops no more than what nothing names, and keeps notes. Too little free space
// is not an error, because tidying is optional.
func (w *Writer) tidy() error {
	opts := GCOptions{Exists: func(string) bool { return true }, trust: true}
	err := w.collect(context.Background(), opts, new(GCResult))
	if errors.Is(err, store.ErrNoSpace) {
		return nil
	}
	return err
}

// collect writes what is kept as one file of facts; the caller holds writing.
func (w *Writer) collect(ctx context.Context, opts GCOptions, res *GCResult) error {
	return w.join(func(j *joiner) error {
		c := &keeper{d: w.database, put: j.put, opts: opts, res: res}
		return c.run(ctx)
	})
}

// joiner writes facts that replace all others, and their index.
type joiner struct {
	facts *factsWriter
	index *indexWriter
	named hashes // inputs that stay
}

// put adds an entry of the index.
func (j *joiner) put(key, payload []byte) (err error) {
	j.named.addEntry(entry{key: key, payload: payload})
	switch key[0] {
	case prefixDir:
		level, rows, bad := rowsAt(payload)
		if bad != nil || len(rows) == 0 { // removed
			return bad
		}
		err = j.facts.add(prefixDir, dirRecord(string(key[1:]), level, rows)...)
	case prefixBlob:
		err = j.facts.add(prefixBlob, key[1:], payload)
	case prefixNote:
		err = j.facts.add(prefixNote, key[1:])
	default:
		err = j.facts.add(prefixManifest, payload)
	}
	if err != nil {
		return err
	}
	return j.index.put(key, payload)
}

// join replaces all facts by those that fill puts, publishes them, and moves to trash/ what they do
// not name. The caller holds writing.
func (w *Writer) join(fill func(j *joiner) error) error {
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.roomFor(w.state.size() + w.state.extra.size); err != nil {
		return err
	}
	var h head
	info := indexInfo{level: w.state.level, facts: make(map[digest]bool), past: make(map[digest]bool)}
	for _, list := range []map[digest]bool{w.state.facts, w.state.past} {
		for id := range list {
			h.replaced = append(h.replaced, id)
			info.past[id] = true
		}
	}
	slices.SortFunc(h.replaced, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	facts, err := newFacts(w.path, h)
	if err != nil {
		return err
	}
	index, err := newIndex(w.path, "")
	if err != nil {
		return errors.Join(err, facts.discard())
	}
	j := &joiner{facts: facts, index: index}
	if err := fill(j); err != nil {
		return errors.Join(err, facts.discard(), index.discard())
	}
	if err := w.syncInputs(); err != nil {
		return errors.Join(err, facts.discard(), index.discard())
	}
	if err := facts.finish(); err != nil {
		return errors.Join(err, facts.discard(), index.discard())
	}
	info.facts[facts.id] = true
	commit := func() error {
		for _, f := range w.finished { // the new facts have theirs
			if err := f.discard(); err != nil {
				return err
			}
		}
		w.finished = nil
		return facts.commit()
	}
	if err := w.seal(index, info, commit); err != nil {
		return fmt.Errorf("store %s: %w", w.path, err)
	}
	return w.sweep(&j.named)
}

// sweep moves what the newest generation does not need to trash/.
func (w *Writer) sweep(named *hashes) error {
	// The generations before name the dropped data.
	if err := removeOld(w.path, 1); err != nil {
		return err
	}
	list, _, err := listFacts(w.path)
	if err != nil {
		return err
	}
	for id := range w.written { // that another goroutine is about to name
		named.add(prefixOf(id))
	}
	var past []string
	for id := range list {
		if w.state.past[id] {
			past = append(past, id.String())
		} else if !w.state.facts[id] { // of another writer, where the file system cannot lock
			path := filepath.Join(w.path, factsName, id.String())
			if _, _, _, err := readFacts(path, named.addRecord); err != nil {
				return err
			}
		}
	}
	var unnamed []string
	err = eachName(filepath.Join(w.path, inputsName), func(name string) error {
		if id, ok := store.ParseDigest(name); !ok || !named.has(prefixOf(id)) {
			unnamed = append(unnamed, name)
		}
		return nil
	})
	err = errors.Join(err, discard(w.path, w.gen, factsName, past), discard(w.path, w.gen, inputsName, unnamed))
	return errors.Join(err, w.emptyTrash())
}

// keeper puts the data to keep.
type keeper struct {
	d    *database
	put  func(key, payload []byte) error
	opts GCOptions
	res  *GCResult

	wanted hashes // objects that a path row names
	lost   hashes // objects that lost something, or are dropped
	uses   lastUses
	blobs  map[store.BlobID]bool // checked blobs; true for whole ones
	sound  map[digest]bool       // inputs that were read lately
}

func (c *keeper) run(ctx context.Context) error {
	c.blobs, c.sound = make(map[store.BlobID]bool), make(map[digest]bool)
	var err error
	if c.uses, err = readUses(c.d.path, time.Now()); err != nil && !c.opts.Since.IsZero() {
		return fmt.Errorf("store: %w", err)
	}
	if c.opts.Unreferenced {
		for dir, err := range c.d.Dirs() {
			if err := skipDamage(err); err != nil {
				return err
			}
			for _, row := range c.liveRows(dir, new(hashes)) {
				c.wanted.add(objectHash(row.ID))
			}
		}
	}
	for e, err := range c.d.scan(prefixManifest) {
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
	if !c.opts.trust { // what was pulled may be dropped
		return nil
	}
	for e, err := range c.d.scan(prefixNote) {
		if err = errors.Join(err, e.err); err == nil {
			err = c.put(e.key, e.payload)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// liveRows returns the rows of files that still exist, except rows of objects in without.
func (c *keeper) liveRows(dir Directory, without *hashes) store.DirRows {
	if !c.opts.Exists(dir.Path) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(dir.Rows), func(r store.PathRow) bool {
		return !r.ID.IsZero() && without.has(objectHash(r.ID)) ||
			!c.opts.Exists(filepath.Join(dir.Path, r.Name))
	})
}

// object keeps one object with the sources that are whole and not superseded.
func (c *keeper) object(e entry) error {
	id, _, _ := cutObjKey(e.key[1:])
	m, err := e.manifest()
	if files.OfMachine(err) {
		return err
	}
	if err != nil {
		c.lost.add(objectHash(id))
		c.res.Damaged++
		return nil
	}
	if c.drops(m) {
		c.lost.add(objectHash(m.ID))
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
		whole, err := c.source(&m.Sources[i])
		if err != nil {
			return err
		}
		if !whole {
			c.lost.add(objectHash(m.ID))
			c.res.Damaged++
			continue
		}
		kept = append(kept, m.Sources[i])
	}
	m.Sources = kept
	if err := c.variants(m); err != nil {
		return err
	}
	if !m.IsAlias() {
		c.res.Objects++
		c.res.kept.add(objectHash(m.ID))
	}
	return c.put(e.key, store.AppendStored(nil, m))
}

// superseded reports whether a newer decoder has read the same path and kind.
func superseded(m *store.Manifest, i int) bool {
	old := &m.Sources[i]
	return old.RawSize == 0 && slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind == old.Kind && s.Path == old.Path && s.Producer > old.Producer
	})
}

// maxSound bounds the inputs that are remembered.
const maxSound = 1024

// source reports whether the inputs of a source are whole.
func (c *keeper) source(info *store.SourceInfo) (whole bool, err error) {
	whole, err = c.input(info.Input)
	if err != nil || !whole || info.RawSize == 0 {
		return whole, err
	}
	return c.input(info.RawInput)
}

func (c *keeper) input(id digest) (whole bool, err error) {
	whole, known := c.sound[id]
	if known || c.opts.trust {
		return whole || c.opts.trust, nil
	}
	if len(c.sound) >= maxSound {
		clear(c.sound)
	}
	_, err = c.d.inputs.check(id)
	if skip := skipLost(err); skip != nil {
		return false, skip
	}
	c.sound[id] = err == nil
	return err == nil, nil
}

// variants keeps the blobs of an object's variants and drops variants with one that is lost or
// damaged.
func (c *keeper) variants(m *store.Manifest) error {
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
			c.lost.add(objectHash(m.ID))
			c.res.Damaged++
			continue
		}
		kept = append(kept, v)
	}
	m.Variants = kept
	return nil
}

// blob keeps a blob that was not kept before, and reports whether it is whole.
func (c *keeper) blob(id store.BlobID) (whole bool, err error) {
	if whole, done := c.blobs[id]; done {
		return whole, nil
	}
	if c.opts.trust {
		whole, err = c.d.hasBlob(id)
	} else if _, err = c.d.Blob(id); err == nil {
		whole = true
	}
	if err = skipLost(err); err != nil {
		return false, err
	}
	c.blobs[id] = whole
	if !whole {
		return false, nil
	}
	record, err := c.d.get(blobKey(id))
	if err != nil {
		return false, err
	}
	return true, c.put(blobKey(id), record)
}

// dir keeps the rows of files that are still there. Rows of objects that lost something go too, so
// that the next index reads their files again.
func (c *keeper) dir(dir Directory) error {
	rows := c.liveRows(dir, &c.lost)
	c.res.Rows += len(rows)
	c.res.RowsDropped += len(dir.Rows) - len(rows)
	if len(rows) == 0 {
		return nil
	}
	text, err := store.EncodeRows(rows)
	if err != nil {
		return fmt.Errorf("directory %s: %w", dir.Path, err)
	}
	return c.put(dirKey(dir.Path), append(binary.AppendUvarint(nil, dir.level), text...))
}

// PlanGC returns the effects of a GC of what is open. After is an estimate.
func (r *Reader) PlanGC(ctx context.Context, opts GCOptions) (*GCResult, error) {
	res, err := newResult(r.path, &opts)
	if err != nil {
		return nil, err
	}
	var named hashes
	c := &keeper{d: r.database, opts: opts, res: res, put: func(key, payload []byte) error {
		named.addEntry(entry{key: key, payload: payload})
		return nil
	}}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	dir := filepath.Join(r.path, inputsName)
	res.After = res.Before
	err = eachName(dir, func(name string) error {
		if id, ok := store.ParseDigest(name); ok && named.has(prefixOf(id)) {
			return nil
		}
		info, err := os.Lstat(filepath.Join(dir, name))
		if err == nil {
			size, _ := files.Blocks(info)
			res.After -= size
		}
		return skipMissing(err)
	})
	return res, err
}

// newResult returns the result of a GC that has yet to be done, and completes its options.
func newResult(path string, opts *GCOptions) (res *GCResult, err error) {
	if opts.Exists == nil {
		opts.Exists = func(path string) bool {
			_, err := os.Lstat(path)
			return !errors.Is(err, fs.ErrNotExist)
		}
	}
	res = new(GCResult)
	if res.Before, err = diskUseWithoutTrash(path); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return res, nil
}

// diskUseWithoutTrash is DiskUse, without files that become free when their last reader ends.
func diskUseWithoutTrash(path string) (int64, error) {
	all, err := DiskUse(path)
	if err != nil {
		return 0, err
	}
	trash, err := DiskUse(filepath.Join(path, trashName))
	return all - trash, err
}

// drops reports whether the options have an object dropped.
func (c *keeper) drops(m *store.Manifest) bool {
	if m.IsAlias() { // with the last object that it leads to; those come before it
		return !slices.ContainsFunc(m.Probable, func(id buildid.ID) bool {
			return c.res.kept.has(objectHash(id))
		})
	}
	if c.opts.Remove[m.ID] || c.opts.Unreferenced && !c.wanted.has(objectHash(m.ID)) && replaceable(m) {
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
