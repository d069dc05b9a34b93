package db

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/store"
)

// state is what a store has: a generation, and in memory the entries of facts that it lacks.
type state struct {
	root  string
	write bool       // the holder of the lock has opened it
	db    *badger.DB // nil if all is in memory
	dir   string     // of db
	gen   uint64     // that was opened; 0 if all facts were read

	shadow  string     // temporary directory, "" if none was needed
	spilled bool       // db is temporary, see spill
	base    *badger.DB // then of the generation, for its lock; nil without
	indexInfo
	extra   entries
	scanned atomic.Int64 // bytes of pages since the last call of files.ForgetMapped
	// passed is why each newer generation was passed over.
	passed []string
}

// entries are in memory; one counts instead of the generation's.
type entries struct {
	values map[string][]byte
	size   int64

	mu   sync.Mutex // of keys
	keys []string   // sorted; nil if it is to be made
}

func (e *entries) set(key string, payload []byte) {
	if e.values == nil {
		e.values = make(map[string][]byte)
	}
	old, ok := e.values[key]
	if e.size += int64(len(payload) - len(old)); !ok {
		e.size += int64(len(key)) + entryOverhead
		e.mu.Lock()
		e.keys = nil
		e.mu.Unlock()
	}
	e.values[key] = payload
}

// from returns the sorted keys that are not before a key.
func (e *entries) from(key []byte) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keys == nil && len(e.values) > 0 {
		e.keys = slices.Sorted(maps.Keys(e.values))
	}
	return e.keys[sort.SearchStrings(e.keys, string(key)):]
}

// openTries is how often a store is looked at again when a generation or facts were removed between
// being listed and being opened.
const openTries = 10

// load opens the newest sound generation with the facts that it lacks, or all facts. write is for the
// holder of the lock. It fails with store.ErrNoStore if nothing was ever published.
func load(root string, write bool, log *logSink) (*state, error) {
	var last error
	for range openTries {
		var s *state
		if s, last = loadOnce(root, write, log); last == nil {
			return s, nil
		}
		if !errors.Is(last, fs.ErrNotExist) {
			break
		}
	}
	return nil, last
}

func loadOnce(root string, write bool, log *logSink) (*state, error) {
	gens, err := generations(root)
	if err != nil {
		return nil, err
	}
	var passed []string
	for _, g := range gens {
		s, err := openGeneration(root, g, log)
		if err == nil {
			s.write = write
			if err = s.catchUp(write); err == nil {
				s.passed = passed
				return s, nil
			}
			err = errors.Join(err, s.close())
		}
		if errors.Is(err, errRemade) {
			break
		}
		if !errors.Is(err, store.ErrDamaged) {
			return nil, err
		}
		passed = append(passed, fmt.Sprintf("generation %d is passed over: %v", g, err))
	}
	s := &state{root: root, write: write, passed: passed}
	facts, err := s.readAll()
	switch {
	case err != nil:
		return nil, errors.Join(err, s.close())
	case facts == 0 && len(passed) > 0:
		return nil, store.Damagef("%s", passed[0])
	case facts == 0 && !write:
		return nil, fmt.Errorf("%w at %s", store.ErrNoStore, root)
	}
	return s, nil
}

// openGeneration opens the database of a generation.
func openGeneration(root string, gen uint64, log *logSink) (*state, error) {
	dir := genDir(root, gen)
	x, err := checkIndex(dir)
	if err != nil {
		return nil, err
	}
	s := &state{root: root, dir: dir, gen: gen, indexInfo: *x}
	if s.db, err = openBadger(badgerOptions(dir, true, log)); err == nil {
		return s, nil
	}
	if _, gone := os.Lstat(dir); gone != nil {
		return nil, gone
	}
	// Badger locks and syncs the directory, which some file systems refuse: give it one of links.
	var shadowErr error
	if s.shadow, shadowErr = makeShadow(dir, x.files); shadowErr == nil {
		if s.db, shadowErr = openBadger(badgerOptions(s.shadow, true, log)); shadowErr == nil {
			return s, nil
		}
		os.RemoveAll(s.shadow)
	}
	return nil, err
}

// makeShadow returns a temporary directory of symbolic links to the files of a generation.
func makeShadow(dir string, list []fileSum) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	tmp, err := makeTemp()
	if err != nil {
		return "", err
	}
	for _, s := range list {
		if err := os.Symlink(filepath.Join(abs, s.name), filepath.Join(tmp, s.name)); err != nil {
			os.RemoveAll(tmp)
			return "", err
		}
	}
	return tmp, nil
}

