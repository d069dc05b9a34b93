package db

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/store"
	"symbolize/store/symtab"
	"symbolize/store/unwindtab"
)

// database is an open Badger database, as Reader and Writer share it. The Writer closes and opens
// it again when it publishes; mu keeps readers out then.
type database struct {
	path string // of the store, for messages
	log  logSink
	// passedOver is why each newer generation was not opened.
	passedOver []string

	mu sync.RWMutex
	db *badger.DB // nil when closed
}

// view runs fn in a read transaction. Badger panics on some damage: that comes back as ErrDamaged.
func (d *database) view(fn func(txn *badger.Txn) error) (err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.db == nil {
		return fmt.Errorf("%s: %w", d.path, store.ErrClosed)
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.leaked.Store(true) // the lock of a log that was being read, if it was a log
			err = store.Damagef("%s: %v", d.path, p)
		}
	}()
	return d.db.View(fn)
}

// shut closes the database; the caller holds d.mu or is the only user of d. After damage that made
// Badger leak a lock, Badger's Close would block for ever: then the database stays open until the
// process ends, and the error wraps ErrDamaged.
func (d *database) shut() error {
	db := d.db
	d.db = nil
	if db == nil {
		return nil
	}
	if d.log.leaked.Load() {
		return store.Damagef("%s: the database cannot be closed after what was read", d.path)
	}
	return db.Close()
}

// get returns the payload of a key, in memory of its own. A missing key gives
// ErrNotFound.
func (d *database) get(key []byte) ([]byte, error) {
	var buf []byte
	return d.getInto(key, &buf)
}

// getInto is get with the payload in buf's memory, which grows as needed.
func (d *database) getInto(key []byte, buf *[]byte) (payload []byte, err error) {
	err = d.view(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return store.ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("key %s: %w", keyText(key), err)
		}
		if *buf, err = item.ValueCopy(*buf); err != nil {
			return readFailure("key "+keyText(key), err)
		}
		payload, err = unseal(key, *buf)
		return err
	})
	return payload, err
}

