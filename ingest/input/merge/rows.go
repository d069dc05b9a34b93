package merge

import (
	"hash/maphash"
	"iter"
	"math"
	"sync"

	"symbolize/ingest/intern"
)

// Labels separate samples with equal stacks.
type Labels struct {
	Comm          uint32 // decoded by the shard's Comms
	PID, TID, CPU int32  // -1 if they are not kept
	Event         uint16
	Tags          uint32 // decoded by the shard's Tags
}

// Numbers numbers values for all workers. It is rarely called: readers keep the last result of each
// thread.
type Numbers[T comparable] struct {
	mu    sync.Mutex
	index map[T]uint32
	List  []T // by number; valid after all workers are done
}

// Number returns the index of a value in List, and adds a new value.
func (s *Numbers[T]) Number(v T) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.index[v]
	if !ok {
		if s.index == nil {
			s.index = make(map[T]uint32)
		}
		n = uint32(len(s.List))
		s.List = append(s.List, v)
		s.index[v] = n
	}
	return n
}

// At returns the value of a number.
func (s *Numbers[T]) At(n uint32) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.List[n]
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
