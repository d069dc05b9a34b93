package calltree

import (
	"iter"
	"slices"
)

// frame is a node of the tree in which Stacks keeps its stacks, as a Profile does: most stacks have
// most of their frames in common with the stack before. The frames that a frame calls follow it,
// each followed by its own. Frame 0 is no frame; it calls the outermost ones.
type frame struct {
	caller uint32
	node   NodeID // with inlinedBit
}

// addFrame adds a frame, after the frames that its caller called before, and returns its number.
func (s *Stacks) addFrame(caller uint32, n NodeID) uint32 {
	s.frames = append(s.frames, frame{caller, n})
	return uint32(len(s.frames)) - 1
}

// addStack adds a stack that ends in a frame.
func (s *Stacks) addStack(leaf uint32, value uint64, squares float64) {
	s.Kept += value
	s.leaves = append(s.leaves, leaf)
	s.values = append(s.values, value)
	if s.folder.opts.Squares {
		s.squares = append(s.squares, squares)
	}
}

// addNodes adds the frames of a stack, outermost first, that it has not in common with the stack
// before, and returns the innermost.
func (s *Stacks) addNodes(list []NodeID) uint32 {
	same := 0
	for n := min(len(list), len(s.path)); same < n && s.frames[s.path[same]].node == list[same]; {
		same++
	}
	s.path = s.path[:same]
	leaf := uint32(0)
	if same > 0 {
		leaf = s.path[same-1]
	}
	for _, n := range list[same:] {
		leaf = s.addFrame(leaf, n)
		s.path = append(s.path, leaf)
	}
	return leaf
}

// All returns the stacks of nodes, outermost first, with their values. The nodes are marked where
// they are of inlined calls, see Inlined; the slice is valid until the next stack.
func (s *Stacks) All() iter.Seq2[[]NodeID, uint64] {
	return func(yield func([]NodeID, uint64) bool) {
		var list []NodeID
		for i, leaf := range s.leaves {
			list = list[:0]
			for f := leaf; f != 0; f = s.frames[f].caller {
				list = append(list, s.frames[f].node)
			}
			slices.Reverse(list)
			if !yield(list, s.values[i]) {
				return
			}
		}
	}
}

// Inlined returns the number of a node of a stack, and whether its call was inlined.
func (n NodeID) Inlined() (NodeID, bool) { return n &^ inlinedBit, n&inlinedBit != 0 }

// below adds up values of stacks by all their frames.
func below[T uint64 | float64](s *Stacks, values []T) []T {
	sums := make([]T, len(s.frames))
	for i, v := range values {
		sums[s.leaves[i]] += v
	}
	for f := len(sums) - 1; f > 0; f-- {
		sums[s.frames[f].caller] += sums[f]
	}
	return sums
}

// walk calls enter for each frame, after its caller, and leave when all frames that it calls were
// left.
func (s *Stacks) walk(enter, leave func(f uint32)) {
	var path []uint32
	for f := 1; f < len(s.frames); f++ {
		for len(path) > 0 && path[len(path)-1] != s.frames[f].caller {
			leave(path[len(path)-1])
			path = path[:len(path)-1]
		}
		path = append(path, uint32(f))
		enter(uint32(f))
	}
}
