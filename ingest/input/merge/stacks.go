package merge

import (
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"slices"
	"sync"

	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/intern"
)

// tree is a tree of stacks in the order of a Profile: a node is followed by its children, in the
// order of their locations.
type tree struct {
	values []ingest.LocationID
	sizes  []uint32 // of subtrees, in nodes
}

// folded are folded samples, with stacks in a tree of their own.
type folded struct {
	tree
	packed    intern.Tree         // until it is sorted
	locations []ingest.LocationID // of the nodes' values
	rows      [][]Row
}

// split appends a part for each tree of a forest to parts, with the rows of stacks in that tree.
// The rows of all parts are appended to list. locations are the locations of the forest's values.
func split(list []Row, parts []*folded, rows iter.Seq[Row], trees []intern.Tree,
	locations []ingest.LocationID) ([]Row, []*folded) {
	base := make([]uint32, len(trees)) // numbers of the trees' first nodes
	for i := range trees[1:] {
		base[i+1] = base[i] + uint32(trees[i].Len())
	}
	treeOf := func(stack uint32) int {
		i, found := slices.BinarySearch(base, stack)
		if !found {
			i--
		}
		return i
	}
	sizes, total := make([]int, len(trees)), 0
	for r := range rows {
		sizes[treeOf(r.Stack)]++
		total++
	}
	list = slices.Grow(list, total)
	own := make([][]Row, len(trees))
	for i, n := range sizes {
		end := len(list) + n
		own[i] = list[end-n : end-n : end]
		list = list[:end]
	}
	for r := range rows {
		at := treeOf(r.Stack)
		r.Stack -= base[at]
		own[at] = append(own[at], r)
	}
	for i, t := range trees {
		parts = append(parts, &folded{packed: t, locations: locations, rows: own[i : i+1 : i+1]})
	}
	return list, parts
}

// each calls do for 0 ≤ i < n on all cores.
func each(n int, do func(i int)) {
	_ = files.Each(context.Background(), 0, n, func(_ context.Context, i int) error {
		do(i)
		return nil
	})
}

func (f *folded) renumber(number []uint32) {
	for _, rows := range f.rows {
		for i := range rows {
			rows[i].Stack = number[rows[i].Stack]
		}
	}
}

// arrange makes the tree of the nodes.
func (f *folded) arrange() {
	nodes := f.packed.Nodes()
	for n := 1; n < len(nodes); n++ {
		v := &nodes[n].Value
		*v = uint32(f.locations[*v])
	}
	f.renumber(f.sort(nodes))
	f.packed = intern.Tree{}
}

// sort sets the tree to nodes with locations as values, and returns the new number of each node.
// Children of a node with the same location become one.
func (t *tree) sort(nodes []intern.Node) (number []uint32) {
	c := childrenOf(nodes)
	number = make([]uint32, len(nodes))
	*t = newTree(len(nodes))
	type open struct { // a node of the tree
		children []uint32 // not yet in the tree
		at       int
	}
	stack := []open{{c.of(0), 0}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.children) == 0 {
			t.end(top.at)
			stack = stack[:len(stack)-1]
			continue
		}
		n, value := 1, nodes[top.children[0]].Value
		for n < len(top.children) && nodes[top.children[n]].Value == value {
			n++
		}
		same := top.children[:n]
		top.children = top.children[n:]
		at := t.add(ingest.LocationID(value))
		below := c.of(same[0])
		for i, id := range same {
			number[id] = uint32(at)
			if i > 0 {
				below = append(slices.Clip(below), c.of(id)...)
			}
		}
		if n > 1 {
			sortNodes(below, nodes)
		}
		stack = append(stack, open{below, at})
	}
	return number
}

// newTree returns a tree of node 0.
func newTree(nodes int) tree {
	t := tree{make([]ingest.LocationID, 0, nodes), make([]uint32, 0, nodes)}
	t.add(0)
	return t
}

// add adds a node without children, and returns its number.
func (t *tree) add(l ingest.LocationID) int {
	t.values, t.sizes = append(t.values, l), append(t.sizes, 1)
	return len(t.values) - 1
}

// end ends the subtree of a node.
func (t *tree) end(at int) { t.sizes[at] = uint32(len(t.values) - at) }

// children are the children of all nodes of a tree.
type children struct {
	start []uint32 // in list, by node
	list  []uint32
}

func (c *children) of(node uint32) []uint32 { return c.list[c.start[node]:c.start[node+1]] }

// childrenOf returns the children of each node in the order of their values.
func childrenOf(nodes []intern.Node) *children {
	n := len(nodes)
	c := &children{start: make([]uint32, n+1), list: make([]uint32, n-1)}
	for id := 1; id < n; id++ {
		c.start[nodes[id].Parent]++
	}
	sum := uint32(0)
	for id := range c.start {
		sum += c.start[id]
		c.start[id] = sum // the end, until the list is filled
	}
	for id := n - 1; id > 0; id-- {
		at := &c.start[nodes[id].Parent]
		*at--
		c.list[*at] = uint32(id)
	}
	for id := range uint32(n) {
		sortNodes(c.of(id), nodes)
	}
	return c
}