// makeTemp makes a directory outside of the store.
func makeTemp() (string, error) {
	return os.MkdirTemp("", "symbolize-store-"+strconv.Itoa(os.Getpid())+"-")
}

// close closes the database. A reader has nothing to lose: an error is about damage, which it
// reported before, or about the sync of a directory that is gone or that cannot be synced.
func (s *state) close() error {
	for _, db := range []*badger.DB{s.db, s.base} {
		if db != nil {
			db.Close()
		}
	}
	s.db, s.base = nil, nil
	var err error
	if s.spilled {
		err = os.RemoveAll(s.dir)
	}
	if s.shadow != "" {
		err = errors.Join(err, os.RemoveAll(s.shadow))
	}
	return err
}

// spill moves the entries in memory to a database, with those of the one before, when they are many.
// It is no generation: the writer makes one of it, and a reader needs no more.
func (s *state) spill() error {
	if s.extra.size < max(maxExtra, s.size()/4) {
		return nil
	}
	parent, dir := filepath.Join(s.root, gensName), ""
	var err error
	if s.write {
		dir, err = os.MkdirTemp(parent, tmpPrefix)
	} else if dir, err = makeTemp(); err == nil {
		parent = dir
	}
	if err == nil {
		err = newSpaceGuard(parent).need(spaceSlack + s.indexNeeds())
	}
	var x *indexWriter
	if err == nil {
		x, err = newIndex(s.root, dir)
	}
	if err != nil {
		if dir != "" {
			os.RemoveAll(dir)
		}
		if s.write {
			return spaceError(err)
		}
		return nil // a reader goes on in memory
	}
	if err := s.copyTo(x); err != nil {
		return errors.Join(err, x.discard())
	}
	if err := x.close(s.indexInfo); err != nil {
		return err
	}
	db, err := openBadger(badgerOptions(dir, true, new(logSink)))
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	old := &state{dir: s.dir, spilled: s.spilled}
	if s.base == nil && s.gen > 0 {
		s.base = s.db
	} else {
		old.db = s.db
	}
	s.db, s.dir, s.spilled, s.files, s.extra = db, dir, true, x.files, entries{}
	return old.close()
}

// copyTo writes all entries to an index.
func (s *state) copyTo(to *indexWriter) error {
	for from := []byte(nil); ; {
		page, err := s.page(nil, from)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if err := e.err; err != nil {
				return err
			}
			if err := to.put(e.key, e.payload); err != nil {
				return err
			}
		}
		from = append(bytes.Clone(page[len(page)-1].key), 0)
	}
}

// indexNeeds is how much space the index of all entries needs: its tables, and Badger's log of those that
// it has in memory.
func (s *state) indexNeeds() int64 {
	n := s.size() + s.extra.size
	return n + min(n, 2*memTableSize)
}

// stale reports whether the newest generation lacks something, or is damaged.
func (s *state) stale() bool {
	return s.gen == 0 && len(s.facts) > 0 || s.spilled || len(s.extra.values) > 0
}

// errRemade: the index is to be made again from all facts, because some replace those that it has.
var errRemade = errors.New("facts replace those of the index")

// catchUp reads the facts that the generation lacks. It returns errRemade to a writer that must read
// all facts instead, and an error that wraps store.ErrDamaged if the generation has facts that are
// not there.
func (s *state) catchUp(write bool) error {
	list, _, err := listFacts(s.root)
	if err != nil {
		return err
	}
	heads, replaced, err := s.headsOf(list, s.has)
	if err != nil {
		return err
	}
	for id := range s.facts {
		if !list[id] && !replaced[id] {
			return store.Damagef("its facts %s are not there", hexOf(id))
		}
	}
	for id, h := range heads {
		joins := len(h.replaced) > 0
		if joins && write {
			return errRemade
		}
		// A reader has in the generation what an interrupted collection has kept.
		if replaced[id] || joins && !slices.ContainsFunc(h.replaced, func(d digest) bool { return !s.has(d) }) {
			s.past[id] = true
			continue
		}
		if err := s.add(id); err != nil {
			return err
		}
	}
	s.retire(list, replaced)
	return nil
}

