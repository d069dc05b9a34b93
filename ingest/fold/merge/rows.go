package merge

import (
	"hash/maphash"
	"iter"
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

// Row is a folded sample.
type Row struct {
	Stack         uint32 // node
	Label         uint32
	Count, Weight uint64
}

// RowTable folds samples by stack and label. The zero RowTable is not usable; use NewRowTable.
type RowTable struct {
	seed maphash.Seed
	sums intern.Table[rowSums]
}

type rowSums struct{ count, weight uint64 }

// NewRowTable returns an empty table.
func NewRowTable() *RowTable { return &RowTable{seed: maphash.MakeSeed()} }

// Add counts a row. Its key is half of the hash, so that other rows cannot have the same.
func (t *RowTable) Add(r Row) {
	h := intern.Hash{Lo: uint64(r.Stack)<<32 | uint64(r.Label)}
	h.Hi = maphash.Comparable(t.seed, h.Lo) &^ math.MaxUint32
	sums, _ := t.sums.Add(h)
	sums.count += r.Count
	sums.weight += r.Weight
}

// All returns the rows, in no particular order.
func (t *RowTable) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for h, s := range t.sums.All() {
			if !yield(Row{uint32(h.Lo >> 32), uint32(h.Lo), s.count, s.weight}) {
				return
			}
		}
	}
}
