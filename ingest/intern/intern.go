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
	chunkBits  = 22 // log2 of the arena's largest chunk
	chunkSize  = 1 << chunkBits
	firstChunk = 1 << 12 // small tables stay small
	firstSlots = 1 << 8
	pageBits   = 12 // log2 of the entries in a page
	pageSize   = 1 << pageBits
)

// MaxKey is the length of the longest key, bytes. It is far over the size of a
// perf record.
const MaxKey = chunkSize

// entry locates a key. Entries lie in pages that never move, so that growing
// copies nothing but slots.
type entry struct {
	hash uint64
	pos  uint32 // chunk number and offset in units
	len  uint32 // bytes
}

// Table numbers byte strings from 0 in the order in which they come. The zero
// Table is not usable; use New.
type Table struct {
	seed    maphash.Seed
	slots   []uint64 // high half of the hash, and number + 1; 0 is free
	pages   [][]entry
	n       int
	chunks  [][]byte
	fill    int // bytes used of the last chunk
	keySize int64
}

// New returns an empty table. Tables that are to be compared with Union share a
// seed.
func New(seed maphash.Seed) *Table {
	return &Table{seed: seed, slots: make([]uint64, firstSlots)}
}

// Len returns the number of different keys.
func (t *Table) Len() int { return t.n }

// KeyBytes returns the total length of the keys.
func (t *Table) KeyBytes() int64 { return t.keySize }

// Add returns the number of key and whether it is new. The key is copied. Keys
// longer than MaxKey are cut there.
func (t *Table) Add(key []byte) (id uint32, fresh bool) {
	if len(key) > MaxKey {
		key = key[:MaxKey]
	}
	h := maphash.Bytes(t.seed, key)
	mask := uint64(len(t.slots) - 1)
	tag := h &^ (1<<32 - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := t.slots[i]
		if slot == 0 {
			return t.insert(i, h, key), true
		}
		if slot&^(1<<32-1) == tag {
			id := uint32(slot) - 1
			if bytes.Equal(t.Key(id), key) {
				return id, false
			}
		}
	}
}

func (t *Table) insert(slot, hash uint64, key []byte) uint32 {
	id := uint32(t.n)
	if t.n>>pageBits == len(t.pages) {
		t.pages = append(t.pages, make([]entry, pageSize))
	}
	t.pages[t.n>>pageBits][t.n&(pageSize-1)] = entry{hash, t.store(key), uint32(len(key))}
	t.slots[slot] = hash&^(1<<32-1) | uint64(id+1)
	t.n++
	t.keySize += int64(len(key))
	if t.n*4 > len(t.slots)*3 {
		t.grow()
	}
	return id
}

// store copies key into the arena and returns where it lies.
func (t *Table) store(key []byte) uint32 {
	last := len(t.chunks) - 1
	if last < 0 || t.fill+len(key) > len(t.chunks[last]) {
		size := firstChunk
		if last >= 0 {
			size = min(2*len(t.chunks[last]), chunkSize)
		}
		for size < len(key) {
			size *= 2
		}
		t.chunks = append(t.chunks, make([]byte, size))
		last++
		t.fill = 0
	}
	pos := uint32(last)<<(chunkBits-3) | uint32(t.fill/unit)
	copy(t.chunks[last][t.fill:], key)
	t.fill += (len(key) + unit - 1) &^ (unit - 1)
	return pos
}

func (t *Table) grow() {
	t.slots = make([]uint64, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for id := range t.n {
		h := t.pages[id>>pageBits][id&(pageSize-1)].hash
		i := h & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = h&^(1<<32-1) | uint64(id+1)
	}
}

// Key returns the key with this number. It is the table's own.
func (t *Table) Key(id uint32) []byte {
	e := &t.pages[id>>pageBits][id&(pageSize-1)]
	chunk := t.chunks[e.pos>>(chunkBits-3)]
	at := e.pos & (1<<(chunkBits-3) - 1) * unit
	return chunk[at : at+e.len : at+e.len]
}

// find returns the number of a key whose hash is known.
func (t *Table) find(h uint64, key []byte) (id uint32, ok bool) {
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if t.slots[i]>>32 == h>>32 {
			id := uint32(t.slots[i]) - 1
			if bytes.Equal(t.Key(id), key) {
				return id, true
			}
		}
	}
	return 0, false
}

// Union calls first once for every different key of the tables, with the table
// that has it first and its number there, and again for each of the other
// tables that has it. The tables must share a seed.
func Union(tables []*Table, visit func(table int, id uint32, first bool, ofTable int, ofID uint32)) {
	for ti, t := range tables {
	next:
		for id := range uint32(t.n) {
			e := &t.pages[id>>pageBits][id&(pageSize-1)]
			for prev := range ti {
				if at, ok := tables[prev].find(e.hash, t.Key(id)); ok {
					visit(ti, id, false, prev, at)
					continue next
				}
			}
			visit(ti, id, true, ti, id)
		}
	}
}
