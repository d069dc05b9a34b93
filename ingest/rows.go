package ingest

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"sync"

	"symbolize/ingest/intern"
)

// labels are what samples are kept apart by besides their stack.
type labels struct {
	comm          uint32 // commCode
	pid, tid, cpu int32  // -1 where Options.Keep leaves it out
	event         uint16
}

// labelSet numbers labels for all workers. It is asked seldom: readers keep the
// last answer for each thread.
type labelSet struct {
	mu    sync.Mutex
	index map[labels]uint32
	list  []labels
}

func (s *labelSet) number(l labels) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.index[l]
	if !ok {
		if s.index == nil {
			s.index = make(map[labels]uint32)
		}
		n = uint32(len(s.list))
		s.list = append(s.list, l)
		s.index[l] = n
	}
	return n
}

// row is a folded sample: 24 bytes, because there are as many as distinct stacks.
// A count of 0 is no row.
type row struct {
	kernel, user uint32 // numbers of parts
	label        uint32
	count        uint32
	weight       uint64
}

// rowTable folds samples. It is built like intern.Table, the keys in the values.
type rowTable struct {
	seed   maphash.Seed
	slots  []row
	n      int
	index  map[labels]uint32
	labels []labels
}

func newRowTable() *rowTable {
	return &rowTable{seed: maphash.MakeSeed(), slots: make([]row, 1<<8),
		index: make(map[labels]uint32)}
}

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
	if t.n*5 > len(t.slots)*4 {
		t.grow()
	}
	s := t.probe(&r)
	if s.count == 0 {
		t.n++
		*s = r
		return
	}
	s.count += r.count
	s.weight += r.weight
}

// probe returns the slot in which r can be counted.
func (t *rowTable) probe(r *row) *row {
	var key [12]byte
	binary.LittleEndian.PutUint32(key[:], r.kernel)
	binary.LittleEndian.PutUint32(key[4:], r.user)
	binary.LittleEndian.PutUint32(key[8:], r.label)
	h := maphash.Bytes(t.seed, key[:]) >> 32
	for i := int(h * uint64(len(t.slots)) >> 32); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		s := &t.slots[i]
		if s.count == 0 || s.kernel == r.kernel && s.user == r.user && s.label == r.label &&
			s.count <= math.MaxUint32-r.count {
			return s
		}
	}
}

func (t *rowTable) grow() {
	old := t.slots
	t.slots = make([]row, len(old)+len(old)/2)
	intern.AdviseHuge(t.slots)
	for i := range old {
		if old[i].count != 0 {
			*t.probe(&old[i]) = old[i]
		}
	}
}

// list returns the rows, in no particular order, and ends the table.
func (t *rowTable) list() []row {
	out := t.slots[:0]
	for _, r := range t.slots {
		if r.count != 0 {
			out = append(out, r)
		}
	}
	t.slots = nil
	return out
}
