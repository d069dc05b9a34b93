package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/store"
)

// WriterOptions configure the opening of a store for writing.
type WriterOptions struct {
	// LockTimeout is how long to wait for another writer: 0 not at all, less than 0 as long as the
	// context.
	LockTimeout time.Duration
	// Waiting is called once when another writer is waited for; nil for no call.
	Waiting func(*store.LockedError)
	// PublishEvery is the shortest time between generations published periodically
	// during a long run; 0: DefaultPublishEvery, less than 0 for never.
	PublishEvery time.Duration
	// Shared lets a store be written although others than the caller and root can write
	// to its directory or to one above it. They could lead the writer to other files.
	Shared bool
}

// DefaultPublishEvery is the usual WriterOptions.PublishEvery.
const DefaultPublishEvery = 30 * time.Second

// publishShare bounds the cost of periodic publishing: one part in so many of a run.
const publishShare = 20

// maxExtra is how many bytes of entries a writer keeps in memory before it makes them a generation,
// if that has at least a quarter of the bytes of all.
var maxExtra int64 = 16 << 20 // smaller in tests

// Writer is a store opened for writing: a store.InputSink, and a View of the written data. There is one at a
// time for a store, in all processes, where the file system can lock. Its methods may be called from
// several goroutines.
type Writer struct {
	*database
	opts   WriterOptions
	lock   *os.File
	locked bool // lock is held; false where the file system cannot lock

	// writing is held by all that changes the state or writes facts.
	writing     sync.Mutex
	space       *spaceGuard
	facts       *factsWriter    // nil until something is written
	finished    []*factsWriter  // on disk, to be committed
	written     map[digest]bool // inputs since the last commit; false for those that facts do not name yet
	dirty       bool            // there is something that the newest generation lacks
	gen         uint64
	publishedAt time.Time
	publishTook time.Duration
	objects     map[buildid.ID]bool // that were merged, for MarkUsed
}

// OpenWriter opens a store for writing and makes it if it is not there. It fails with a
// *LockedError if another process writes, with ErrVersion on a store of a newer schema, with
// ErrOldSchema on one of an older, with ErrUnsafe on one that others can change and with ErrNoSpace
// on a full disk.
func OpenWriter(ctx context.Context, path string, opts WriterOptions) (*Writer, error) {
	if err := makeStore(path, opts.Shared); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := checkFormat(path); err != nil {
		return nil, err
	}
	lock, locked, err := acquireLock(ctx, path, filepath.Join(path, lockName), opts)
	if err != nil {
		return nil, err
	}
	w := &Writer{database: &database{path: path, inputs: inputFiles{path: path}}, opts: opts, lock: lock,
		locked: locked, space: newSpaceGuard(path), written: make(map[digest]bool)}
	if err := w.start(); err != nil {
		return nil, errors.Join(err, w.shut(), releaseLock(lock))
	}
	return w, nil
}

// makeStore makes the directory of a store if it is missing. Write permissions of others are
// checked before, while nothing has been made, and after, because another process may have made the
// directory first.
func makeStore(path string, shared bool) error {
	trust := files.CheckTrust
	if shared {
		trust = func(string) error { return nil }
	}
	if err := trust(path); err != nil {
		return err
	}
	return errors.Join(files.MakeDirs(path, files.SyncDir), trust(path))
}

