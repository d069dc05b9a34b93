package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
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
	// Pulled marks generations that differ from the one before only by additional objects: see
	// Reader.Indexed.
	Pulled bool
}

// DefaultPublishEvery is the usual WriterOptions.PublishEvery.
const DefaultPublishEvery = 30 * time.Second

// publishShare bounds the cost of periodic publishing: one part in so many of a run.
const publishShare = 20

// Writer is a store opened for writing: a Sink, and a View of the written data. There is one at a
// time for a store, in all processes. Its methods may be called from several goroutines.
type Writer struct {
	*database
	opts WriterOptions
	lock *os.File

	journal *journal  // of db/; nil in a database that no other writer will resume
	from    uint64    // the generation that db/ was cloned from, 0 for none
	shared  []fileSum // its files

	// writing is held by all that changes the database or replaces it.
	writing     sync.Mutex
	space       *spaceGuard
	rows        *batch // path rows that are not committed yet
	dirty       bool   // something was written since the last generation
	gen         uint64
	publishedAt time.Time
	publishTook time.Duration
	merged      map[buildid.ID]bool // objects, for MarkUsed
}

// OpenWriter opens a store for writing and makes it if it is not there. It fails with a
// *LockedError if another process writes, with ErrVersion on a store of a newer schema, with
// ErrUnsafe on one that others can change and with ErrNoSpace on a full disk.
func OpenWriter(ctx context.Context, path string, opts WriterOptions) (*Writer, error) {
	if err := makeStore(path, opts.Shared); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := checkFormat(path); err != nil {
		return nil, err
	}
	lock, err := acquireLock(ctx, path, filepath.Join(path, lockName), opts)
	if err != nil {
		return nil, err
	}
	w := &Writer{database: &database{path: path}, opts: opts, lock: lock}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(err, releaseLock(lock))
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
	err := errors.Join(files.MakeDirs(path, files.SyncDir), trust(path))
	if err == nil {
		err = files.CheckDirs(path, gensName)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(path, gensName), 0o755)
	}
	return err
}

// checkFormat refuses a store of a newer schema.
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

