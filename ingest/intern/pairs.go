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
	id     uint32 // number + 1; 0 if the slot is free
}

// Pairs numbers Pairs from 0 in the order in which they come.
type Pairs struct {
	seed  maphash.Seed
	slots []pairSlot
	n     int
}

// NewPairs returns an empty table.
func NewPairs() *Pairs {
	return &Pairs{seed: maphash.MakeSeed(), slots: make([]pairSlot, firstSlots)}
}

// Len returns the number of different pairs.
func (t *Pairs) Len() int { return t.n }

// Add returns the number of p.
func (t *Pairs) Add(p Pair) uint32 {
	if crowded(t.n+1, len(t.slots)) {
		t.grow()
	}
	s := t.probe(p)
	if s.id == 0 {
		t.n++
		*s = pairSlot{p.Offset, p.Object, uint32(t.n)}
	}
	return s.id - 1
}

// probe returns the slot of p, or the free one that it would have.
func (t *Pairs) probe(p Pair) *pairSlot {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], p.Offset)
	binary.LittleEndian.PutUint32(b[8:], p.Object)
	for i := home(uint32(maphash.Bytes(t.seed, b[:])>>32), len(t.slots)); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		s := &t.slots[i]
		if s.id == 0 || s.offset == p.Offset && s.object == p.Object {
			return s
		}
	}
}

func (t *Pairs) grow() {
	old := t.slots
	t.slots = make([]pairSlot, len(old)+len(old)/2)
	AdviseHuge(t.slots)
	for _, s := range old {
		if s.id != 0 {
			*t.probe(Pair{s.offset, s.object}) = s
		}
	}
}

// List returns the pairs by number.
func (t *Pairs) List() []Pair {
	list := make([]Pair, t.n)
	for _, s := range t.slots {
		if s.id != 0 {
			list[s.id-1] = Pair{s.offset, s.object}
		}
	}
	return list
}
