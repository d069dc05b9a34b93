package addrspace

import (
	"math/rand/v2"

	"symbolize/ingest/addr"
)

// A tree holds the pieces of one address space: disjoint address ranges, each showing a part of one
// mapping. Trees are persistent treaps: a change makes a new root and copies the path to it, so
// that the trees of all times, and of all forks, share their common nodes. (Copying a sorted slice
// per change is quadratic: 10,000 mappings in one process took 2.7 GB.)
//
// Nodes are numbered and stored in pages without pointers, which the garbage collector skips.
type tree uint32 // number of the root node; 0 is the empty tree

type node struct {
	start, end addr.PC
	mapping    uint32
	left       tree
	right      tree
	epoch      uint32 // of the forest when the node was made
}

const (
	pageBits = 12
	pageSize = 1 << pageBits
)

// A forest is the memory of many trees. Nodes made in the current epoch belong to one tree and are
// changed in place; older nodes may be shared.
type forest struct {
	pages [][]node
	n     uint32
	epoch uint32
	seed  uint64 // of the priorities, random: a hostile capture cannot choose the shape
}

func newForest() *forest { return &forest{n: 1, seed: rand.Uint64(), epoch: 1} }

// seal ends the epoch: existing nodes no longer change.
func (f *forest) seal() { f.epoch++ }

func (f *forest) at(t tree) *node { return &f.pages[t>>pageBits][t&(pageSize-1)] }

func (f *forest) alloc(n node) tree {
	if int(f.n>>pageBits) == len(f.pages) {
		f.pages = append(f.pages, make([]node, pageSize))
	}
	t := tree(f.n)
	f.n++
	n.epoch = f.epoch
	*f.at(t) = n
	return t
}

// own returns t, or a copy that may be changed.
func (f *forest) own(t tree) tree {
	if n := f.at(t); n.epoch != f.epoch {
		return f.alloc(*n)
	}
	return t
}

// priority is the heap order of a node. It depends only on the piece, so that copies keep their
// place.
func (f *forest) priority(n *node) uint64 {
	x := (uint64(n.start) ^ f.seed) * 0x9e3779b97f4a7c15
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// find returns the piece that covers pc.
func (f *forest) find(t tree, pc addr.PC) (*node, bool) {
	for t != 0 {
		n := f.at(t)
		switch {
		case pc < n.start:
			t = n.left
		case pc >= n.end:
			t = n.right
		default:
			return n, true
		}
	}
	return nil, false
}

// split splits t into the pieces that start below pc and the others.
func (f *forest) split(t tree, pc addr.PC) (below, above tree) {
	if t == 0 {
		return 0, 0
	}
	t = f.own(t)
	if f.at(t).start < pc {
		l, r := f.split(f.at(t).right, pc)
		f.at(t).right = l
		return t, r
	}
	l, r := f.split(f.at(t).left, pc)
	f.at(t).left = r
	return l, t
}

// merge joins two trees; every piece of a must be below every piece of b.
func (f *forest) merge(a, b tree) tree {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	case f.priority(f.at(a)) > f.priority(f.at(b)):
		a = f.own(a)
		r := f.merge(f.at(a).right, b)
		f.at(a).right = r
		return a
	default:
		b = f.own(b)
		l := f.merge(a, f.at(b).left)
		f.at(b).left = l
		return b
	}
}

// last returns the highest piece of t, or nil.
func (f *forest) last(t tree) *node {
	if t == 0 {
		return nil
	}
	for f.at(t).right != 0 {
		t = f.at(t).right
	}
	return f.at(t)
}

// cut removes everything in [start, end) from t and returns the parts below and above.
func (f *forest) cut(t tree, start, end addr.PC) (below, above tree) {
	below, rest := f.split(t, start)
	inside, above := f.split(rest, end)
	var tail node // of a piece across end
	if n := f.last(inside); n != nil && n.end > end {
		tail = node{start: end, end: n.end, mapping: n.mapping}
	}
	if n := f.last(below); n != nil && n.end > start {
		if n.end > end {
			tail = node{start: end, end: n.end, mapping: n.mapping}
		}
		below = f.trim(below, start)
	}
	if tail.end != 0 {
		above = f.merge(f.alloc(tail), above)
	}
	return below, above
}

// trim makes the highest piece of t end at pc.
func (f *forest) trim(t tree, pc addr.PC) tree {
	t = f.own(t)
	if f.at(t).right == 0 {
		f.at(t).end = pc
		return t
	}
	r := f.trim(f.at(t).right, pc)
	f.at(t).right = r
	return t
}

// cover puts a mapping over any existing ones in [start, end).
func (f *forest) cover(t tree, start, end addr.PC, mapping uint32) tree {
	below, above := f.cut(t, start, end)
	n := f.alloc(node{start: start, end: end, mapping: mapping})
	return f.merge(f.merge(below, n), above)
}

// within calls yield for the pieces of t that start in [start, end), in order of
// address.
func (f *forest) within(t tree, start, end addr.PC, yield func(*node)) {
	if t == 0 {
		return
	}
	n := f.at(t)
	if n.start >= start {
		f.within(n.left, start, end, yield)
		if n.start < end {
			yield(n)
		}
	}
	if n.start < end {
		f.within(n.right, start, end, yield)
	}
}

// uncover removes the pieces of a mapping in [start, end).
func (f *forest) uncover(t tree, start, end addr.PC, mapping uint32) tree {
	below, rest := f.split(t, start)
	inside, above := f.split(rest, end)
	var kept tree
	f.within(inside, start, end, func(n *node) {
		if n.mapping != mapping {
			piece := f.alloc(node{start: n.start, end: n.end, mapping: n.mapping})
			kept = f.merge(kept, piece)
		}
	})
	return f.merge(f.merge(below, kept), above)
}
