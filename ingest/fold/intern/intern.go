// Package intern stores equal values once, so that each distinct call chain of a capture with
// millions is looked up only once.
//
// Tables are not safe for concurrent use: each worker has its own, and duplicates between workers
// are cheaper than a lock (measured: a table shared under 64 locks costs 28 % more). Keys are
// hashed with hash/maphash and always compared: otherwise different stacks could be merged. Hash
// seeds are random, so that nothing may depend on the order of a table's entries.
//
// The cost is in cache misses and in the first access to pages, not in arithmetic. Slots therefore
// hold the entries themselves; tables consist of parts that grow one by one, into memory released
// by other parts; and a part is in the order of the hash, so that growing is one pass through old
// and new memory.
package intern

import (
	"bytes"
	"hash/maphash"
	"iter"
)

const (
	unit       = 4 // keys start at multiples of this in the arena
	unitBits   = 2
	chunkBits  = 22 // log2 of the arena's largest chunk: 4 MiB
	chunkSize  = 1 << chunkBits
	firstChunk = 1 << 12 // small tables stay small
)

// MaxKey is the maximum length of a key, bytes: far more than a perf record.
const MaxKey = chunkSize - unit

// Ref identifies a key in its table by its position in the arena.
type Ref uint32

// slot is an entry: the position of its key, and its value.
type slot[V any] struct {
	hash  uint32
	ref   Ref
	len   uint32 // of the key, bytes, + 1; 0 if the slot is free
	value V
}

// Table holds a value for each of many byte strings. The zero Table is not usable; use New.
type Table[V any] struct {
	seed   maphash.Seed
	parts  [NumParts]part[V]
	n      int
	chunks [][]byte
	fill   int // bytes used of the last chunk
}

// part is the part of a table for some of the hashes.
type part[V any] struct {
	slots []slot[V]
	n     int
}

// New returns an empty table with a hash seed.
func New[V any](seed maphash.Seed) *Table[V] { return &Table[V]{seed: seed} }

const partBits = 3

// NumParts is the number of parts in a table.
const NumParts = 1 << partBits

// PartOf returns the part of a table for a hash.
func PartOf(hash uint32) int { return int(hash >> (32 - partBits)) }

// Home returns the preferred slot of a hash in its part.
func Home(hash uint32, slots int) int {
	return int(uint64(hash<<partBits) * uint64(slots) >> 32)
}

// Crowded reports whether a part with the given number of slots must grow for n entries.
func Crowded(n, slots int) bool { return n*5 > slots*4 }

// Grown returns a larger, empty slice of slots for a part.
func Grown[S any](slots []S) []S {
	const first = 32
	out := make([]S, max(first, 2*len(slots)))
	advise(out)
	return out
}

// Add returns the value and the Ref of key, and whether it is new, with a zero value. The key is
// copied. The pointer is valid until the next Add. Keys longer than MaxKey are truncated.
func (t *Table[V]) Add(key []byte) (value *V, ref Ref, fresh bool) {
	return t.AddHashed(maphash.Bytes(t.seed, key), key)
}

// GroupSize is the number of entries to read ahead before the first is compared: more than the
// concurrent cache misses of a core.
const GroupSize = 32

// ReadAhead reads the first slot of the look-up of a hash, so that the misses of several look-ups
// overlap. It returns a part of the slot, so that the compiler keeps the read.
func (t *Table[V]) ReadAhead(hash uint64) uint32 {
	h := uint32(hash >> 32)
	p := &t.parts[PartOf(h)]
	if len(p.slots) == 0 {
		return 0
	}
	return p.slots[Home(h, len(p.slots))].len
}

// ReadAheadKey reads the key in the slot of ReadAhead, if the hashes are equal.
func (t *Table[V]) ReadAheadKey(hash uint64) uint32 {
	h := uint32(hash >> 32)
	p := &t.parts[PartOf(h)]
	if len(p.slots) == 0 {
		return 0
	}
	s := &p.slots[Home(h, len(p.slots))]
	if s.hash != h || s.len < 2 {
		return 0
	}
	key := t.key(s)
	return uint32(key[0]) + uint32(key[len(key)-1])
}

// AddHashed is Add for a key with a known hash by the table's seed. The table uses the upper half
// of the hash; the lower half is free for other uses.
func (t *Table[V]) AddHashed(hash uint64, key []byte) (value *V, ref Ref, fresh bool) {
	if len(key) > MaxKey {
		key = key[:MaxKey]
		hash = maphash.Bytes(t.seed, key)
	}
	h := uint32(hash >> 32)
	p := &t.parts[PartOf(h)]
	if Crowded(p.n+1, len(p.slots)) {
		p.grow()
	}
	s := t.probe(p, h, key)
	if s.len != 0 {
		return &s.value, s.ref, false
	}
	*s = slot[V]{hash: h, ref: t.store(key), len: uint32(len(key)) + 1}
	p.n++
	t.n++
	return &s.value, s.ref, true
}

// probe returns the slot of key, or the free slot for it. The part has a free slot.
func (t *Table[V]) probe(p *part[V], h uint32, key []byte) *slot[V] {
	for i := Home(h, len(p.slots)); ; i++ {
		if i == len(p.slots) {
			i = 0
		}
		s := &p.slots[i]
		if s.len == 0 || s.hash == h && int(s.len) == len(key)+1 && bytes.Equal(t.key(s), key) {
			return s
		}
	}
}

// Find returns the value and the Ref of key, and whether it is in the table.
func (t *Table[V]) Find(key []byte) (value *V, ref Ref, ok bool) {
	h := uint32(maphash.Bytes(t.seed, key) >> 32)
	p := &t.parts[PartOf(h)]
	if p.n == 0 {
		return nil, 0, false
	}
	s := t.probe(p, h, key)
	return &s.value, s.ref, s.len != 0
}

func (p *part[V]) grow() {
	old := p.slots
	p.slots = Grown(old)
	for k := range old {
		if old[k].len == 0 {
			continue
		}
		i := Home(old[k].hash, len(p.slots))
		for p.slots[i].len != 0 {
			if i++; i == len(p.slots) {
				i = 0
			}
		}
		p.slots[i] = old[k]
	}
}

// store copies key into the arena and returns its position.
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
		advise(chunk)
		t.chunks = append(t.chunks, chunk)
		last++
		t.fill = 0
	}
	ref := Ref(last)<<(chunkBits-unitBits) | Ref(t.fill/unit)
	copy(t.chunks[last][t.fill:], key)
	t.fill += max(unit, (len(key)+unit-1)&^(unit-1)) // an empty key has a Ref of its own, too
	return ref
}

func (t *Table[V]) key(s *slot[V]) []byte {
	chunk := t.chunks[s.ref>>(chunkBits-unitBits)]
	at := uint32(s.ref&(1<<(chunkBits-unitBits)-1)) * unit
	return chunk[at : at+s.len-1 : at+s.len-1]
}

// Entry is a key with its Ref and value; the table owns key and value.
type Entry[V any] struct {
	Key   []byte
	Ref   Ref
	Value *V
}

// Part returns the entries of the i-th of NumParts parts of the table, so that several goroutines
// can share the work.
func (t *Table[V]) Part(i int) iter.Seq[Entry[V]] {
	slots := t.parts[i].slots
	return func(yield func(Entry[V]) bool) {
		for k := range slots {
			if s := &slots[k]; s.len != 0 && !yield(Entry[V]{t.key(s), s.ref, &s.value}) {
				return
			}
		}
	}
}
