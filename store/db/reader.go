package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"symbolize/buildid"
	"symbolize/store"
)

// DefaultPath returns the default path of the store: $SYMBOLIZE_STORE, otherwise symbolize under
// $XDG_DATA_HOME, otherwise under ~/.local/share. It is "" if HOME is not set either.
func DefaultPath(getenv func(string) string) string {
	if p := getenv("SYMBOLIZE_STORE"); p != "" {
		return p
	}
	// The XDG specification has relative paths ignored.
	if p := getenv("XDG_DATA_HOME"); filepath.IsAbs(p) {
		return filepath.Join(p, "symbolize")
	}
	if p := getenv("HOME"); p != "" {
		return filepath.Join(p, ".local", "share", "symbolize")
	}
	return ""
}

// Reader is the newest generation of a store, opened read-only: a View. Any number of processes may
// have it open, while another one writes and even after the generation was removed.
type Reader struct {
	*database
	gen    uint64
	shadow string // temporary directory, "" if none was needed

	usedMu sync.Mutex
	used   map[buildid.ID]bool // that Find has found
}

// openTries is how often OpenReader looks for a generation again that was removed between being
// listed and being opened.
const openTries = 10

// OpenReader opens the newest sound generation of a store. It fails with ErrNoStore if nothing was
// published there, with ErrVersion if a newer program wrote it, and with ErrDamaged if no
// generation is sound.
func OpenReader(path string) (*Reader, error) {
	if err := checkFormat(path); err != nil {
		return nil, err
	}
	r := &Reader{database: &database{path: path}}
	var last error
	for range openTries {
		gens, err := generations(path)
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", path, err)
		}
		if len(gens) == 0 {
			return nil, fmt.Errorf("%w at %s", store.ErrNoStore, path)
		}
		if last = r.openFirst(gens); last == nil {
			return r, nil
		}
		if !errors.Is(last, fs.ErrNotExist) {
			break
		}
	}
	return nil, fmt.Errorf("store %s: %w", path, last)
}

// openFirst opens the first generation of the list that is sound. An error that wraps
// fs.ErrNotExist: the list may be out of date.
func (r *Reader) openFirst(gens []uint64) error {
	var first error
	r.passedOver = nil
	r.log.forget() // of a try before, whose generation was removed meanwhile
	for _, g := range gens {
		err := r.openGeneration(g)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrDamaged) {
			return err
		}
		text := fmt.Sprintf("generation %d is passed over: %v", g, err)
		r.passedOver = append(r.passedOver, text)
		r.log.warn("%s", text)
		if first == nil {
			first = err
		}
	}
	return first
}

func (r *Reader) openGeneration(gen uint64) error {
	dir := genDir(r.path, gen)
	sums, err := checkGeneration(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Lstat(dir); gone == nil {
			return store.Damagef("%v", err) // a file of it is lost, not the generation
		}
	}
	if err != nil {
		return err
	}
	db, err := openBadger(badgerOptions(dir, true, &r.log))
	if err != nil {
		if _, gone := os.Lstat(dir); gone != nil {
			return gone
		}
		// Badger locks and syncs the directory, which some read-only file systems
		// refuse: give it one of links.
		var shadowErr error
		if r.shadow, shadowErr = makeShadow(dir, sums); shadowErr != nil {
			return errors.Join(err, shadowErr)
		}
		if db, shadowErr = openBadger(badgerOptions(r.shadow, true, &r.log)); shadowErr != nil {
			os.RemoveAll(r.shadow)
			r.shadow = ""
			return err
		}
	}
	r.db, r.gen = db, gen
	return nil
}

// makeShadow returns a temporary directory of symbolic links to the files of a
// generation.
func makeShadow(dir string, sums []fileSum) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp("", "symbolize-store-"+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", err
	}
	for _, s := range sums {
		if err := os.Symlink(filepath.Join(abs, s.name), filepath.Join(tmp, s.name)); err != nil {
			os.RemoveAll(tmp)
			return "", err
		}
	}
	return tmp, nil
}

// Find implements View.
func (r *Reader) Find(id buildid.ID) ([]*store.Manifest, error) {
	found, err := r.database.Find(id)
	if len(found) > 0 {
		r.usedMu.Lock()
		defer r.usedMu.Unlock()
		if r.used == nil {
			r.used = make(map[buildid.ID]bool)
		}
		for _, m := range found {
			r.used[m.ID] = true
		}
	}
	return found, err
}

// Refresh opens the newest sound generation in place of the one that is open. Tables that were
// opened stay valid as far as it has them. changed is true if there was another. On an error of
// opening it the reader is as it was.
func (r *Reader) Refresh() (changed bool, err error) {
	gens, err := generations(r.path)
	if err != nil {
		return false, fmt.Errorf("store %s: %w", r.path, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.db == nil {
		return false, fmt.Errorf("store %s: %w", r.path, store.ErrClosed)
	}
	if len(gens) == 0 || gens[0] == r.gen {
		return false, nil
	}
	old, passed, gen, shadow := r.db, r.passedOver, r.gen, r.shadow
	leaked := r.log.leaked.Swap(false)
	r.shadow = ""
	if err := r.openFirst(gens); err != nil {
		r.db, r.passedOver, r.gen, r.shadow = old, passed, gen, shadow
		r.log.leaked.Store(leaked)
		return false, fmt.Errorf("store %s: %w", r.path, err)
	}
	if !leaked {
		old.Close() // see Close
	}
	return true, os.RemoveAll(shadow)
}

// PassedOver returns why each newer generation was not opened: damage. Data indexed
// since the one that is open is not seen.
func (r *Reader) PassedOver() []string { return r.passedOver }

// Generation returns the number of the generation that is open.
func (r *Reader) Generation() uint64 { return r.gen }

// Identity identifies the content of the open generation, also among other stores: equal ones have
// equal content, but for objects that were pulled. A copied store keeps it.
func (r *Reader) Identity() string { return identity(r.path, r.gen) }

// Close closes the generation. Tables that were opened from it are of no use after that. A second
// Close does nothing.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.db == nil {
		return nil
	}
	// A reader has nothing to lose: an error is about damage, which it reported before, or about
	// the sync of a directory that a writer has removed, or on a file system that cannot sync it.
	r.shut()
	return os.RemoveAll(r.shadow)
}
