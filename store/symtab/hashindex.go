package symtab

import (
	"hash/maphash"
	"math/bits"
)

// hashIndex finds numbers by hashes. It is dense: a look-up in a large one mostly waits for memory,
// and a map needs twice as many accesses. Hashes are keyed, so that no file can choose names of one
// hash; no order comes from them.
type hashIndex struct {
	slots []uint64 // 32 bits of the hash, then the number; 0 is empty
	shift uint     // 64 − bits of len(slots)
	used  int
}

var (
	hashSeed = maphash.MakeSeed()
	hashKey  = maphash.Bytes(hashSeed, nil) | 1
)

// mix returns a hash of a number.
func mix(v uint64) uint64 {
	high, low := bits.Mul64(v, hashKey)
	return high ^ low
}

// find returns the first number of a hash that fits, 0 if there is none.
func (t *hashIndex) find(hash uint64, fits func(number uint32) bool) uint32 {
	if len(t.slots) == 0 {
		return 0
	}
	mask := len(t.slots) - 1
	for i := int(hash >> t.shift); t.slots[i] != 0; i = (i + 1) & mask {
		if s := t.slots[i]; s>>32 == hash>>32 && fits(uint32(s)) {
			return uint32(s)
		}
	}
	return 0
}

// add adds a number from 1 on.
func (t *hashIndex) add(hash uint64, number uint32) {
	if 2*t.used >= len(t.slots) {
		old := t.slots
		t.slots = make([]uint64, max(64, 2*len(old)))
		t.shift = 64 - uint(bits.TrailingZeros(uint(len(t.slots))))
		for _, s := range old {
			if s != 0 {
				t.put(s)
			}
		}
	}
	t.used++
	t.put(hash>>32<<32 | uint64(number))
}

func (t *hashIndex) put(s uint64) {
	mask := len(t.slots) - 1
	i := int(s >> t.shift)
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}
