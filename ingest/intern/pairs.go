package intern

import (
	"encoding/binary"
	"hash/maphash"
)

// Pair is a key of Pairs: an object and a place in it.
type Pair struct {
	Offset uint64
	Object uint32
}

type pairSlot struct {
	offset uint64
	object uint32
	id     uint32 // number + 1; 0 is free
}

// Pairs numbers Pairs from 0 in the order in which they come. Its slots hold the
// keys themselves, so that a look-up touches one cache line.
type Pairs struct {
	seed  maphash.Seed
	slots []pairSlot
	list  []Pair
}

// NewPairs returns an empty table.
func NewPairs() *Pairs {
	return &Pairs{seed: maphash.MakeSeed(), slots: make([]pairSlot, firstSlots)}
}

// Len returns the number of different pairs.
func (t *Pairs) Len() int { return len(t.list) }

// All returns the pairs by number. The slice is the table's own.
func (t *Pairs) All() []Pair { return t.list }

// Add returns the number of p.
func (t *Pairs) Add(p Pair) uint32 {
	mask := uint64(len(t.slots) - 1)
	for i := t.hash(p) & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.id == 0 {
			t.list = append(t.list, p)
			*s = pairSlot{p.Offset, p.Object, uint32(len(t.list))}
			if len(t.list)*2 > len(t.slots) {
				t.grow()
			}
			return uint32(len(t.list)) - 1
		}
		if s.offset == p.Offset && s.object == p.Object {
			return s.id - 1
		}
	}
}

func (t *Pairs) hash(p Pair) uint64 {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], p.Offset)
	binary.LittleEndian.PutUint32(b[8:], p.Object)
	return maphash.Bytes(t.seed, b[:])
}

func (t *Pairs) grow() {
	t.slots = make([]pairSlot, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n, p := range t.list {
		i := t.hash(p) & mask
		for t.slots[i].id != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = pairSlot{p.Offset, p.Object, uint32(n + 1)}
	}
}
