package db

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"symbolize/buildid"
	"symbolize/store"
)

// hashes is a set of what has a hash of 64 bits, in eight bytes each: a store may have many objects.
// One that is not among n others is found by chance n times in 2^64. For one goroutine.
type hashes struct {
	list   []uint64
	sorted int // the first of list
}

func (s *hashes) add(hash uint64) {
	if n := len(s.list); n == 0 || s.list[n-1] != hash {
		s.list = append(s.list, hash)
	}
}

func (s *hashes) has(hash uint64) bool {
	if s.sorted != len(s.list) {
		slices.Sort(s.list)
		s.list = slices.Compact(s.list)
		s.sorted = len(s.list)
	}
	_, ok := slices.BinarySearch(s.list, hash)
	return ok
}

// seed is another one in each process, so that nobody can make objects with one hash.
var seed = maphash.MakeSeed()

// prefixOf is the hash of a digest.
func prefixOf(id digest) uint64 { return binary.BigEndian.Uint64(id[:]) }

// objectHash is the hash of an object. IDs with one key have one hash.
func objectHash(id buildid.ID) uint64 { return maphash.Comparable(seed, id.Key()) }

// addEntry adds the inputs that an entry names. A damaged one names nothing.
func (s *hashes) addEntry(e entry) {
	if e.err != nil {
		return
	}
	switch e.key[0] {
	case prefixManifest:
		if m, err := e.manifest(); err == nil {
			m.Inputs(func(id digest) { s.add(prefixOf(id)) })
		}
	case prefixBlob:
		if id, _, err := parseBlobRecord(e.payload); err == nil {
			s.add(prefixOf(id))
		}
	}
}

// addRecord adds the inputs that a record of facts names.
func (s *hashes) addRecord(kind byte, payload []byte) error {
	if n := len(store.BlobID{}); kind == prefixBlob && len(payload) >= n {
		payload = payload[n:]
	}
	s.addEntry(entry{key: []byte{kind}, payload: payload})
	return nil
}

// named returns the inputs that the entries of the index name.
func (d *database) named() (*hashes, error) {
	named := new(hashes)
	for e, err := range d.scanAll(nil) {
		if err != nil {
			return nil, err
		}
		named.addEntry(e)
	}
	return named, nil
}
