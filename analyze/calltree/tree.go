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
	// Limit leaves out all nodes but as many of the heaviest, without the root; 0 is no limit.
	Limit int
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

// treeBuilder splits a list of items by their next node, level by level. It looks only at nodes
// that are kept, so that pruning bounds its time and memory. Items are frames, whose next nodes are
// the frames that they call; of a reversed tree stacks, with one next node: the next caller.
type treeBuilder struct {
	s       *Stacks
	opts    TreeOptions
	min     uint64
	minBase uint64
	items   []uint32 // each tree node has a range of it
	scratch []uint32
	sum     side     // of the next nodes: by frame, with all that it calls, or by stack
	size    []uint32 // by frame: of its subtree, in frames
	next    []uint32 // by stack of a reversed tree: the next frame
	slot    []uint32 // by node: its group plus one while a range is split
	groups  []group
	ranges  []span // by tree node
	tree    *Tree
}

// side holds values, and values of the base, if any.
type side struct{ values, base []uint64 }

func (v *side) at(i uint32) (value, base uint64) {
	if v.base != nil {
		base = v.base[i]
	}
	return v.values[i], base
}

type span struct{ from, to uint32 }

// group holds the items of a range that have the same next node.
type group struct {
	node           NodeID
	items          uint32
	place          uint32
	cum, base, inl uint64
	leftOut        bool
}

// Tree builds the call tree of the stacks. It is deterministic.
func (s *Stacks) Tree(opts TreeOptions) *Tree {
	b := s.newTreeBuilder(opts)
	if !opts.Reverse {
		b.items = []uint32{0}
	}
	for i, leaf := range s.leaves {
		if opts.Reverse {
			b.next[i] = leaf
			b.items = append(b.items, uint32(i))
		}
	}
	return b.build(TreeNode{Node: NoNode, Parent: -1, Cum: s.Kept, BaseCum: s.BaseKept})
}

// TreeOf builds the tree of the calls that one node makes, or with Reverse of its callers. The root
// is the node; shares are of its cumulative value. Of a recursive function, calls begin at the
// outermost frame and callers at the innermost one, so that each stack counts once.
func (s *Stacks) TreeOf(node NodeID, opts TreeOptions) *Tree {
	b := s.newTreeBuilder(opts)
	root := TreeNode{Node: node, Parent: -1}
	add := func(item uint32) {
		value, base := b.sum.at(item)
		root.Cum, root.BaseCum = root.Cum+value, root.BaseCum+base
		b.items = append(b.items, item)
	}
	if opts.Reverse {
		for i, f := range s.leaves {
			for f != 0 && s.frames[f].node&^inlinedBit != node {
				f = s.frames[f].caller
			}
			if f != 0 {
				b.next[i] = s.frames[f].caller
				add(uint32(i))
			}
		}
		return b.build(root)
	}
	for f := uint32(1); f < uint32(len(s.frames)); f++ {
		if s.frames[f].node&^inlinedBit == node {
			add(f)
			f += b.size[f] - 1
		}
	}
	return b.build(root)
}

// newTreeBuilder returns a builder without items.
func (s *Stacks) newTreeBuilder(opts TreeOptions) *treeBuilder {
	b := &treeBuilder{s: s, opts: opts, slot: make([]uint32, len(s.Nodes)),
		tree: &Tree{Stacks: s, Reverse: opts.Reverse}}
	if opts.Reverse {
		b.sum = side{s.values, s.base}
		b.next = make([]uint32, len(s.leaves))
		return b
	}
	b.sum.values = below(s, s.values)
	if s.base != nil {
		b.sum.base = below(s, s.base)
	}
	b.size = make([]uint32, len(s.frames))
	for f := len(b.size) - 1; f >= 0; f-- {
		b.size[f]++
		if f > 0 {
			b.size[s.frames[f].caller] += b.size[f]
		}
	}
	return b
}

// build makes the tree below a root with the items of the builder.
func (b *treeBuilder) build(root TreeNode) *Tree {
	b.min, b.minBase = threshold(b.opts.MinShare, root.Cum), threshold(b.opts.MinShare, root.BaseCum)
	b.tree.Nodes = append(b.tree.Nodes, root)
	b.ranges = append(b.ranges, span{0, uint32(len(b.items))})
	for i := 0; i < len(b.tree.Nodes); i++ {
		b.split(int32(i))
	}
	b.tree.cut(b.opts.Limit)
	return b.tree
}

