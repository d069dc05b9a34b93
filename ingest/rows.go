package ingest

import (
	"encoding/binary"
	"hash/maphash"
	"math"

	"symbolize/ingest/intern"
)

// labels are what samples are kept apart by besides their stack.
type labels struct {
	comm          uint32 // commCode
	pid, tid, cpu int32  // -1 where Options.Keep leaves it out
	event         uint16
}

// row is a folded sample: 24 bytes, because there are as many as distinct stacks.
type row struct {
	kernel, user uint32 // numbers of parts
	label        uint32
	count        uint32
	weight       uint64
}

const (
	rowPageBits = 12
	rowPage     = 1 << rowPageBits
)

// rowTable folds samples. It is an intern.Table with the keys in the values.
type rowTable struct {
	seed   maphash.Seed
	slots  []uint64 // as in intern.Table
	pages  [][]row
	n      int
	index  map[labels]uint32
	labels []labels
}

func newRowTable() *rowTable {
	return &rowTable{seed: maphash.MakeSeed(), slots: make([]uint64, 1<<8), index: make(map[labels]uint32)}
}

func (t *rowTable) at(i int) *row { return &t.pages[i>>rowPageBits][i&(rowPage-1)] }

// label numbers l.
func (t *rowTable) label(l labels) uint32 {
	n, ok := t.index[l]
	if !ok {
		n = uint32(len(t.labels))
		t.labels = append(t.labels, l)
		t.index[l] = n
	}
	return n
}

// add counts a row; its count is at least 1. A row that cannot count on is
// followed by another of the same key.
func (t *rowTable) add(r row) {
	var key [12]byte
	binary.LittleEndian.PutUint32(key[:], r.kernel)
	binary.LittleEndian.PutUint32(key[4:], r.user)
	binary.LittleEndian.PutUint32(key[8:], r.label)
	h := maphash.Bytes(t.seed, key[:]) >> 32
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		if t.slots[i]>>32 != h {
			continue
		}
		old := t.at(int(uint32(t.slots[i])) - 1)
		if old.kernel == r.kernel && old.user == r.user && old.label == r.label &&
			old.count <= math.MaxUint32-r.count {
			old.count += r.count
			old.weight += r.weight
			return
		}
	}
	if t.n>>rowPageBits == len(t.pages) {
		t.pages = append(t.pages, make([]row, rowPage))
	}
	*t.at(t.n) = r
	t.n++
	t.slots[i] = h<<32 | uint64(t.n)
	if t.n*4 > len(t.slots)*3 {
		t.slots = intern.Grow(t.slots)
	}
}
