package intern

import (
	"encoding/binary"
	"hash/maphash"
)

// Pair is a key of Pairs: an object and an offset in it.
type Pair struct {
	Offset uint64
	Object uint32
}

type pairSlot struct {
	offset uint64
	object uint32
	id     uint32 // number + 1; 0 if the slot is free
}

// Pairs numbers Pairs from 0 in the order of addition. It is built like Table.
type Pairs struct {
	seed  maphash.Seed
	parts [NumParts]pairPart
	n     int
}

type pairPart struct {
	slots []pairSlot
	n     int
}

// NewPairs returns an empty table.
func NewPairs() *Pairs { return &Pairs{seed: maphash.MakeSeed()} }

// Add returns the number of p.
func (t *Pairs) Add(p Pair) uint32 {
	h := t.hash(p)
	part := &t.parts[PartOf(h)]
	if Crowded(part.n+1, len(part.slots)) {
		t.grow(part)
	}
	s := part.probe(h, p)
	if s.id == 0 {
		part.n++
		t.n++
		*s = pairSlot{p.Offset, p.Object, uint32(t.n)}
	}
	return s.id - 1
}

func (t *Pairs) hash(p Pair) uint32 {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], p.Offset)
	binary.LittleEndian.PutUint32(b[8:], p.Object)
	return uint32(maphash.Bytes(t.seed, b[:]) >> 32)
}

// probe returns the slot of p, or the free slot for it.
func (part *pairPart) probe(h uint32, p Pair) *pairSlot {
	for i := Home(h, len(part.slots)); ; i++ {
		if i == len(part.slots) {
			i = 0
		}
		s := &part.slots[i]
		if s.id == 0 || s.offset == p.Offset && s.object == p.Object {
			return s
		}
	}
}

func (t *Pairs) grow(part *pairPart) {
	old := part.slots
	part.slots = Grown(old)
	for _, s := range old {
		if s.id != 0 {
			p := Pair{s.offset, s.object}
			*part.probe(t.hash(p), p) = s
		}
	}
}

// List returns the pairs by number.
func (t *Pairs) List() []Pair {
	list := make([]Pair, t.n)
	for i := range t.parts {
		for _, s := range t.parts[i].slots {
			if s.id != 0 {
				list[s.id-1] = Pair{s.offset, s.object}
			}
		}
	}
	return list
}
