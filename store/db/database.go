package db

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"symbolize/buildid"
	"symbolize/store"
	"symbolize/store/calltab"
	"symbolize/store/symtab"
	"symbolize/store/typetab"
	"symbolize/store/unwindtab"
)

// database is a store as Reader and Writer share it.
type database struct {
	path   string
	log    logSink
	inputs inputFiles

	mu    sync.RWMutex
	state *state // nil when closed
}

// view runs fn on the state.
func (d *database) view(fn func(s *state) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.state == nil {
		return fmt.Errorf("%s: %w", d.path, store.ErrClosed)
	}
	return fn(d.state)
}

// swap sets another state and closes the one before.
func (d *database) swap(s *state) error {
	d.mu.Lock()
	old := d.state
	d.state = s
	d.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.close()
}

// shut closes all.
func (d *database) shut() error { return errors.Join(d.swap(nil), d.inputs.close()) }

// get returns the payload of a key, which must not be changed.
func (d *database) get(key []byte) (payload []byte, err error) {
	err = d.view(func(s *state) error {
		payload, err = s.get(key)
		return err
	})
	return payload, err
}

// scan visits all keys with a prefix, in order. The database is not locked while the loop body
// runs, and may change under it: every page is a snapshot of its own.
func (d *database) scan(prefix byte) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for e, err := range d.scanAll([]byte{prefix}) {
			if !yield(e, err) {
				return
			}
		}
	}
}