// headsOf reads the heads of facts, except those that skip accepts, and returns which they replace.
func (s *state) headsOf(list map[digest]bool, skip func(digest) bool) (heads map[digest]head,
	replaced map[digest]bool, err error) {
	heads, replaced = make(map[digest]head), make(map[digest]bool)
	for id := range list {
		if skip(id) {
			continue
		}
		h, err := headOf(s.root, id)
		if err != nil {
			return nil, nil, err
		}
		heads[id] = h
		for _, d := range h.replaced {
			replaced[d] = true
		}
	}
	return heads, replaced, nil
}

// readAll reads all facts into memory and returns how many files there were.
func (s *state) readAll() (int, error) {
	s.indexInfo = indexInfo{facts: make(map[digest]bool), past: make(map[digest]bool)}
	list, _, err := listFacts(s.root)
	if err != nil {
		return 0, err
	}
	heads, replaced, err := s.headsOf(list, func(digest) bool { return false })
	if err != nil {
		return 0, err
	}
	for id := range heads {
		if replaced[id] {
			continue
		}
		if err := s.add(id); err != nil {
			return 0, err
		}
	}
	s.retire(list, replaced)
	return len(list), nil
}

// retire notes which facts of a list others replace.
func (s *state) retire(list, replaced map[digest]bool) {
	for id := range replaced {
		s.past[id] = true
		delete(s.facts, id)
	}
	maps.DeleteFunc(s.past, func(id digest, _ bool) bool { return !list[id] && !replaced[id] })
}

// add applies the records of committed facts.
func (s *state) add(id digest) error {
	path := filepath.Join(s.root, factsName, id.String())
	_, sum, whole, err := readFacts(path, func(kind byte, payload []byte) error {
		if err := s.apply(kind, payload); err != nil {
			return err
		}
		return s.spill()
	})
	if err == nil && (!whole || sum != id) {
		err = store.Damagef("%s: it has the content of other facts", path)
	}
	if err == nil {
		s.facts[id] = true
	}
	return err
}

// apply joins a record with the entry of its key.
func (s *state) apply(kind byte, payload []byte) error {
	switch kind {
	case prefixManifest:
		m, err := store.DecodeStored("manifest of facts", payload)
		if err != nil {
			return err
		}
		return s.addManifest(m)
	case prefixDir:
		dir, value, err := parseDir(payload)
		if err != nil {
			return err
		}
		return s.addDir(dir, value)
	case prefixBlob:
		if len(payload) < len(store.BlobID{}) {
			return store.Damagef("blob record of %d bytes", len(payload))
		}
		id, record := store.BlobID(payload), payload[len(store.BlobID{}):]
		if _, _, err := parseBlobRecord(record); err != nil {
			return err
		}
		return s.addBlob(id, record)
	case prefixNote:
		if len(payload) != len(digest{}) {
			return store.Damagef("note of %d bytes", len(payload))
		}
		s.extra.set(string(noteKey(digest(payload))), nil)
		return nil
	}
	return store.Damagef("record of type %q", kind)
}

// addManifest joins facts about an object with those that are there.
func (s *state) addManifest(m *store.Manifest) error {
	key := manifestKey(m.ID)
	old, err := s.get(key)
	if skip := skipLost(err); skip != nil {
		return skip
	}
	all := store.MergeStored(m, m)
	if have, bad := store.DecodeStored("manifest", old); err == nil && bad == nil {
		all = store.MergeStored(have, m)
	}
	if text := store.AppendStored(nil, &all); err != nil || !bytes.Equal(text, old) {
		s.extra.set(string(key), text)
	}
	return nil
}

// skipLost returns err unless a value is missing or damaged: it is written anew.
func skipLost(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return skipDamage(err)
}

// parseDir splits the record of a directory into its name and the value in the index.
func parseDir(payload []byte) (dir string, value []byte, err error) {
	r := decode.New("path rows", payload, 0, false)
	dir = string(r.Bytes(store.Bounded(r, store.MaxPath)))
	value = r.Bytes(uint64(r.Left()))
	if r.Err() != nil || dir == "" {
		return "", nil, store.Damagef("record of a directory of %d bytes", len(payload))
	}
	_, _, err = rowsAt(value)
	return dir, value, err
}

// addDir sets the path rows of a directory, if they are later ones than those that are there.
func (s *state) addDir(dir string, value []byte) error {
	key := dirKey(dir)
	old, err := s.get(key)
	if skip := skipLost(err); skip != nil {
		return skip
	}
	level, rows, _ := rowsAt(value)
	s.level = max(s.level, level)
	if err == nil {
		before, other, bad := rowsAt(old)
		if bad == nil && !laterRows(level, rows, before, other) {
			return nil
		}
	}
	s.extra.set(string(key), bytes.Clone(value))
	return nil
}

