package ingest

import (
	"hash/maphash"
	"unsafe"
)

// rowKey is what samples are folded by: the two parts of the stack and the
// labels.
type rowKey struct {
	kernel, user  uint32 // numbers of located parts
	comm          uint32 // commCode
	pid, tid, cpu int32
	event         uint32 // of the profile
}

// row is a folded sample.
type row struct {
	rowKey
	count  uint64
	weight uint64
}

const (
	rowPageBits = 12
	rowPage     = 1 << rowPageBits
)

// rowTable folds samples. It is intern.Table with the values beside the keys.
type rowTable struct {
	seed  maphash.Seed
	slots []uint64 // high half of the hash, and number + 1
	pages [][]row
	n     int
}

func newRowTable() *rowTable {
	return &rowTable{seed: maphash.MakeSeed(), slots: make([]uint64, 1<<8)}
}

func (t *rowTable) at(i int) *row { return &t.pages[i>>rowPageBits][i&(rowPage-1)] }

func (t *rowTable) hash(k *rowKey) uint64 {
	// rowKey is seven 32-bit words without padding.
	return maphash.Bytes(t.seed, (*[unsafe.Sizeof(rowKey{})]byte)(unsafe.Pointer(k))[:])
}

// add counts count samples of this weight.
func (t *rowTable) add(k *rowKey, count, weight uint64) {
	h := t.hash(k)
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		if t.slots[i]>>32 == h>>32 {
			if r := t.at(int(uint32(t.slots[i]) - 1)); r.rowKey == *k {
				r.count += count
				r.weight += weight
				return
			}
		}
	}
	if t.n>>rowPageBits == len(t.pages) {
		t.pages = append(t.pages, make([]row, rowPage))
	}
	*t.at(t.n) = row{*k, count, weight}
	t.n++
	t.slots[i] = h&^(1<<32-1) | uint64(t.n)
	if t.n*4 > len(t.slots)*3 {
		t.grow()
	}
}

func (t *rowTable) grow() {
	t.slots = make([]uint64, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n := range t.n {
		h := t.hash(&t.at(n).rowKey)
		i := h & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = h&^(1<<32-1) | uint64(n+1)
	}
}
