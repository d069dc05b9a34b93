package db

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"symbolize/store"
)

// adopt writes the facts of killed runs again, to be committed with this one's. Records of inputs that are
// not whole are left out, and with one all path rows and notes: the next index run reads those files
// again, the next pull those manifests.
func (w *Writer) adopt() error {
	_, open, err := listFacts(w.path)
	if err != nil {
		return err
	}
	slices.Sort(open)
	for _, name := range open {
		path := filepath.Join(w.path, factsName, name)
		if !w.locked { // it may be of another writer
			info, err := os.Lstat(path)
			if skipMissing(err) != nil {
				return err
			}
			if err != nil || time.Since(info.ModTime()) < trashAge {
				continue
			}
		}
		a := &adopter{w: w, sound: make(map[digest]bool)}
		if err := a.file(path); err != nil {
			return err
		}
		if w.facts != nil {
			if err := w.facts.flush(); err != nil {
				return err
			}
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// adopter adopts one file of facts.
type adopter struct {
	w     *Writer
	sound map[digest]bool // inputs that were read
	later []record        // path rows and notes: they count if all else is there
	lost  bool            // records were left out
}

// record is a record of facts.
type record struct {
	kind    byte
	payload []byte
}

func (a *adopter) file(path string) error {
	// A killed collection: what it had not written yet is where it read it.
	h, _, _, err := readFacts(path, nil)
	if err == nil && len(h.replaced) > 0 {
		_, _, whole, err := readFacts(path, func(byte, []byte) error { return nil })
		if err != nil || !whole {
			return err
		}
	}
	if err == nil {
		_, _, _, err = readFacts(path, a.record)
	}
	if err != nil && !errors.Is(err, store.ErrUnsafe) { // a thing that is no file of ours
		if err = skipDamage(err); err != nil {
			return err
		}
	}
	if !a.lost {
		for _, r := range a.later {
			if err := a.w.write(r.kind, r.payload); err != nil {
				return err
			}
		}
	}
	return nil
}

// record adopts one record.
func (a *adopter) record(kind byte, payload []byte) error {
	whole, err := a.check(kind, payload)
	switch {
	case err != nil:
		return err
	case !whole:
		a.lost = true
		return nil
	case kind == prefixDir || kind == prefixNote:
		a.later = append(a.later, record{kind, bytes.Clone(payload)})
		return nil
	}
	return a.w.write(kind, payload)
}

// check reports whether a record decodes and all that it names is whole.
func (a *adopter) check(kind byte, payload []byte) (whole bool, err error) {
	whole = true
	input := func(id digest) {
		if !whole || err != nil {
			return
		}
		whole, err = a.input(id)
	}
	switch kind {
	case prefixManifest:
		m, bad := store.DecodeStored("manifest of facts", payload)
		if bad != nil {
			return false, nil
		}
		m.Inputs(input)
		lost := store.CheckBlobs(m.Variants, a.w.hasBlob)
		return whole && lost == nil, cmp.Or(err, skipLost(lost))
	case prefixBlob:
		if len(payload) < len(store.BlobID{}) {
			return false, nil
		}
		id, _, bad := parseBlobRecord(payload[len(store.BlobID{}):])
		if bad != nil {
			return false, nil
		}
		input(id)
		return whole, err
	case prefixDir:
		_, _, bad := parseDir(payload)
		return bad == nil, nil
	case prefixNote:
		return len(payload) == len(digest{}), nil
	}
	return false, nil
}

// input reports whether an input is whole.
func (a *adopter) input(id digest) (bool, error) {
	whole, known := a.sound[id]
	if known {
		return whole, nil
	}
	_, err := a.w.inputs.check(id)
	if skip := skipLost(err); skip != nil {
		return false, skip
	}
	a.sound[id] = err == nil
	if err == nil {
		a.w.written[id] = true
	}
	return err == nil, nil
}