// checkFormat refuses a store of another schema.
func checkFormat(root string) error {
	path := filepath.Join(root, formatName)
	b, err := readLimited(path, 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	var schema int
	if _, err := fmt.Sscanf(string(b), "symbolize store\nschema %d\n", &schema); err != nil ||
		schema < 1 || string(b) != formatText(schema) {
		return store.Damagef("%s: no store's", path)
	}
	return store.CheckSchema(path, schema)
}

// formatText is the content of FORMAT.
func formatText(schema int) string { return fmt.Sprintf("symbolize store\nschema %d\n", schema) }

// start does the work that needs the lock.
func (w *Writer) start() error {
	if err := w.makeDirs(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := w.roomToOpen(w.space); err != nil {
		return err
	}
	s, err := load(w.path, true, &w.log)
	if err != nil {
		return fmt.Errorf("store %s: %w", w.path, err)
	}
	w.log.forget()
	for _, text := range s.passed {
		w.log.warn("%s", text)
	}
	w.state, w.gen, w.publishedAt = s, s.gen, time.Now()
	w.dirty = s.stale()
	if err := errors.Join(w.adopt(), w.restore()); err != nil {
		return fmt.Errorf("store %s: work of an interrupted run: %w", w.path, err)
	}
	return w.emptyTrash()
}

// makeDirs makes what a store has, and removes temporary files.
func (w *Writer) makeDirs() error {
	if err := checkRoot(w.path); err != nil {
		return err
	}
	if w.locked {
		if err := removeLeftovers(w.path); err != nil {
			return err
		}
	}
	isNew := false
	for _, name := range []string{inputsName, factsName, gensName} {
		switch err := os.Mkdir(filepath.Join(w.path, name), 0o755); {
		case err == nil:
			isNew = true
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	if isNew {
		if err := files.SyncDir(w.path); err != nil {
			return err
		}
	}
	return w.writeFormat()
}

// writeFormat records the schema of the store before anything else is written.
func (w *Writer) writeFormat() error {
	format := filepath.Join(w.path, formatName)
	if _, err := os.Lstat(format); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp := filepath.Join(w.path, tmpPrefix+formatName)
	return errors.Join(files.WriteSynced(tmp, []byte(formatText(store.SchemaVersion))),
		os.Rename(tmp, format), files.SyncDir(w.path))
}

// Merge implements Sink.
func (w *Writer) Merge(ctx context.Context, c *store.Contribution) error {
	if err := store.CheckContribution(c); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	own := store.Contribution{Manifest: c.Manifest, Sources: slices.Clone(c.Sources)}
	var in *store.NewInput
	if len(own.Sources) > 0 {
		in = store.EncodeInput(own.Sources)
	}
	m, err := own.Describe()
	if err == nil {
		err = w.merge(m, in)
	}
	if err != nil {
		return fmt.Errorf("object %s: %w", c.Manifest.ID, err)
	}
	return w.merged(m)
}

// PutInput implements store.InputSink.
func (w *Writer) PutInput(ctx context.Context, id store.Digest, content []byte) error {
	in, err := store.ParseInput(id, content)
	if err != nil {
		return err
	}
	for i := range in.Sources {
		if s := &in.Sources[i]; s.Kind == 0 {
			if _, err := in.Blob(nil, s); err != nil {
				return err
			}
		}
	}
	return w.putInput(&store.NewInput{ID: id, Parts: [][]byte{content}, Size: in.Size}, in)
}

// MergeObject implements store.InputSink. A source that is not in its input is damage.
func (w *Writer) MergeObject(ctx context.Context, m *store.Manifest) error {
	c := store.Contribution{Manifest: *m}
	c.Manifest.Sources = nil
	err := errors.Join(store.CheckContribution(&c), ctx.Err())
	for i := range m.Sources {
		s := &m.Sources[i]
		err = errors.Join(err, s.Check(), w.inputs.has(s.Input, s))
		if s.RawSize > 0 {
			err = errors.Join(err, w.inputs.has(s.RawInput, s))
		}
	}
	if err == nil {
		err = w.merge(m, nil)
	}
	if err != nil {
		return fmt.Errorf("object %s: %w", m.ID, err)
	}
	return w.merged(m)
}

// merged notes that an object was merged, and publishes periodically.
func (w *Writer) merged(m *store.Manifest) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.objects == nil {
		w.objects = make(map[buildid.ID]bool)
	}
	if !m.IsAlias() {
		w.objects[m.ID] = true
	}
	return w.publishPeriodically()
}

// merge writes the input of a manifest, if the object needs it and it is not nil, and then the facts.
// The input is written without the lock, so that several are at a time.
func (w *Writer) merge(m *store.Manifest, in *store.NewInput) error {
	needed, err := w.mergeFacts(m, in)
	if err != nil || !needed {
		return err
	}
	if err := w.writeInput(in); err != nil {
		return err
	}
	_, err = w.mergeFacts(m, nil)
	return err
}

// writeInput writes an input, unless the disk is too full.
func (w *Writer) writeInput(in *store.NewInput) error {
	w.writing.Lock()
	err := w.roomFor(in.Size)
	if !w.written[in.ID] {
		w.written[in.ID] = false
	}
	w.writing.Unlock()
	if err != nil {
		return err
	}
	return w.inputs.put(in)
}

// mergeFacts joins a manifest with the object and writes facts if that changes something. needed
// is true if the input must be written before, which is not nil then: it has written nothing.
func (w *Writer) mergeFacts(m *store.Manifest, in *store.NewInput) (needed bool, err error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.open(); err != nil {
		return false, err
	}
	old, err := w.manifest(manifestKey(m.ID))
	if skip := skipLost(err); skip != nil {
		return false, skip
	}
	fresh := err != nil
	if fresh { // also a manifest that cannot be read
		old = &store.Manifest{ID: m.ID}
	}
	next := store.MergeStored(old, m)
	if err := store.CheckSources(old, m); err != nil {
		return false, err
	}
	if err := store.CheckBlobs(store.NewVariants(next.Variants, old.Variants), w.hasBlob); err != nil {
		return false, err
	}
	if in != nil && names(&next, in.ID) && !names(old, in.ID) {
		return true, nil
	}
	text := store.AppendStored(nil, &next)
	if n := len(text); n > store.MaxManifest {
		return false, fmt.Errorf("manifest: %w: %d bytes, at most %d", store.ErrTooLarge, n, store.MaxManifest)
	}
	if !fresh && bytes.Equal(text, store.AppendStored(nil, old)) {
		return false, nil
	}
	record := *m
	record.Sources = nil
	for i := range m.Sources {
		record.Sources = append(record.Sources, next.Sources[store.FindSource(next.Sources, &m.Sources[i])])
	}
	record.Inputs(func(id digest) {
		if !names(old, id) {
			w.written[id] = true
		}
	})
	return false, w.write(prefixManifest, store.AppendStored(nil, &record))
}

// names reports whether a manifest names an input.
func names(m *store.Manifest, id digest) (found bool) {
	m.Inputs(func(d digest) { found = found || d == id })
	return found
}

// open refuses a closed writer; the caller holds writing.
func (w *Writer) open() error {
	if w.state == nil {
		return fmt.Errorf("%s: %w", w.path, store.ErrClosed)
	}
	return nil
}

// write writes a record and applies it; the caller holds writing.
func (w *Writer) write(kind byte, payload ...[]byte) error {
	size := 0
	for _, b := range payload {
		size += len(b)
	}
	if err := w.roomFor(int64(size)); err != nil {
		return err
	}
	if w.facts == nil {
		f, err := newFacts(w.path, head{})
		if err != nil {
			return err
		}
		w.facts = f
	}
	w.dirty = true
	err := w.facts.add(kind, payload...)
	if err == nil && kind != prefixDir { // path rows can wait for the next one
		err = w.facts.flush()
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.apply(kind, slices.Concat(payload...))
}

// PutBlob implements Sink.
func (w *Writer) PutBlob(_ context.Context, data []byte) (store.BlobID, error) {
	if err := store.CheckBlob(data); err != nil {
		return store.BlobID{}, err
	}
	id := store.NewBlobID(data)
	_, err := w.Blob(id)
	if err == nil || skipLost(err) != nil {
		return id, err // whole, so it is the same
	}
	in := store.EncodeInput([]store.NewSource{store.BlobSource(id, data)})
	return id, w.putInput(in, &store.Input{Sources: []store.InputSource{{Digest: id}}})
}

// putInput writes an input and notes the blobs in it.
func (w *Writer) putInput(in *store.NewInput, dir *store.Input) error {
	if err := w.writeInput(in); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.open(); err != nil {
		return err
	}
	record := blobRecord(in.ID, in.Size)
	for i := range dir.Sources {
		if dir.Sources[i].Kind != 0 {
			continue
		}
		id := store.BlobID(dir.Sources[i].Digest)
		w.written[in.ID] = true
		if old, err := w.get(blobKey(id)); err == nil && bytes.Equal(old, record) {
			continue
		}
		if err := w.write(prefixBlob, id[:], record); err != nil {
			return err
		}
	}
	return nil
}

// Note notes the manifest of a bucket that was pulled, by its name there.
func (w *Writer) Note(sum store.Digest) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.open(); err != nil {
		return err
	}
	return w.write(prefixNote, sum[:])
}

// PutDir implements Sink. The Writer's own methods see the rows at once, but they survive the end of
// the process only with the next contribution, or after Publish or Close.
func (w *Writer) PutDir(dir string, rows store.DirRows) error {
	if err := store.CheckDir(dir, rows); err != nil {
		return err
	}
	var text []byte
	if len(rows) > 0 {
		var err error
		if text, err = store.EncodeRows(slices.Clone(rows).Sort()); err != nil {
			return fmt.Errorf("directory %s: %w", dir, err)
		}
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.open(); err != nil {
		return err
	}
	var have []byte
	if old, err := w.get(dirKey(dir)); err == nil {
		_, have, err = rowsAt(old)
		if err == nil && bytes.Equal(have, text) {
			return nil
		}
	} else if errors.Is(err, store.ErrNotFound) && text == nil {
		return nil
	} else if skip := skipLost(err); skip != nil {
		return skip
	}
	return w.write(prefixDir, dirRecord(dir, w.state.level+1, text)...)
}

// finish makes the facts written so far durable; the caller holds writing.
func (w *Writer) finish() error {
	if w.facts == nil {
		return nil
	}
	if err := w.syncInputs(); err != nil {
		return err
	}
	facts := w.facts
	w.facts = nil // on an error the next writer adopts what is there
	if err := facts.finish(); err != nil {
		return err
	}
	w.finished = append(w.finished, facts)
	return nil
}

// commit makes finished facts count.
func (w *Writer) commit() error {
	for len(w.finished) > 0 {
		facts := w.finished[0]
		if err := facts.commit(); err != nil {
			return err
		}
		w.finished = w.finished[1:]
		w.mu.Lock()
		w.state.facts[facts.id] = true
		w.mu.Unlock()
	}
	return nil
}

// syncInputs syncs the inputs that were written since the last commit and that facts name.
func (w *Writer) syncInputs() error {
	named := make(map[digest]bool)
	for id, is := range w.written {
		if !is {
			continue
		}
		if named[id] = true; !w.locked { // another writer may have collected it
			if err := w.returnInput(id); err != nil {
				return err
			}
		}
	}
	if err := w.inputs.sync(named); err != nil {
		return err
	}
	maps.DeleteFunc(w.written, func(_ digest, is bool) bool { return is })
	return nil
}

// Publish makes all that was written so far a generation, which readers that open the store from
// now on see. It does nothing if nothing was written.
func (w *Writer) Publish() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.open(); err != nil {
		return err
	}
	return w.publish()
}

// publishPeriodically publishes if it is time to, at a bounded share of the run, or if much is in
// memory.
func (w *Writer) publishPeriodically() error {
	every := w.opts.PublishEvery
	if every == 0 {
		every = DefaultPublishEvery
	}
	due := every >= 0 && time.Since(w.publishedAt) >= max(every, publishShare*w.publishTook)
	if w.state == nil || !due && w.state.extra.size < max(maxExtra, w.state.size()/4) {
		return nil
	}
	return w.publish()
}

// publish writes a generation, and commits once that is on disk, so that a full disk leaves no half of
// a run; the caller holds writing.
func (w *Writer) publish() error {
	start := time.Now()
	if !w.dirty && w.gen > 0 {
		w.publishedAt = start
		return nil
	}
	if err := w.finish(); err != nil {
		return fmt.Errorf("writing to %s: %w", w.path, err)
	}
	x, err := newIndex(w.path, "")
	if err != nil {
		return fmt.Errorf("publishing %s: %w", w.path, err)
	}
	if err := w.state.copyTo(x); err != nil {
		return errors.Join(fmt.Errorf("publishing %s: %w", w.path, err), x.discard())
	}
	info := w.state.indexInfo
	info.facts = maps.Clone(info.facts)
	for _, facts := range w.finished {
		info.facts[facts.id] = true
	}
	if err := w.seal(x, info, w.commit); err != nil {
		return fmt.Errorf("publishing %s: %w", w.path, err)
	}
	if err := removeOld(w.path, keptGenerations); err != nil {
		return err
	}
	w.publishedAt = time.Now()
	w.publishTook = w.publishedAt.Sub(start)
	return nil
}

// seal commits facts, publishes their index, and goes on with it.
func (w *Writer) seal(index *indexWriter, info indexInfo, commit func() error) error {
	if err := index.close(info); err != nil {
		return err
	}
	if err := commit(); err != nil {
		return errors.Join(err, os.RemoveAll(index.dir))
	}
	gen, err := index.publish()
	if err != nil {
		return err
	}
	s, err := openGeneration(w.path, gen, &w.log)
	if err != nil {
		return err
	}
	w.gen, w.dirty = gen, false
	return w.swap(s)
}

// Generation returns the number of the newest generation; 0 if there is none.
func (w *Writer) Generation() uint64 {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.gen
}

// Close publishes the written data and releases the lock. Only after it returned nil is everything
// on disk. A second Close does nothing.
func (w *Writer) Close() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.lock == nil {
		return nil
	}
	var err error
	if w.state != nil {
		if err = w.publish(); err == nil && len(w.state.facts) > maxFacts {
			err = w.tidy()
		}
	}
	if w.facts != nil { // what could not be committed the next writer adopts
		err = errors.Join(err, w.facts.flush(), w.facts.f.Close())
		w.facts = nil
	}
	if err == nil {
		w.markMerged()
	}
	err = errors.Join(err, w.shut(), releaseLock(w.lock))
	w.lock = nil
	return err
}

// Verify is Reader's, over the data written so far.
func (w *Writer) Verify(ctx context.Context) (*VerifyResult, error) {
	w.writing.Lock()
	err := error(nil)
	if w.state != nil {
		err = errors.Join(w.finish(), w.commit())
	}
	w.writing.Unlock()
	if err != nil {
		return nil, err
	}
	return w.database.Verify(ctx)
}

// size returns the bytes of the generation's files.
func (s *state) size() (n int64) {
	for _, f := range s.files {
		n += f.size
	}
	return n
}
