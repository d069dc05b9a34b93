package input

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
	seed  maphash.Seed
	parts [intern.NumParts]rowPart
}

type rowPart struct {
	slots []row
	n     int
}

func newRowTable() *rowTable { return &rowTable{seed: maphash.MakeSeed()} }

func (t *rowTable) hash(r *row) uint32 {
	var key [12]byte
	binary.LittleEndian.PutUint32(key[:], r.kernel)
	binary.LittleEndian.PutUint32(key[4:], r.user)
	binary.LittleEndian.PutUint32(key[8:], r.label)
	return uint32(maphash.Bytes(t.seed, key[:]) >> 32)
}

// add counts a row; its count is at least 1. A row that cannot count on is
// followed by another of the same key.
func (t *rowTable) add(r row) {
	h := t.hash(&r)
	p := &t.parts[intern.PartOf(h)]
	if intern.Crowded(p.n+1, len(p.slots)) {
		t.grow(p)
	}
	s := p.probe(h, &r)
	if s.count == 0 {
		p.n++
		*s = r
		return
	}
	s.count += r.count
	s.weight += r.weight
}

// probe returns the slot in which r can be counted.
func (p *rowPart) probe(h uint32, r *row) *row {
	for i := intern.Home(h, len(p.slots)); ; i++ {
		if i == len(p.slots) {
			i = 0
		}
		s := &p.slots[i]
		if s.count == 0 || s.kernel == r.kernel && s.user == r.user && s.label == r.label &&
			s.count <= math.MaxUint32-r.count {
			return s
		}
	}
}

func (t *rowTable) grow(p *rowPart) {
	old := p.slots
	p.slots = intern.Grown(old)
	for i := range old {
		if old[i].count != 0 {
			*p.probe(t.hash(&old[i]), &old[i]) = old[i]
		}
	}
}

// lists returns the rows, in no particular order, and ends the table.
func (t *rowTable) lists() [][]row {
	var out [][]row
	for i := range t.parts {
		list := t.parts[i].slots[:0]
		for _, r := range t.parts[i].slots {
			if r.count != 0 {
				list = append(list, r)
			}
		}
		out = append(out, list)
		t.parts[i] = rowPart{}
	}
	return out
}
