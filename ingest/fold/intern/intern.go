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
// The cost is in cache misses and in the first access to pages, not in arithmetic. Slots therefore
// hold the entries themselves; tables consist of parts that grow one by one, into memory released
// by other parts; and a part is in the order of the hash, so that growing is one pass through old
// and new memory.
package intern

import "hash/maphash"

// Seed is the key of the hashes of a Table.
type Seed struct{ hi, lo maphash.Seed }

// MakeSeed returns a random seed.
func MakeSeed() Seed { return Seed{maphash.MakeSeed(), maphash.MakeSeed()} }

// Hash identifies a key. It is never zero.
type Hash struct{ Hi, Lo uint64 }

// Hash returns the hash of a key.
func (s Seed) Hash(key []byte) Hash {
	return Hash{maphash.Bytes(s.hi, key), maphash.Bytes(s.lo, key) | 1}
}

// Table holds a value for each of many byte strings. The zero Table is empty.
type Table[V any] struct {
	parts [NumParts]part[V]
}

// slot is an entry. Its hash is zero if it is free.
type slot[V any] struct {
	hash  Hash
	value V
}

// part is the part of a table for some of the hashes.
type part[V any] struct {
	slots []slot[V]
	n     int
}

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

// upper is the part of a hash that a table uses; the lower half of Hi is free for other uses.
func upper(h Hash) uint32 { return uint32(h.Hi >> 32) }

// GroupSize is the number of entries to read ahead before the first is compared: more than the
// concurrent cache misses of a core.
const GroupSize = 32

// ReadAhead reads the first slot of the look-up of a hash, so that the misses of several look-ups
// overlap. It returns a part of the slot, so that the compiler keeps the read.
func (t *Table[V]) ReadAhead(h Hash) uint32 {
	p := &t.parts[PartOf(upper(h))]
	if len(p.slots) == 0 {
		return 0
	}
	return uint32(p.slots[Home(upper(h), len(p.slots))].hash.Lo)
}

// Add returns the value of the key with a hash, and whether it is new, with a zero value. The
// pointer is valid until the next Add.
func (t *Table[V]) Add(h Hash) (value *V, fresh bool) {
	p := &t.parts[PartOf(upper(h))]
	if Crowded(p.n+1, len(p.slots)) {
		p.grow()
	}
	s := p.probe(h)
	if s.hash == h {
		return &s.value, false
	}
	s.hash = h
	p.n++
	return &s.value, true
}

// Len returns the number of entries.
func (t *Table[V]) Len() int {
	n := 0
	for i := range t.parts {
		n += t.parts[i].n
	}
	return n
}

// probe returns the slot of a hash, or the free slot for it. The part has a free slot.
func (p *part[V]) probe(h Hash) *slot[V] {
	for i := Home(upper(h), len(p.slots)); ; i++ {
		if i == len(p.slots) {
			i = 0
		}
		if s := &p.slots[i]; s.hash == h || s.hash == (Hash{}) {
			return s
		}
	}
}

func (p *part[V]) grow() {
	old := p.slots
	p.slots = Grown(old)
	for k := range old {
		if s := &old[k]; s.hash != (Hash{}) {
			*p.probe(s.hash) = *s
		}
	}
}
