// Package intern stores equal values once, so that each distinct call chain of a capture with
// millions is looked up only once.
//
// Tables are not safe for concurrent use: each worker has its own, and duplicates between workers
// are cheaper than a lock (measured: a table shared under 64 locks costs 28 % more).
//
// A Table keeps a hash of 128 bits in place of each key: the keys would be most of the memory, and
// comparing them a cache miss more for each look-up. Two keys among a thousand million have the
// same hash with a probability of 10^-21, less than of a wrong bit in memory. Seeds are random, so
// that no input can be made to collide, and nothing may depend on the order of a table's entries.
//
// The cost is in cache misses and in the first access to pages, not in arithmetic. Entries are
// dense, in chunks that are never copied; a hash table of their numbers, of which most fits in a
// cache, leads to them. Slots that hold the entries themselves took a miss less and 1.5 times the
// memory, of which a third was free and a third garbage of the tables before.
package intern

import (
	"hash/maphash"
	"iter"
)

// Seed is the key of the hashes of a Table.
type Seed struct{ hi, lo maphash.Seed }

// MakeSeed returns a random seed.
func MakeSeed() Seed { return Seed{maphash.MakeSeed(), maphash.MakeSeed()} }

// Hash identifies a key. A Table uses the upper half of Hi to find it, which must be random; the
// rest may be the key itself.
type Hash struct{ Hi, Lo uint64 }

// Hash returns the hash of a key.
func (s Seed) Hash(key []byte) Hash {
	return Hash{maphash.Bytes(s.hi, key), maphash.Bytes(s.lo, key)}
}

// Table holds a value for each of many keys, which are numbered from 0 in the order of addition.
// The zero Table is empty.
type Table[V any] struct {
	// slots are a hash table of the entries. A slot is the number of an entry plus one, and above it,
	// as far as the number of slots leaves bits, bits of its hash; 0 if it is free.
	slots  []uint32
	chunks [][]entry[V] // of chunkSize entries, except the last
	n      int
	ahead  uint64 // keeps the reads of ReadAhead
}

type entry[V any] struct {
	value V
	hash  Hash
}

const (
	chunkBits  = 17 // log2 of the entries in a chunk: some MB, for huge pages
	chunkSize  = 1 << chunkBits
	firstSlots = 32
)

// newSlots returns the slots of a hash table.
func newSlots(n int) []uint32 {
	out := make([]uint32, max(firstSlots, n))
	advise(out)
	return out
}

// GroupSize is the number of entries to read ahead before the first is compared: more than the
// concurrent cache misses of a core.
const GroupSize = 32

// ReadAhead reads the entries of at most GroupSize hashes that their first slots lead to, so that the
// cache misses of look-ups overlap.
func (t *Table[V]) ReadAhead(list []Hash) {
	if t.n == 0 {
		return
	}
	var slots [GroupSize]uint32
	mask := uint32(len(t.slots) - 1)
	for i, h := range list {
		slots[i] = t.slots[uint32(h.Hi>>32)&mask]
	}
	for i, h := range list {
		if s := slots[i]; s != 0 && (s^uint32(h.Hi>>32))&^mask == 0 {
			t.ahead += t.at(s&mask - 1).hash.Lo
		}
	}
}

// Add returns the value of the key with a hash, and whether it is new, with a zero value. The
// pointer is valid until the next Add.
func (t *Table[V]) Add(h Hash) (value *V, fresh bool) {
	n, fresh := t.Number(h)
	return t.At(n), fresh
}

// At returns the value of the key with a number. The pointer is valid until the next Add.
func (t *Table[V]) At(n uint32) *V { return &t.at(n).value }

// Number returns the number of the key with a hash, and whether it is new, with a zero value.
func (t *Table[V]) Number(h Hash) (n uint32, fresh bool) {
	if (t.n+1)*4 > len(t.slots)*3 {
		t.grow()
	}
	upper, mask := uint32(h.Hi>>32), uint32(len(t.slots)-1)
	for i := upper & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			t.append(h)
			t.slots[i] = upper&^mask | uint32(t.n)
			return uint32(t.n) - 1, true
		}
		if (s^upper)&^mask == 0 && t.at(s&mask-1).hash == h {
			return s&mask - 1, false
		}
	}
}

// append adds an entry. The first chunk grows, so that small tables stay small.
func (t *Table[V]) append(h Hash) {
	if t.n&(chunkSize-1) == 0 {
		var chunk []entry[V]
		if t.n > 0 {
			chunk = make([]entry[V], chunkSize)
			advise(chunk)
		}
		t.chunks = append(t.chunks, chunk[:0])
	}
	last := &t.chunks[len(t.chunks)-1]
	*last = append(*last, entry[V]{hash: h})
	t.n++
}

func (t *Table[V]) at(n uint32) *entry[V] { return &t.chunks[n>>chunkBits][n&(chunkSize-1)] }

func (t *Table[V]) grow() {
	t.slots = newSlots(2 * len(t.slots))
	mask := uint32(len(t.slots) - 1)
	n := uint32(0)
	for h := range t.All() {
		n++
		upper := uint32(h.Hi >> 32)
		i := upper & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = upper&^mask | n
	}
}

// Len returns the number of entries.
func (t *Table[V]) Len() int { return t.n }

// All returns the entries by number.
func (t *Table[V]) All() iter.Seq2[Hash, *V] {
	return func(yield func(Hash, *V) bool) {
		for _, chunk := range t.chunks {
			for i := range chunk {
				if !yield(chunk[i].hash, &chunk[i].value) {
					return
				}
			}
		}
	}
}
