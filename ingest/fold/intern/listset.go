package intern

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// ListSet stores lists of 32-bit numbers as Lists does, and gives equal ones one number. It
// is built like Table, without a copy of the keys. The zero ListSet is not usable; use
// NewListSet.
type ListSet struct {
	Lists
	seed  maphash.Seed
	parts [NumParts]listPart
	key   []byte // scratch
}

type listPart struct {
	slots []listSlot
	n     int
}

// listSlot is an entry: the number of its list, and the hash of it.
type listSlot struct {
	hash uint32
	id   uint32 // number + 1; 0 if the slot is free
}

// NewListSet returns an empty set.
func NewListSet() *ListSet { return &ListSet{seed: maphash.MakeSeed()} }

// Add returns the number of a list, which is copied if it is new. Lists over 2^20 words
// are cut there.
func (t *ListSet) Add(list []uint32) (id uint32, fresh bool) {
	list = list[:min(len(list), MaxList)]
	h := t.hash(list)
	p := &t.parts[PartOf(h)]
	if Crowded(p.n+1, len(p.slots)) {
		p.grow()
	}
	s := t.probe(p, h, list)
	if s.id != 0 {
		return s.id - 1, false
	}
	id = t.Lists.Add(list)
	*s = listSlot{h, id + 1}
	p.n++
	return id, true
}

func (t *ListSet) hash(list []uint32) uint32 {
	t.key = t.key[:0]
	for _, v := range list {
		t.key = binary.LittleEndian.AppendUint32(t.key, v)
	}
	return uint32(maphash.Bytes(t.seed, t.key) >> 32)
}

// probe returns the slot of a list, or the free slot for it. The part has a free slot.
func (t *ListSet) probe(p *listPart, h uint32, list []uint32) *listSlot {
	for i := Home(h, len(p.slots)); ; i++ {
		if i == len(p.slots) {
			i = 0
		}
		s := &p.slots[i]
		if s.id == 0 || s.hash == h && slices.Equal(t.At(s.id-1), list) {
			return s
		}
	}
}

func (p *listPart) grow() {
	old := p.slots
	p.slots = Grown(old)
	for _, s := range old {
		if s.id == 0 {
			continue
		}
		i := Home(s.hash, len(p.slots))
		for p.slots[i].id != 0 {
			if i++; i == len(p.slots) {
				i = 0
			}
		}
		p.slots[i] = s
	}
}

// Forget releases the memory for adding; the lists stay.
func (t *ListSet) Forget() { t.parts, t.key = [NumParts]listPart{}, nil }