// cut leaves the heaviest nodes: of equal ones the callers of others, which come first. Children are
// sorted by weight, so that those that are left are the first of each node.
func (t *Tree) cut(limit int) {
	if limit == 0 || len(t.Nodes) <= limit+1 {
		return
	}
	order := make([]int32, len(t.Nodes)-1)
	for i := range order {
		order[i] = int32(i) + 1
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.Nodes[b].Cum, t.Nodes[a].Cum), cmp.Compare(a, b))
	})
	place := make([]int32, len(t.Nodes)) // of the nodes that are left, plus one
	place[0] = 1
	slices.Sort(order[:limit])
	for i, n := range order[:limit] {
		place[n] = int32(i) + 2
	}
	left := make([]TreeNode, 0, limit+1)
	for i, n := range t.Nodes {
		if place[i] == 0 {
			continue
		}
		if n.Parent >= 0 {
			n.Parent = place[n.Parent] - 1
		}
		children := n.Children
		n.Children = 0
		for c := n.First; c < n.First+children; c++ {
			if place[c] > 0 {
				n.Children++
				continue
			}
			n.Left, n.LeftBase = n.Left+t.Nodes[c].Cum, n.LeftBase+t.Nodes[c].BaseCum
			t.LeftOut++
			t.LeftValue += t.Nodes[c].Cum
		}
		if n.Children > 0 {
			n.First = place[n.First] - 1
		}
		left = append(left, n)
	}
	t.Nodes = left
}

// threshold is the least value that is kept: at least 1.
func threshold(share float64, total uint64) uint64 {
	return max(1, uint64(math.Ceil(share*float64(total))))
}

// each calls visit for the next nodes of an item: with the item that follows, and the frame.
func (b *treeBuilder) each(item uint32, visit func(item, f uint32)) {
	if b.opts.Reverse {
		if f := b.next[item]; f != 0 {
			visit(item, f)
		}
		return
	}
	for f := item + 1; f < item+b.size[item]; f += b.size[f] {
		visit(f, f)
	}
}

// split makes the children of a tree node.
func (b *treeBuilder) split(of int32) {
	n, r := &b.tree.Nodes[of], b.ranges[of]
	b.gather(n, b.items[r.from:r.to])
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
	b.arrange(r)
	n.First = int32(len(b.tree.Nodes))
	depth := n.Depth + 1
	for _, g := range b.sorted() {
		n.Children++
		b.ranges = append(b.ranges, span{g.place, g.place + g.items})
		b.tree.Nodes = append(b.tree.Nodes, TreeNode{Node: g.node, Parent: of, Depth: depth,
			Cum: g.cum, BaseCum: g.base, Inlined: g.inl})
		n = &b.tree.Nodes[of]
	}
}

// gather adds up the items of a range by their next node, in b.groups.
func (b *treeBuilder) gather(n *TreeNode, items []uint32) {
	b.groups = b.groups[:0]
	for _, item := range items {
		flat, flatBase := b.sum.at(item) // of the stacks that end here: all without those that go on
		b.each(item, func(next, f uint32) {
			id := b.s.frames[f].node
			node := id &^ inlinedBit
			if b.slot[node] == 0 {
				b.groups = append(b.groups, group{node: node})
				b.slot[node] = uint32(len(b.groups))
			}
			g := &b.groups[b.slot[node]-1]
			v, base := b.sum.at(next)
			flat, flatBase = flat-v, flatBase-base
			g.items++
			g.cum += v
			g.base += base
			if id != node {
				g.inl += v
			}
		})
		n.Flat += flat
		n.BaseFlat += flatBase
	}
}

// arrange lists the next items of a range by group: in place of the items of a reversed tree, which
// are not more, else after all items.
func (b *treeBuilder) arrange(r span) {
	items, place := b.items[r.from:r.to], uint32(len(b.items))
	if b.opts.Reverse {
		b.scratch = append(b.scratch[:0], items...)
		items, place = b.scratch, r.from
	}
	for i := range b.groups {
		if g := &b.groups[i]; !g.leftOut {
			g.place = place
			place += g.items
		}
	}
	if n := int(place) - len(b.items); n > 0 {
		b.items = slices.Grow(b.items, n)[:place]
	}
	for _, item := range items {
		b.each(item, func(next, f uint32) {
			g := &b.groups[b.slot[b.s.frames[f].node&^inlinedBit]-1]
			if g.leftOut {
				return
			}
			b.items[g.place] = next
			g.place++
			if b.opts.Reverse {
				b.next[next] = b.s.frames[f].caller
			}
		})
	}
	for i := range b.groups {
		g := &b.groups[i]
		b.slot[g.node] = 0
		if !g.leftOut {
			g.place -= g.items
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