// addBlob notes the input of a blob; of several the smallest.
func (s *state) addBlob(id store.BlobID, record []byte) error {
	key := blobKey(id)
	old, err := s.get(key)
	if skip := skipLost(err); skip != nil {
		return skip
	}
	if err != nil || bytes.Compare(old, record) > 0 {
		s.extra.set(string(key), bytes.Clone(record))
	}
	return nil
}

// view runs fn in a read transaction. Badger panics on some damage: that comes back as ErrDamaged.
func (s *state) view(fn func(txn *badger.Txn) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = store.Damagef("generation %d: %v", s.gen, p)
		}
	}()
	return s.db.View(fn)
}

// get returns the payload of a key, which must not be changed. A missing key gives
// store.ErrNotFound.
func (s *state) get(key []byte) (payload []byte, err error) {
	if payload, ok := s.extra.values[string(key)]; ok {
		return payload, nil
	}
	if s.db == nil {
		return nil, store.ErrNotFound
	}
	err = s.view(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return store.ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("key %s: %w", keyText(key), err)
		}
		if payload, err = item.ValueCopy(nil); err != nil {
			return store.ReadFailure("key "+keyText(key), err)
		}
		s.forget(blockSize)
		return nil
	})
	return payload, err
}

// blockSize is about how much of a file Badger reads for one key.
const blockSize = 4 << 10

// forget notes how many bytes of the generation's files were read.
func (s *state) forget(n int) {
	if s.scanned.Add(int64(n)) > maxMapped {
		s.scanned.Store(0)
		files.ForgetMapped(s.dir)
	}
}

// entry is one key of a scan, or err is why its value could not be read.
type entry struct {
	key, payload []byte
	err          error
}

// maxMapped is about how many bytes of a generation's files a scan leaves in memory.
const maxMapped = 2 << 20

// aroundSize is how much of a mapped file the system reads in for one byte. A scan begins in all files.
const aroundSize = 64 << 10

// Pages of a scan end at whichever comes first.
const (
	pageKeys  = 256
	pageBytes = 128 << 10
)

// page reads keys with a prefix, beginning at from.
func (s *state) page(prefix, from []byte) (page []entry, err error) {
	size := 0
	if s.db != nil {
		err = s.view(func(txn *badger.Txn) error {
			it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
			defer it.Close()
			for it.Seek(from); it.Valid() && len(page) < pageKeys && size < pageBytes; it.Next() {
				e := entry{key: it.Item().KeyCopy(nil)}
				if e.payload, err = it.Item().ValueCopy(nil); err != nil {
					e.err = store.ReadFailure("key "+keyText(e.key), err)
				}
				size += len(e.key) + len(e.payload)
				page = append(page, e)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		s.forget(size + len(s.files)*aroundSize)
	}
	// Keys after the last one of a full page are of the next page.
	var list []entry
	end := ""
	if len(page) == pageKeys || size >= pageBytes {
		end = string(page[len(page)-1].key)
	}
	for _, key := range s.extra.from(from) {
		if !bytes.HasPrefix([]byte(key), prefix) || end != "" && key > end {
			break
		}
		if len(list) == pageKeys {
			last := list[len(list)-1].key
			page = slices.DeleteFunc(page, func(e entry) bool { return bytes.Compare(e.key, last) > 0 })
			break
		}
		list = append(list, entry{key: []byte(key), payload: s.extra.values[key]})
	}
	return mergePages(page, list), nil
}

// mergePages joins two sorted lists; where both have a key, the entry of the second counts.
func mergePages(a, b []entry) []entry {
	if len(b) == 0 {
		return a
	}
	all := make([]entry, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && bytes.Compare(a[0].key, b[0].key) < 0:
			all, a = append(all, a[0]), a[1:]
		default:
			if len(a) > 0 && bytes.Equal(a[0].key, b[0].key) {
				a = a[1:]
			}
			all, b = append(all, b[0]), b[1:]
		}
	}
	return all
}

// checkRoot refuses directories of a store that are not directories.
func checkRoot(root string) error {
	return files.CheckDirs(root, gensName, factsName, inputsName, trashName, usesName)
}