func sortNodes(list []uint32, nodes []intern.Node) {
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b uint32) int {
			return cmp.Compare(nodes[a].Value, nodes[b].Value)
		})
	}
}

// joinStacks makes one tree of all, two at a time, and returns it as Profile has it.
func joinStacks(parts []*folded) ([]ingest.StackID, []ingest.LocationID) {
	each(len(parts), func(i int) { parts[i].arrange() })
	for len(parts) > 1 {
		half := (len(parts) + 1) / 2
		each(len(parts)-half, func(i int) {
			parts[i].join(parts[i+half])
			parts[i+half] = nil
		})
		parts = parts[:half]
	}
	if len(parts) == 0 {
		return make([]ingest.StackID, 1), make([]ingest.LocationID, 1)
	}
	return parts[0].callers(), parts[0].values
}

// join adds other, which is released.
func (f *folded) join(other *folded) {
	all, here, there := joinTrees(&f.tree, &other.tree)
	f.tree, other.tree = all, tree{}
	f.renumber(here)
	other.renumber(there)
	f.rows = append(f.rows, other.rows...)
}

// joinTrees returns the tree with the nodes of both, and the number in it of each node. Most of it
// are subtrees of one, which are copied as a whole.
func joinTrees(a, b *tree) (out tree, inA, inB []uint32) {
	out = newTree(len(a.values) + len(b.values))
	inA, inB = make([]uint32, len(a.values)), make([]uint32, len(b.values))
	type open struct { // a node of both trees
		at         int
		endA, endB uint32 // of the subtree around it
	}
	i, j, endA, endB := uint32(1), uint32(1), uint32(len(a.values)), uint32(len(b.values))
	var stack []open
	for {
		switch {
		case i == endA && j == endB:
			if len(stack) == 0 {
				out.end(0)
				return out, inA, inB
			}
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			out.end(top.at)
			endA, endB = top.endA, top.endB
		case j == endB || i < endA && a.values[i] < b.values[j]:
			i = out.copy(a, i, inA)
		case i == endA || b.values[j] < a.values[i]:
			j = out.copy(b, j, inB)
		default:
			at := out.add(a.values[i])
			inA[i], inB[j] = uint32(at), uint32(at)
			stack = append(stack, open{at, endA, endB})
			endA, endB = i+a.sizes[i], j+b.sizes[j]
			i++
			j++
		}
	}
}

// copy copies the subtree of a node, sets the numbers of its nodes, and returns the node after it.
func (t *tree) copy(from *tree, node uint32, number []uint32) (next uint32) {
	next = node + from.sizes[node]
	at := uint32(len(t.values))
	t.values = append(t.values, from.values[node:next]...)
	t.sizes = append(t.sizes, from.sizes[node:next]...)
	for n := node; n < next; n++ {
		number[n] = at + n - node
	}
	return next
}

// callers returns the parent of each node.
func (t *tree) callers() []ingest.StackID {
	callers := make([]ingest.StackID, len(t.sizes))
	for s, n := range t.sizes { // outer subtrees first
		for k := s + 1; k < s+int(n); k += int(t.sizes[k]) {
			callers[k] = ingest.StackID(s)
		}
	}
	return callers
}

// countedTree is a tree of stacks, with the locations of its values.
type countedTree struct {
	intern.Tree
	locations []ingest.LocationID
	sampled   []bool // by node
}

// countStacks returns the number of distinct stacks with samples, by their hashes.
func countStacks(trees []countedTree) int {
	var mu sync.Mutex
	var stacks intern.Table[struct{}]
	seed := intern.MakeSeed()
	each(len(trees), func(i int) {
		t := &trees[i]
		nodes := t.Nodes()
		hashes := make([]intern.Hash, len(nodes)) // of node 0: zero
		var key []byte
		for n := 1; n < len(nodes); n++ {
			caller := hashes[nodes[n].Parent]
			key = binary.LittleEndian.AppendUint64(key[:0], caller.Hi)
			key = binary.LittleEndian.AppendUint64(key, caller.Lo)
			key = binary.LittleEndian.AppendUint32(key, uint32(t.locations[nodes[n].Value]))
			hashes[n] = seed.Hash(key)
		}
		mu.Lock()
		defer mu.Unlock()
		for n, sampled := range t.sampled {
			if sampled {
				stacks.Number(hashes[n])
			}
		}
	})
	return stacks.Len()
}

// SetStacks sets the stacks of a profile to the trees of a forest, and renumbers the stacks of its
// samples, which are numbers of the forest. locations are the locations of the forest's values.
func SetStacks(p *ingest.Profile, trees []intern.Tree, locations []ingest.LocationID) {
	rows := func(yield func(Row) bool) {
		for i := range p.Samples {
			if !yield(Row{Stack: uint32(p.Samples[i].Stack), Label: uint32(i)}) {
				return
			}
		}
	}
	list, parts := split(nil, nil, rows, trees, locations)
	p.Callers, p.Leaves = joinStacks(parts)
	for _, r := range list {
		p.Samples[r.Label].Stack = ingest.StackID(r.Stack)
	}
}
