// Package intern gives equal things one place, so that a capture's millions of
// call chains are looked up once each.
//
// A table belongs to one goroutine: on the hot path each worker has its own, and
// duplicates between workers are cheaper than a lock (measured: a table shared
// under 64 locks costs 28 % more). Keys are hashed with hash/maphash and always
// compared: with no comparison, different stacks fell together. Hash seeds are
// random, so nothing may depend on the order in which a table gives its entries.
//
// What costs is cache misses, not arithmetic. So slots hold the entries
// themselves, tables grow by half, not to the double, and are laid out in the
// order of the hash: growing is one run through the old and the new memory.
package intern

import (
	"bytes"
	"hash/maphash"
	"iter"
)

const (
	unit       = 8  // keys start at multiples of this in the arena
	chunkBits  = 22 // log2 of the arena's largest chunk: 4 MiB
	chunkSize  = 1 << chunkBits
	firstChunk = 1 << 12 // small tables stay small
	firstSlots = 1 << 8
)

// MaxKey is the length of the longest key, bytes. It is far over the size of a
// perf record.
const MaxKey = chunkSize - unit

// Ref is the name of a key in its table: where it lies in the arena.
type Ref uint32

// slot is an entry: where its key lies, and its value.
type slot[V any] struct {
	hash  uint32
	ref   Ref
	len   uint32 // of the key, bytes, + 1; 0 if the slot is free
	value V
}

// Table holds a value for each of many byte strings. The zero Table is not
// usable; use New.
type Table[V any] struct {
	seed   maphash.Seed
	slots  []slot[V]
	n      int
	chunks [][]byte
	fill   int // bytes used of the last chunk
}

// New returns an empty table that hashes by this seed.
func New[V any](seed maphash.Seed) *Table[V] {
	return &Table[V]{seed: seed, slots: make([]slot[V], firstSlots)}
}

// Len returns the number of different keys.
func (t *Table[V]) Len() int { return t.n }

// home is the slot that a hash belongs into.
func home(hash uint32, slots int) int { return int(uint64(hash) * uint64(slots) >> 32) }

// crowded reports whether a table of so many slots must grow for n entries.
func crowded(n, slots int) bool { return n*5 > slots*4 }

// Add returns the value and the name of key, and whether it is new; then its
// value is zero. The key is copied. The pointer is valid until the next Add. Keys
// longer than MaxKey are cut there.
func (t *Table[V]) Add(key []byte) (value *V, ref Ref, fresh bool) {
	return t.AddHashed(maphash.Bytes(t.seed, key), key)
}

// AddHashed is Add for a key whose hash by the table's seed is known. The table
// uses the upper half of the hash; the lower is free for other uses.
func (t *Table[V]) AddHashed(hash uint64, key []byte) (value *V, ref Ref, fresh bool) {
	if len(key) > MaxKey {
		key = key[:MaxKey]
		hash = maphash.Bytes(t.seed, key)
	}
	if crowded(t.n+1, len(t.slots)) {
		t.grow()
	}
	h := uint32(hash >> 32)
	s := t.probe(h, key)
	if s.len != 0 {
		return &s.value, s.ref, false
	}
	*s = slot[V]{hash: h, ref: t.store(key), len: uint32(len(key)) + 1}
	t.n++
	return &s.value, s.ref, true
}

// probe returns the slot of key, or the free one that it would have.
func (t *Table[V]) probe(h uint32, key []byte) *slot[V] {
	for i := home(h, len(t.slots)); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		s := &t.slots[i]
		if s.len == 0 || s.hash == h && int(s.len) == len(key)+1 && bytes.Equal(t.key(s), key) {
			return s
		}
	}
}

// Find returns the value and the name of key, and whether it is there.
func (t *Table[V]) Find(key []byte) (value *V, ref Ref, ok bool) {
	s := t.probe(uint32(maphash.Bytes(t.seed, key)>>32), key)
	return &s.value, s.ref, s.len != 0
}

func (t *Table[V]) grow() {
	old := t.slots
	t.slots = make([]slot[V], len(old)+len(old)/2)
	AdviseHuge(t.slots)
	for k := range old {
		if old[k].len == 0 {
			continue
		}
		i := home(old[k].hash, len(t.slots))
		for t.slots[i].len != 0 {
			if i++; i == len(t.slots) {
				i = 0
			}
		}
		t.slots[i] = old[k]
	}
}

// store copies key into the arena and returns where it lies.
func (t *Table[V]) store(key []byte) Ref {
	last := len(t.chunks) - 1
	if last < 0 || t.fill+len(key) >= len(t.chunks[last]) {
		size := firstChunk
		if last >= 0 {
			size = min(2*len(t.chunks[last]), chunkSize)
		}
		for size <= len(key) {
			size *= 2
		}
		chunk := make([]byte, size)
		AdviseHuge(chunk)
		t.chunks = append(t.chunks, chunk)
		last++
		t.fill = 0
	}
	ref := Ref(last)<<(chunkBits-3) | Ref(t.fill/unit)
	copy(t.chunks[last][t.fill:], key)
	t.fill += max(unit, (len(key)+unit-1)&^(unit-1)) // an empty key has a place of its own too
	return ref
}

func (t *Table[V]) key(s *slot[V]) []byte {
	chunk := t.chunks[s.ref>>(chunkBits-3)]
	at := uint32(s.ref&(1<<(chunkBits-3)-1)) * unit
	return chunk[at : at+s.len-1 : at+s.len-1]
}

// Entry is a key with its name and value, of which key and value are the table's
// own.
type Entry[V any] struct {
	Key   []byte
	Ref   Ref
	Value *V
}

// All gives all entries in no particular order. The table must not change
// meanwhile.
func (t *Table[V]) All() iter.Seq[Entry[V]] { return t.Piece(0, 1) }

// Piece gives the entries of the i-th of n parts of the table, for several
// goroutines to share the work.
func (t *Table[V]) Piece(i, n int) iter.Seq[Entry[V]] {
	part := t.slots[len(t.slots)*i/n : len(t.slots)*(i+1)/n]
	return func(yield func(Entry[V]) bool) {
		for k := range part {
			if s := &part[k]; s.len != 0 && !yield(Entry[V]{t.key(s), s.ref, &s.value}) {
				return
			}
		}
	}
}
