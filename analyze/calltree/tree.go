package calltree

import (
	"cmp"
	"math"
	"slices"
)

// TreeOptions are for Tree.
type TreeOptions struct {
	// Reverse builds the tree from the leaves of stacks: the children of a node are its
	// callers.
	Reverse bool
	// MinShare leaves out nodes with less than this share of the stacks' total value, 0 to 1. With
	// a base it is the larger of the shares of both sides.
	MinShare float64
	// MaxDepth leaves out deeper nodes; 0 is no limit.
	MaxDepth int
}

// TreeNode is a node at one place of a tree.
type TreeNode struct {
	Node   NodeID // NoNode for the root
	Parent int32  // in Tree.Nodes; -1 for the root
	Depth  int32  // 0 for the root
	// The children are Nodes[First:First+Children], heaviest first, then by name.
	First, Children int32
	// Flat is the value of the stacks that end here, Cum of all stacks through it.
	Flat, Cum uint64
	// BaseFlat and BaseCum are the values of the base, if any.
	BaseFlat, BaseCum uint64
	// Inlined is the part of Cum with an inlined activation here.
	Inlined uint64
	// Left is the part of Cum in omitted children, LeftBase of BaseCum.
	Left, LeftBase uint64
}

// NoNode is the Node of the root of a tree.
const NoNode = noNode

// Tree is a call tree, parents before children.
type Tree struct {
	Stacks  *Stacks
	Reverse bool
	Nodes   []TreeNode // the root first
	// LeftOut is how many subtrees were left out, and LeftValue their value.
	LeftOut   int
	LeftValue uint64
}

// treeBuilder splits a list of stacks by their next node, level by level. It looks only at
// nodes that are kept, so that pruning bounds its time and memory.
type treeBuilder struct {
	s       *Stacks
	opts    TreeOptions
	min     uint64
	minBase uint64
	order   []uint32 // numbers of stacks; each tree node has a range of it
	scratch []uint32
	slot    []uint32 // by node: its group plus one while a range is split
	groups  []group
	ranges  []span // by tree node
	tree    *Tree
}

type span struct{ from, to uint32 }

// group holds the stacks of a range that have the same next node.
type group struct {
	node           NodeID
	stacks         uint32
	place          uint32
	cum, base, inl uint64
	leftOut        bool
}

// Tree builds the call tree of the stacks. It is deterministic.
func (s *Stacks) Tree(opts TreeOptions) *Tree {
	t := &Tree{Stacks: s, Reverse: opts.Reverse}
	b := &treeBuilder{s: s, opts: opts, tree: t, slot: make([]uint32, len(s.Nodes)),
		order: make([]uint32, len(s.ends)), scratch: make([]uint32, len(s.ends)),
		min: threshold(opts.MinShare, s.Kept), minBase: threshold(opts.MinShare, s.BaseKept)}
	for i := range b.order {
		b.order[i] = uint32(i)
	}
	root := TreeNode{Node: NoNode, Parent: -1, Cum: s.Kept, BaseCum: s.BaseKept}
	t.Nodes = append(t.Nodes, root)
	b.ranges = append(b.ranges, span{0, uint32(len(b.order))})
	for i := 0; i < len(t.Nodes); i++ {
		b.split(int32(i))
	}
	return t
}

// threshold is the least value that is kept: at least 1.
func threshold(share float64, total uint64) uint64 {
	return max(1, uint64(math.Ceil(share*float64(total))))
}

// at returns the node of a stack at a depth, and whether there is one.
func (b *treeBuilder) at(stack uint32, depth int32) (NodeID, bool) {
	nodes := b.s.stack(int(stack))
	switch {
	case int(depth) >= len(nodes):
		return 0, false
	case b.opts.Reverse:
		return nodes[len(nodes)-1-int(depth)], true
	}
	return nodes[depth], true
}

// split makes the children of a tree node.
func (b *treeBuilder) split(of int32) {
	n, r := &b.tree.Nodes[of], b.ranges[of]
	b.gather(n, b.order[r.from:r.to])
	deepest := b.opts.MaxDepth > 0 && int(n.Depth) >= b.opts.MaxDepth
	for i := range b.groups {
		g := &b.groups[i]
		if deepest || g.cum < b.min && (b.s.base == nil || g.base < b.minBase) {
			g.leftOut = true
			n.Left += g.cum
			n.LeftBase += g.base
			b.tree.LeftOut++
			b.tree.LeftValue += g.cum
		}
	}
	b.arrange(n.Depth, r)
	n.First = int32(len(b.tree.Nodes))
	depth := n.Depth + 1
	for _, g := range b.sorted() {
		n.Children++
		b.ranges = append(b.ranges, span{g.place, g.place + g.stacks})
		b.tree.Nodes = append(b.tree.Nodes, TreeNode{Node: g.node, Parent: of, Depth: depth,
			Cum: g.cum, BaseCum: g.base, Inlined: g.inl})
		n = &b.tree.Nodes[of]
	}
}

// gather adds up the stacks of a range by their next node, in b.groups.
func (b *treeBuilder) gather(n *TreeNode, stacks []uint32) {
	b.groups = b.groups[:0]
	for _, s := range stacks {
		v, base := b.s.values[s], uint64(0)
		if b.s.base != nil {
			base = b.s.base[s]
		}
		id, ok := b.at(s, n.Depth)
		if !ok {
			n.Flat += v
			n.BaseFlat += base
			continue
		}
		node := id &^ inlinedBit
		if b.slot[node] == 0 {
			b.groups = append(b.groups, group{node: node})
			b.slot[node] = uint32(len(b.groups))
		}
		g := &b.groups[b.slot[node]-1]
		g.stacks++
		g.cum += v
		g.base += base
		if id != node {
			g.inl += v
		}
	}
}

// arrange puts the stacks of a range into the order of their groups.
func (b *treeBuilder) arrange(depth int32, r span) {
	place := r.from
	for i := range b.groups {
		if g := &b.groups[i]; !g.leftOut {
			g.place = place
			place += g.stacks
		}
	}
	stacks := append(b.scratch[:0], b.order[r.from:r.to]...)
	next := func(g *group) uint32 { g.place++; return g.place - 1 }
	for _, s := range stacks {
		id, ok := b.at(s, depth)
		if !ok {
			continue
		}
		if g := &b.groups[b.slot[id&^inlinedBit]-1]; !g.leftOut {
			b.order[next(g)] = s
		}
	}
	for i := range b.groups {
		g := &b.groups[i]
		b.slot[g.node] = 0
		if !g.leftOut {
			g.place -= g.stacks
		}
	}
}

// sorted returns the groups that are kept, heaviest first, then by name.
func (b *treeBuilder) sorted() []group {
	kept := slices.DeleteFunc(b.groups, func(g group) bool { return g.leftOut })
	nodes := b.s.Nodes
	slices.SortFunc(kept, func(x, y group) int {
		return cmp.Or(cmp.Compare(y.cum, x.cum), cmp.Compare(y.base, x.base),
			compareNodes(&nodes[x.node], &nodes[y.node]), cmp.Compare(x.node, y.node))
	})
	return kept
}
