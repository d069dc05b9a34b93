package db

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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

// Reader is the published content of a store, opened read-only: a View. Any number of processes may
// have it open, while another one writes and even after the generation was removed.
type Reader struct {
	*database

	usedMu sync.Mutex
	used   map[buildid.ID]bool // that Find has found
}

// OpenReader opens what was published in a store. It fails with ErrNoStore if nothing was, with
// ErrVersion if a newer program wrote it, with ErrOldSchema if an older one did, and with ErrDamaged
// if neither an index is sound nor the facts are.
func OpenReader(path string) (*Reader, error) {
	if err := checkFormat(path); err != nil {
		return nil, err
	}
	r := &Reader{database: &database{path: path, inputs: inputFiles{path: path}}}
	s, err := r.load()
	if err != nil {
		return nil, err
	}
	r.state = s
	return r, nil
}

func (r *Reader) load() (*state, error) {
	s, err := load(r.path, false, &r.log)
	if errors.Is(err, store.ErrNoStore) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", r.path, err)
	}
	r.log.forget()
	for _, text := range s.passed {
		r.log.warn("%s", text)
	}
	return s, nil
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

// Refresh opens what was published since the reader was opened. Tables that were opened stay valid.
// changed is true if there was something. On an error the reader is as it was.
func (r *Reader) Refresh() (changed bool, err error) {
	gens, err := generations(r.path)
	if err != nil {
		return false, fmt.Errorf("store %s: %w", r.path, err)
	}
	facts, _, err := listFacts(r.path)
	if err != nil {
		return false, fmt.Errorf("store %s: %w", r.path, err)
	}
	same := false
	err = r.view(func(s *state) error {
		same = len(gens) == 0 || gens[0] == s.gen
		for id := range facts {
			same = same && s.has(id)
		}
		return nil
	})
	if err != nil || same {
		return false, err
	}
	s, err := r.load()
	if err != nil {
		return false, err
	}
	return true, r.swap(s)
}

// Stale reports whether the index lacks facts, or was passed over: opening the store for writing, and
// closing it, makes it again.
func (r *Reader) Stale() (stale bool) {
	r.view(func(s *state) error {
		stale = s.gen == 0 || len(s.passed) > 0 || s.stale()
		return nil
	})
	return stale
}

// PassedOver returns why each newer generation of the index was not opened: damage. Nothing is
// missing in the reader, which has read the facts instead.
func (r *Reader) PassedOver() (list []string) {
	r.view(func(s *state) error {
		list = slices.Clone(s.passed)
		return nil
	})
	return list
}

// Generation returns the number of the generation that is open; 0 after it was closed, or if all
// facts were read instead.
func (r *Reader) Generation() (gen uint64) {
	r.view(func(s *state) error {
		gen = s.gen
		return nil
	})
	return gen
}

// Close closes the reader. Tables that were opened from it are of no use after that. A second Close
// does nothing.
func (r *Reader) Close() error { return r.shut() }
