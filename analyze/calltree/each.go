package calltree

import "iter"

// All returns the stacks of nodes, outermost first, with their values. The nodes are marked
// where they are of inlined calls, see Inlined; the slice is the stacks' own.
func (s *Stacks) All() iter.Seq2[[]NodeID, uint64] {
	return func(yield func([]NodeID, uint64) bool) {
		for i := range s.ends {
			if !yield(s.stack(i), s.values[i]) {
				return
			}
		}
	}
}

// Inlined returns the number of a node of a stack, and whether its call was inlined.
func (n NodeID) Inlined() (NodeID, bool) { return n &^ inlinedBit, n&inlinedBit != 0 }
