// Package intern gives equal byte strings equal small numbers. It is what lets a
// capture's millions of call chains be looked up once each.
//
// A Table belongs to one goroutine: on the hot path each worker has its own, and
// duplicates between workers are cheaper than a lock (measured: a table shared
// under 64 locks costs 28 % more). Keys are hashed with hash/maphash and always
// compared: with no comparison, different stacks fell together. Hash seeds are
// random, so no order may ever be derived from a hash; numbers are given in the
// order of first use.
package intern

import (
	"bytes"
	"hash/maphash"
)

const (
	unit       = 8  // keys start at multiples of this in the arena
	chunkBits  = 22 // log2 of the arena's largest chunk: 4 MiB
	chunkSize  = 1 << chunkBits
	firstChunk = 1 << 12 // small tables stay small
	firstSlots = 1 << 8
	pageBits   = 12 // log2 of the entries in a page
	pageSize   = 1 << pageBits
)

// MaxKey is the length of the longest key, bytes. It is far over the size of a
// perf record.
const MaxKey = chunkSize

// entry locates a key and holds its value. Entries lie in pages that never move,
// so that growing copies nothing but slots. V has no pointers where it matters:
// nothing here is then followed by the garbage collector.
type entry[V any] struct {
	pos   uint32 // chunk number and offset in units
	len   uint32 // bytes
	value V
}

// Table numbers byte strings from 0 in the order in which they come, and holds a
// value for each. The zero Table is not usable; use New.
type Table[V any] struct {
	seed    maphash.Seed
	slots   []uint64 // 32 bits of the hash, and number + 1; 0 is free
	pages   [][]entry[V]
	n       int
	chunks  [][]byte
	fill    int // bytes used of the last chunk
	keySize int64
}

// New returns an empty table.
func New[V any]() *Table[V] {
	return &Table[V]{seed: maphash.MakeSeed(), slots: make([]uint64, firstSlots)}
}

// Len returns the number of different keys.
func (t *Table[V]) Len() int { return t.n }

// KeyBytes returns the total length of the keys.
func (t *Table[V]) KeyBytes() int64 { return t.keySize }

const idMask = 1<<32 - 1

func (t *Table[V]) hash(key []byte) uint64 { return maphash.Bytes(t.seed, key) >> 32 }

func (t *Table[V]) entry(id uint32) *entry[V] {
	return &t.pages[id>>pageBits][id&(pageSize-1)]
}

// Add returns the number of key, whether it is new, and where its value lies,
// which is zero for a new key and stays there as long as the table. The key is
// copied. Keys longer than MaxKey are cut there.
func (t *Table[V]) Add(key []byte) (id uint32, value *V, fresh bool) {
	if len(key) > MaxKey {
		key = key[:MaxKey]
	}
	h := t.hash(key)
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		if slot := t.slots[i]; slot>>32 == h {
			id := uint32(slot) - 1
			e := t.entry(id)
			if int(e.len) == len(key) && bytes.Equal(t.key(e), key) {
				return id, &e.value, false
			}
		}
	}
	id = uint32(t.n)
	if t.n>>pageBits == len(t.pages) {
		t.pages = append(t.pages, make([]entry[V], pageSize))
	}
	e := t.entry(id)
	e.pos, e.len = t.store(key), uint32(len(key))
	t.slots[i] = h<<32 | uint64(id+1)
	t.n++
	t.keySize += int64(len(key))
	if t.n*4 > len(t.slots)*3 {
		t.slots = Grow(t.slots)
	}
	return id, &e.value, true
}

// Grow doubles a table of slots that hold 32 bits of a hash above an entry's
// number + 1, and in which an entry lies at or behind the slot that the low bits
// of its hash say.
func Grow(slots []uint64) []uint64 {
	out := make([]uint64, 2*len(slots))
	adviseHuge(out)
	mask := uint64(len(out) - 1)
	for _, s := range slots {
		if s == 0 {
			continue
		}
		i := s >> 32 & mask
		for out[i] != 0 {
			i = (i + 1) & mask
		}
		out[i] = s
	}
	return out
}

// store copies key into the arena and returns where it lies.
func (t *Table[V]) store(key []byte) uint32 {
	last := len(t.chunks) - 1
	if last < 0 || t.fill+len(key) > len(t.chunks[last]) {
		size := firstChunk
		if last >= 0 {
			size = min(2*len(t.chunks[last]), chunkSize)
		}
		for size < len(key) {
			size *= 2
		}
		chunk := make([]byte, size)
		adviseHuge(chunk)
		t.chunks = append(t.chunks, chunk)
		last++
		t.fill = 0
	}
	pos := uint32(last)<<(chunkBits-3) | uint32(t.fill/unit)
	copy(t.chunks[last][t.fill:], key)
	t.fill += (len(key) + unit - 1) &^ (unit - 1)
	return pos
}

func (t *Table[V]) key(e *entry[V]) []byte {
	chunk := t.chunks[e.pos>>(chunkBits-3)]
	at := e.pos & (1<<(chunkBits-3) - 1) * unit
	return chunk[at : at+e.len : at+e.len]
}

// Key returns the key with this number. It is the table's own.
func (t *Table[V]) Key(id uint32) []byte { return t.key(t.entry(id)) }

// Value returns the value of the key with this number.
func (t *Table[V]) Value(id uint32) *V { return &t.entry(id).value }

// Find returns the number of a key.
func (t *Table[V]) Find(key []byte) (id uint32, ok bool) {
	h := t.hash(key)
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if t.slots[i]>>32 == h {
			id := uint32(t.slots[i]) - 1
			if bytes.Equal(t.Key(id), key) {
				return id, true
			}
		}
	}
	return 0, false
}