// readFailure returns the error of something that could not be read: damage, unless this machine failed
// to read it, which it may not the next time.
func readFailure(what string, err error) error {
	if files.OfMachine(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return store.Damagef("%s: %v", what, err)
}

// entry is one key of a scan. payload is nil for scans of keys, or err is why the value could not
// be read.
type entry struct {
	key, payload []byte
	err          error
}

// Pages of a scan end at whichever comes first.
const (
	pageKeys  = 1024
	pageBytes = 1 << 20
)

// scan visits all keys with a prefix, in order. The database is not locked while the loop body
// runs, and may change under it: every page is a snapshot of its own.
func (d *database) scan(prefix []byte, values bool) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		from := bytes.Clone(prefix)
		for {
			page, err := d.page(prefix, from, values)
			if err != nil {
				yield(entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
			from = append(bytes.Clone(page[len(page)-1].key), 0)
		}
	}
}

// page reads keys with a prefix, beginning at from.
func (d *database) page(prefix, from []byte, values bool) (page []entry, err error) {
	size := 0
	err = d.view(func(txn *badger.Txn) error {
		opts := badger.IteratorOptions{Prefix: prefix}
		it := txn.NewIterator(opts)
		defer it.Close()
		for it.Seek(from); it.Valid() && len(page) < pageKeys && size < pageBytes; it.Next() {
			e := entry{key: it.Item().KeyCopy(nil)}
			if values {
				var value []byte
				if value, e.err = it.Item().ValueCopy(nil); e.err != nil {
					e.err = readFailure("key "+keyText(e.key), e.err)
				} else {
					e.payload, e.err = unseal(e.key, value)
				}
				size += len(value)
			}
			size += len(e.key)
			page = append(page, e)
		}
		return nil
	})
	return page, err
}

// scanForeign visits the keys that do not begin with any of the known bytes; known is unsorted.
func (d *database) scanForeign(known []byte) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for first := range 256 {
			if bytes.IndexByte(known, byte(first)) >= 0 {
				continue
			}
			for e, err := range d.scan([]byte{byte(first)}, false) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// Find implements View.
func (d *database) Find(id buildid.ID) ([]*store.Manifest, error) {
	if id.IsZero() {
		return nil, nil
	}
	if id.Exact() {
		m, err := d.manifest(manifestKey(id))
		if err == nil {
			return store.Follow(m, d.Find)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if id.Len() < buildid.KeyLen {
			return nil, nil
		}
		// The ID may be the head of a longer one, or a longer one cut: both match.
	}
	var found []*store.Manifest
	for e, err := range d.scan(objPrefix([]byte{prefixManifest}, id), true) {
		if err == nil {
			err = e.err
		}
		if err != nil {
			return nil, err
		}
		m, err := store.DecodeManifest("manifest "+keyText(e.key), e.payload)
		if err != nil {
			return nil, store.Damagef("%v", err)
		}
		if m.ID.Matches(id) {
			found = append(found, m)
		}
	}
	return found, nil
}

// manifest reads one manifest.
func (d *database) manifest(key []byte) (*store.Manifest, error) {
	payload, err := d.get(key)
	if err != nil {
		return nil, err
	}
	m, err := store.DecodeManifest("manifest "+keyText(key), payload)
	if err != nil {
		return nil, store.Damagef("%v", err)
	}
	return m, nil
}

// blocks reads the blocks of one table.
type blocks struct {
	d      *database
	prefix []byte
	buf    []byte
}

// Block implements symtab.Blocks.
func (b *blocks) Block(kind symtab.BlockKind, i int) ([]byte, error) {
	if i < 0 || i >= store.MaxBlocks {
		return nil, store.Damagef("%s %d of a table", kind, i)
	}
	payload, err := b.d.getInto(tableKey(b.prefix, partOf(kind), uint32(i)), &b.buf)
	if errors.Is(err, store.ErrNotFound) {
		return nil, store.Damagef("%s %d of a table is lost", kind, i)
	}
	return payload, err
}

// Open implements View.
func (d *database) Open(m *store.Manifest, i int) (*symtab.Table, error) {
	return openTable(d, m, i, symtab.Open)
}

// OpenUnwind implements View.
func (d *database) OpenUnwind(m *store.Manifest, i int) (*unwindtab.Table, error) {
	return openTable(d, m, i, unwindtab.Open)
}

// openTable opens the table of a source.
func openTable[T any](d *database, m *store.Manifest, i int,
	open func(header []byte, blocks symtab.Blocks) (*T, error)) (*T, error) {
	info := &m.Sources[i]
	b := &blocks{d: d, prefix: sourcePrefix(prefixTable, m.ID, info)}
	header, err := d.get(tableKey(b.prefix, partHeader, 0))
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", info.Kind, m.ID, err)
	}
	t, err := open(header, b)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", info.Kind, m.ID, err)
	}
	return t, nil
}

// Raw returns the captured input of m.Sources[i]; nil if none was kept.
func (d *database) Raw(m *store.Manifest, i int) ([]byte, error) {
	info := &m.Sources[i]
	if info.RawSize == 0 {
		return nil, nil
	}
	prefix := sourcePrefix(prefixRaw, m.ID, info)
	var raw []byte
	for piece := range info.RawPieces {
		payload, err := d.get(rawKey(prefix, piece))
		if err != nil {
			return nil, fmt.Errorf("captured input of %s: %w", m.ID, err)
		}
		left := info.RawSize - uint64(len(raw))
		part, err := store.Decompress(payload, min(left, store.RawPiece))
		if err != nil {
			return nil, store.Damagef("captured input of %s: %v", m.ID, err)
		}
		raw = append(raw, part...)
	}
	if uint64(len(raw)) != info.RawSize {
		return nil, store.Damagef("captured input of %s: %d bytes of %d", m.ID, len(raw), info.RawSize)
	}
	return raw, nil
}

// Dir implements View.
func (d *database) Dir(dir string) (store.DirRows, bool, error) {
	if len(dir) == 0 || len(dir) > store.MaxPath {
		return nil, false, nil
	}
	payload, err := d.get(dirKey(dir))
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	rows, err := store.DecodeRows("path rows of "+dir, payload)
	if err != nil {
		return nil, false, store.Damagef("%v", err)
	}
	return rows, true, nil
}

// Objects visits all manifests, sorted by key. One that cannot be read gives an error that wraps
// ErrDamaged, and the loop may go on.
func (d *database) Objects() iter.Seq2[*store.Manifest, error] {
	return func(yield func(*store.Manifest, error) bool) {
		for e, err := range d.scan([]byte{prefixManifest}, true) {
			var m *store.Manifest
			if err == nil {
				if err = e.err; err == nil {
					m, err = store.DecodeManifest("manifest "+keyText(e.key), e.payload)
					if err != nil {
						err = store.Damagef("%v", err)
					}
				}
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// Directory is the path rows of one directory.
type Directory struct {
	Path string
	Rows store.DirRows
}

// Dirs visits the path rows of all directories, sorted by path. Rows that cannot be read give an
// error that wraps ErrDamaged beside the path, and the loop may go on.
func (d *database) Dirs() iter.Seq2[Directory, error] {
	return func(yield func(Directory, error) bool) {
		for e, err := range d.scan([]byte{prefixDir}, true) {
			var dir Directory
			if err == nil {
				dir.Path = string(e.key[1:])
				if err = e.err; err == nil {
					dir.Rows, err = store.DecodeRows("path rows of "+dir.Path, e.payload)
					if err != nil {
						err = store.Damagef("%v", err)
					}
				}
			}
			if !yield(dir, err) {
				return
			}
		}
	}
}

// Warnings returns the messages of the database since it was opened: not one of them stops
// anything.
func (d *database) Warnings() []string { return d.log.list() }

// EachPart calls put with the parts of m.Sources[i], one at a time, in the order that
// store.Assembly needs. put may keep its argument.
func (d *database) EachPart(m *store.Manifest, i int, put func(name string, b []byte) error) error {
	info := &m.Sources[i]
	prefix := sourcePrefix(prefixTable, m.ID, info)
	copyPart := func(name string, part byte, i uint32) error {
		b, err := d.get(tableKey(prefix, part, i))
		if err != nil {
			return fmt.Errorf("%s of %s: %w", info.Kind, m.ID, err)
		}
		return put(name, b)
	}
	if err := copyPart(store.PartTable, partHeader, 0); err != nil {
		return err
	}
	for i := range info.Chunks {
		if err := copyPart(store.PartChunk+strconv.Itoa(int(i)), partChunk, i); err != nil {
			return err
		}
	}
	for i := range info.Strings {
		if err := copyPart(store.PartStrings+strconv.Itoa(int(i)), partStrings, i); err != nil {
			return err
		}
	}
	raw, err := d.Raw(m, i)
	if err != nil || raw == nil {
		return err
	}
	return put(store.PartRaw, raw)
}
