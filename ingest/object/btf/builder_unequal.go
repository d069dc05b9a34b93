package btf

import "math/bits"

// pairSet is a set of pairs that is emptied without work: the calls of Add use one after another, and many
// of them need few pairs.
type pairSet struct {
	slots []pairSlot // a hash table with linear probing, at most half full; a power of 2
	round uint32     // of the pairs in the set: slots with others are free
	len   int
	seed  uint64
}

type pairSlot struct {
	def   uint32
	id    ID
	round uint32
}

// leastPairSlots are the slots of a pairSet with the first pair.
const leastPairSlots = 64

// reset removes all pairs.
func (p *pairSet) reset() {
	p.len = 0
	if p.round++; p.round == 0 {
		clear(p.slots)
		p.round = 1
	}
}

// find returns the slot of a pair, or the free one where it belongs.
func (p *pairSet) find(x pair) *pairSlot {
	hi, lo := bits.Mul64(uint64(x.def)<<32^uint64(x.id)^p.seed, 0x9e3779b97f4a7c15)
	mask := uint64(len(p.slots) - 1)
	for i := hi ^ lo; ; i++ {
		s := &p.slots[i&mask]
		if s.round != p.round || s.def == uint32(x.def) && s.id == x.id {
			return s
		}
	}
}

func (p *pairSet) has(x pair) bool {
	return p.len > 0 && p.find(x).round == p.round
}

func (p *pairSet) add(x pair) {
	if 2*p.len >= len(p.slots) {
		p.grow()
	}
	if s := p.find(x); s.round != p.round {
		*s = pairSlot{uint32(x.def), x.id, p.round}
		p.len++
	}
}

// grow doubles the table.
func (p *pairSet) grow() {
	old := p.slots
	p.slots = make([]pairSlot, max(leastPairSlots, 2*len(old)))
	for _, s := range old {
		if s.round == p.round {
			*p.find(pair{int(s.def), s.id}) = s
		}
	}
}