// start does the work that needs the lock: clears up after killed runs, opens db/ and repeats
// their work.
func (w *Writer) start(ctx context.Context) error {
	if err := files.CheckDirs(w.path, gensName, liveName, leftName, asideName,
		usesName); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := errors.Join(removeLeftovers(w.path), setLeft(w.path)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := w.writeFormat(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := w.open(); err != nil {
		return err
	}
	if err := w.takeLeft(ctx); err != nil {
		err = fmt.Errorf("store %s: taking up an interrupted run's work: %w", w.path, err)
		return errors.Join(err, w.shut())
	}
	gens, err := generations(w.path)
	if err != nil {
		return errors.Join(err, w.shut())
	}
	if len(gens) > 0 {
		w.gen = gens[0]
	}
	w.publishedAt = time.Now()
	w.opts.Pulled = w.opts.Pulled && !w.dirty // else it is a killed writer's work, too
	return nil
}

// writeFormat records the schema of the store before data of that schema is written: an older
// program must not continue the work of a killed one in db/.
func (w *Writer) writeFormat() error {
	format := filepath.Join(w.path, formatName)
	text := []byte(formatText(store.SchemaVersion))
	have, err := readLimited(format, 4<<10)
	if err == nil && bytes.Equal(have, text) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp := filepath.Join(w.path, tmpPrefix+formatName)
	return errors.Join(files.WriteSynced(tmp, text), os.Rename(tmp, format))
}

// open makes db/ ready and opens it. The caller holds mu, or is alone.
func (w *Writer) open() error {
	dir := filepath.Join(w.path, liveName)
	guard := newSpaceGuard(dir)
	if err := w.roomToOpen(guard); err != nil {
		return err
	}
	j, shared, err := prepareLive(w.path, w.log.warn)
	if err != nil {
		return fmt.Errorf("store %s: %w", w.path, err)
	}
	guard.tables = tableBytes(dir)
	db, err := openBadger(badgerOptions(dir, false, &w.log))
	if err != nil {
		return errors.Join(fmt.Errorf("store %s: %w", w.path, err), j.close())
	}
	w.log.leaked.Store(false)
	w.db, w.space, w.journal, w.from, w.shared = db, guard, j, j.from.gen, shared
	return nil
}

// shut closes the database and its journal.
func (w *Writer) shut() error {
	err := errors.Join(w.database.shut(), w.journal.close())
	w.journal = nil
	return err
}

// roomToOpen makes sure that a copy of the tables can be written.
func (w *Writer) roomToOpen(guard *spaceGuard) error {
	need := int64(spaceSlack)
	if gens, err := generations(w.path); err == nil && len(gens) > 0 {
		need += 2 * tableBytes(genDir(w.path, gens[0]))
	}
	free, err := guard.free(w.path)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", w.path, err)
	}
	if free < need {
		return fmt.Errorf("%w: %s: %d MiB free, %d MiB needed to open it", store.ErrNoSpace, w.path,
			free>>20, (need+1<<20-1)>>20)
	}
	return nil
}

// Merge implements Sink.
func (w *Writer) Merge(ctx context.Context, c *store.Contribution) error {
	if err := store.CheckContribution(c); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.db == nil {
		return fmt.Errorf("%s: %w", w.path, store.ErrClosed)
	}
	if err := w.merge(ctx, c); err != nil {
		return fmt.Errorf("object %s: %w", c.Manifest.ID, err)
	}
	if w.merged == nil {
		w.merged = make(map[buildid.ID]bool)
	}
	if !c.Manifest.IsAlias() {
		w.merged[c.Manifest.ID] = true
	}
	return w.publishPeriodically()
}

func (w *Writer) merge(ctx context.Context, c *store.Contribution) error {
	key := manifestKey(c.Manifest.ID)
	old, err := w.manifest(key)
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	fresh := err != nil // a manifest that cannot be read is written anew
	if fresh {
		old = &store.Manifest{ID: c.Manifest.ID}
	}
	next := store.MergeFacts(old, &c.Manifest)
	if err := store.CheckBlobs(store.NewVariants(next.Variants, old.Variants), w.hasBlob); err != nil {
		return err
	}
	sources, changes, err := store.MergeSources(old.Sources, c)
	if err != nil {
		return err
	}
	next.Sources = sources
	return w.write(ctx, key, old, &next, changes, fresh)
}

// write stores the changed sources and then the manifest that names them.
func (w *Writer) write(ctx context.Context, key []byte, old, next *store.Manifest,
	changes []store.SourceChange, fresh bool) error {
	b := &batch{ctx: ctx, w: w}
	if err := b.withdraw(key, old, changes); err != nil {
		return err
	}
	if err := b.putSources(next, changes); err != nil {
		return err
	}
	text := store.EncodeManifest(next)
	if len(text) > store.MaxManifest {
		return fmt.Errorf("manifest: %w: %d bytes, at most %d", store.ErrTooLarge, len(text), store.MaxManifest)
	}
	if !fresh && len(changes) == 0 && bytes.Equal(text, store.EncodeManifest(old)) {
		return nil
	}
	if err := b.put(key, text); err != nil {
		return err
	}
	return b.commit()
}

// withdraw removes sources from the manifest before their parts are overwritten, so that the
// manifest never names a table that is half old and half new.
func (b *batch) withdraw(key []byte, old *store.Manifest, changes []store.SourceChange) error {
	without := old.Clone()
	for _, ch := range changes {
		if ch.Old.Kind == 0 {
			continue
		}
		if at := store.FindSource(without.Sources, &ch.Old); at >= 0 {
			without.Sources = slices.Delete(without.Sources, at, at+1)
		}
	}
	if len(without.Sources) == len(old.Sources) {
		return nil
	}
	return b.put(key, store.EncodeManifest(without))
}

// PutDir implements Sink. Rows are gathered into large transactions: the Writer's own methods see
// the rows of the last directories at once, but they survive a crash only when a transaction is
// full, or after Publish or Close.
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
	if w.db == nil {
		return fmt.Errorf("%s: %w", w.path, store.ErrClosed)
	}
	if w.rows == nil {
		w.rows = &batch{ctx: context.Background(), w: w}
	}
	key := dirKey(dir)
	if text == nil {
		return w.rows.remove(key)
	}
	return w.rows.put(key, text)
}

// flushRows commits the path rows gathered so far; the caller holds writing.
func (w *Writer) flushRows() error {
	if w.rows == nil || w.db == nil {
		return nil
	}
	return w.rows.commit()
}

// flushed is flushRows for methods that read.
func (w *Writer) flushed() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.flushRows()
}

// Dir implements View.
func (w *Writer) Dir(dir string) (store.DirRows, bool, error) {
	if err := w.flushed(); err != nil {
		return nil, false, err
	}
	return w.database.Dir(dir)
}

// Dirs visits the path rows of all directories, sorted by path, as Reader's does.
func (w *Writer) Dirs() iter.Seq2[Directory, error] {
	return func(yield func(Directory, error) bool) {
		if err := w.flushed(); err != nil {
			yield(Directory{}, err)
			return
		}
		w.database.Dirs()(yield)
	}
}

// Verify is Reader's, over the data written so far.
func (w *Writer) Verify(ctx context.Context) (*VerifyResult, error) {
	if err := w.flushed(); err != nil {
		return nil, err
	}
	return w.database.Verify(ctx)
}

// Stats is Reader's, over the data written so far.
func (w *Writer) Stats(ctx context.Context) (*Stats, error) {
	if err := w.flushed(); err != nil {
		return nil, err
	}
	return w.database.Stats(ctx)
}
