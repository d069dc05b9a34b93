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

// Pairs numbers Pairs from 0 in the order in which they come.
type Pairs struct {
	seed  maphash.Seed
	slots []uint64 // as in Table
	pages [][]Pair
	n     int
}

// NewPairs returns an empty table.
func NewPairs() *Pairs {
	return &Pairs{seed: maphash.MakeSeed(), slots: make([]uint64, firstSlots)}
}

// Len returns the number of different pairs.
func (t *Pairs) Len() int { return t.n }

// At returns the pair with this number.
func (t *Pairs) At(id int) Pair { return t.pages[id>>pageBits][id&(pageSize-1)] }

// Add returns the number of p.
func (t *Pairs) Add(p Pair) uint32 {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], p.Offset)
	binary.LittleEndian.PutUint32(b[8:], p.Object)
	h := maphash.Bytes(t.seed, b[:]) >> 32
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		if t.slots[i]>>32 == h {
			if id := int(t.slots[i]&idMask) - 1; t.At(id) == p {
				return uint32(id)
			}
		}
	}
	if t.n>>pageBits == len(t.pages) {
		t.pages = append(t.pages, make([]Pair, pageSize))
	}
	t.pages[t.n>>pageBits][t.n&(pageSize-1)] = p
	t.n++
	t.slots[i] = h<<32 | uint64(t.n)
	if t.n*4 > len(t.slots)*3 {
		t.slots = Grow(t.slots)
	}
	return uint32(t.n) - 1
}