func (d *database) scanAll(prefix []byte) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		from := bytes.Clone(prefix)
		for {
			var page []entry
			err := d.view(func(s *state) (err error) {
				page, err = s.page(prefix, from)
				return err
			})
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
	for e, err := range d.scanAll(objPrefix([]byte{prefixManifest}, id)) {
		if err != nil {
			return nil, err
		}
		m, err := e.manifest()
		if err != nil {
			return nil, err
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
	return entry{key, payload, err}.manifest()
}

// manifest decodes the manifest of an entry.
func (e entry) manifest() (*store.Manifest, error) {
	if e.err != nil {
		return nil, e.err
	}
	m, err := store.DecodeStored("manifest", e.payload)
	if err != nil { // the key's text is as much garbage as the manifest
		_, err = store.DecodeStored("manifest "+keyText(e.key), e.payload)
	}
	return m, err
}

// Open implements View.
func (d *database) Open(m *store.Manifest, i int) (*symtab.Table, error) {
	return openIn(d, m, i, symtab.Open)
}

// OpenUnwind implements View.
func (d *database) OpenUnwind(m *store.Manifest, i int) (*unwindtab.Table, error) {
	return openIn(d, m, i, unwindtab.Open)
}

// OpenCalls implements View.
func (d *database) OpenCalls(m *store.Manifest, i int) (*calltab.Table, error) {
	return openIn(d, m, i, calltab.Open)
}

// OpenTypes implements View.
func (d *database) OpenTypes(m *store.Manifest, i int) (*typetab.Table, error) {
	return openIn(d, m, i, typetab.Open)
}

func openIn[T any](d *database, m *store.Manifest, i int,
	open func(header []byte, blocks symtab.Blocks) (*T, error)) (t *T, err error) {
	err = d.view(func(*state) error {
		info, err := d.located(m, i)
		if err == nil {
			t, err = openTable(&d.inputs, m.ID, info, open)
		}
		return err
	})
	return t, err
}

// located returns m.Sources[i] with where it is: a manifest of another view may lack that.
func (d *database) located(m *store.Manifest, i int) (*store.SourceInfo, error) {
	info := &m.Sources[i]
	if info.Input != (digest{}) {
		return info, nil
	}
	payload, err := d.state.get(manifestKey(m.ID))
	own, err := entry{manifestKey(m.ID), payload, err}.manifest()
	if err != nil {
		return nil, err
	}
	if at := store.FindSource(own.Sources, info); at >= 0 {
		return &own.Sources[at], nil
	}
	return nil, fmt.Errorf("%s of %s: %w", info.Kind, m.ID, store.ErrNotFound)
}

// Raw returns the captured input of m.Sources[i]; nil if none was kept.
func (d *database) Raw(m *store.Manifest, i int) (raw []byte, err error) {
	info := &m.Sources[i]
	if info.RawSize == 0 {
		return nil, nil
	}
	err = d.view(func(*state) error {
		raw, err = d.inputs.raw(info.RawInput, info.Kind, info.Digest)
		if err == nil && uint64(len(raw)) != info.RawSize {
			err = store.Damagef("%d bytes of %d", len(raw), info.RawSize)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("captured input of %s: %w", m.ID, err)
	}
	return raw, nil
}

// Blob implements View.
func (d *database) Blob(id store.BlobID) (data []byte, err error) {
	err = d.view(func(s *state) error {
		record, err := s.get(blobKey(id))
		if err != nil {
			return err
		}
		input, _, err := parseBlobRecord(record)
		if err == nil {
			data, err = d.inputs.raw(input, 0, id)
		}
		return err
	})
	if err == nil && store.NewBlobID(data) != id {
		err = store.Damagef("it has the content of another")
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", id, err)
	}
	return data, nil
}

// hasBlob reports whether a blob is known.
func (d *database) hasBlob(id store.BlobID) (bool, error) {
	_, err := d.get(blobKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, skipDamage(err)
}

// Noted reports whether a manifest of a bucket was pulled, see Writer.Note.
func (d *database) Noted(sum store.Digest) bool {
	_, err := d.get(noteKey(sum))
	return err == nil
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
	rows, err := entry{dirKey(dir), payload, err}.rows()
	return rows, len(rows) > 0, err
}

// rows decodes the path rows of an entry.
func (e entry) rows() (store.DirRows, error) {
	if e.err != nil {
		return nil, e.err
	}
	_, text, err := rowsAt(e.payload)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	rows, err := store.DecodeRows("path rows of "+string(e.key[1:]), text)
	if err != nil {
		return nil, store.Damagef("%v", err)
	}
	return rows, nil
}

// Objects visits all manifests, sorted by key. One that cannot be read gives an error that wraps
// ErrDamaged, and the loop may go on.
func (d *database) Objects() iter.Seq2[*store.Manifest, error] {
	return func(yield func(*store.Manifest, error) bool) {
		for e, err := range d.scan(prefixManifest) {
			var m *store.Manifest
			if err == nil {
				m, err = e.manifest()
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// Directory is the path rows of one directory.
type Directory struct {
	Path  string
	Rows  store.DirRows
	level uint64
}

// Dirs visits the path rows of all directories, sorted by path. Rows that cannot be read give an
// error that wraps ErrDamaged beside the path, and the loop may go on.
func (d *database) Dirs() iter.Seq2[Directory, error] {
	return func(yield func(Directory, error) bool) {
		for e, err := range d.scan(prefixDir) {
			var dir Directory
			if err == nil {
				dir.Path = string(e.key[1:])
				dir.level, _, _ = rowsAt(e.payload)
				dir.Rows, err = e.rows()
			}
			if (err != nil || len(dir.Rows) > 0) && !yield(dir, err) {
				return
			}
		}
	}
}

// Warnings returns the messages of the database since it was opened: not one of them stops
// anything.
func (d *database) Warnings() []string { return d.log.list() }

// Input returns the content of an input; one that is lost or damaged wraps store.ErrDamaged.
func (d *database) Input(id store.Digest) (b []byte, err error) {
	err = d.view(func(*state) error {
		f, err := d.inputs.open(id)
		if err != nil {
			return err
		}
		defer f.Close()
		if b, err = io.ReadAll(f); err != nil {
			return store.ReadFailure("input "+id.String(), err)
		}
		if sha256.Sum256(b) != id {
			return store.Damagef("input %s: its content is another's", id)
		}
		return nil
	})
	return b, err
}

// InputSize returns the size of an input in bytes.
func (d *database) InputSize(id store.Digest) (n int64, err error) {
	err = d.view(func(*state) error {
		f, err := d.inputs.open(id)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil {
			n = info.Size()
		}
		return err
	})
	return n, err
}

// BlobInput returns the input that a blob is kept in.
func (d *database) BlobInput(id store.BlobID) (in store.Digest, err error) {
	record, err := d.get(blobKey(id))
	if err == nil {
		in, _, err = parseBlobRecord(record)
	}
	if err != nil {
		return in, fmt.Errorf("blob %s: %w", id, err)
	}
	return in, nil
}
