package merge

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"sync"

	"symbolize/ingest/fold/intern"
)

// Labels separate samples with equal stacks.
type Labels struct {
	Comm          uint32 // decoded by the shard's Comms
	PID, TID, CPU int32  // -1 if they are not kept
	Event         uint16
	Tags          uint32 // decoded by the shard's Tags
}

// LabelSet numbers labels for all workers. It is rarely called: readers keep the last result of
// each thread.
type LabelSet struct {
	mu    sync.Mutex
	index map[Labels]uint32
	List  []Labels // by number; valid after all workers are done
}

// Number returns the index of labels in List, and adds new labels.
func (s *LabelSet) Number(l Labels) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.index[l]
	if !ok {
		if s.index == nil {
			s.index = make(map[Labels]uint32)
		}
		n = uint32(len(s.List))
		s.List = append(s.List, l)
		s.index[l] = n
	}
	return n
}

// Row is a folded sample, in 24 bytes because there are as many as distinct stacks. A count of 0
// means no row.
type Row struct {
	Stack  uint32 // node
	Label  uint32
	Count  uint32
	Weight uint64
}

// RowTable folds samples. It is built like intern.Table, with the keys in the values.
//
// Rows are added in groups, because nearly all of the time went to cache misses: the slots of a
// group are read before any is compared, so that the misses overlap.
type RowTable struct {
	seed  maphash.Seed
	parts [intern.NumParts]rowPart
	group [intern.GroupSize]hashedRow // to be added
	n     int                         // rows in group
	read  uint32                      // keeps the compiler from dropping reads ahead
}

type hashedRow struct {
	Row
	hash uint32
}

type rowPart struct {
	slots []Row
	n     int
}

// NewRowTable returns an empty table.
func NewRowTable() *RowTable { return &RowTable{seed: maphash.MakeSeed()} }

func (t *RowTable) hash(r *Row) uint32 {
	var key [8]byte
	binary.LittleEndian.PutUint32(key[:], r.Stack)
	binary.LittleEndian.PutUint32(key[4:], r.Label)
	return uint32(maphash.Bytes(t.seed, key[:]) >> 32)
}

// Add counts a row; its count is at least 1. If the count of a row would overflow, a second row of
// the same key is added.
func (t *RowTable) Add(r Row) {
	t.group[t.n] = hashedRow{r, t.hash(&r)}
	if t.n++; t.n == len(t.group) {
		t.flush()
	}
}

// flush adds the group to the parts.
func (t *RowTable) flush() {
	group := t.group[:t.n]
	t.n = 0
	for i := range group {
		p := &t.parts[intern.PartOf(group[i].hash)]
		if len(p.slots) > 0 {
			t.read += p.slots[intern.Home(group[i].hash, len(p.slots))].Count
		}
	}
	for i := range group {
		r := &group[i]
		p := &t.parts[intern.PartOf(r.hash)]
		if intern.Crowded(p.n+1, len(p.slots)) {
			t.grow(p)
		}
		s := p.probe(r.hash, &r.Row)
		if s.Count == 0 {
			p.n++
			*s = r.Row
			continue
		}
		s.Count += r.Count
		s.Weight += r.Weight
	}
}

// probe returns the slot that counts r.
func (p *rowPart) probe(h uint32, r *Row) *Row {
	for i := intern.Home(h, len(p.slots)); ; i++ {
		if i == len(p.slots) {
			i = 0
		}
		s := &p.slots[i]
		if s.Count == 0 || s.Stack == r.Stack && s.Label == r.Label &&
			s.Count <= math.MaxUint32-r.Count {
			return s
		}
	}
}

func (t *RowTable) grow(p *rowPart) {
	old := p.slots
	p.slots = intern.Grown(old)
	for i := range old {
		if old[i].Count != 0 {
			*p.probe(t.hash(&old[i]), &old[i]) = old[i]
		}
	}
}

// Lists returns the rows, in no particular order, and ends the table.
func (t *RowTable) Lists() [][]Row {
	t.flush()
	var out [][]Row
	for i := range t.parts {
		list := t.parts[i].slots[:0]
		for _, r := range t.parts[i].slots {
			if r.Count != 0 {
				list = append(list, r)
			}
		}
		out = append(out, list)
		t.parts[i] = rowPart{}
	}
	return out
}
