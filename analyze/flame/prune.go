package flame

import (
	"cmp"
	"container/heap"
	"slices"

	"symbolize/analyze/calltree"
)

const (
	// maxDepth bounds the stacks of a page; deeper frames are left out.
	maxDepth = 1500
	// heavyShare is the share of all samples from which on a function has its heaviest path in the
	// page, maxHeavy how many such functions there are, and maxPaths how many nodes of such paths.
	heavyShare = 0.001
	maxHeavy   = 500
	maxPaths   = maxForward / 8
)

// cell is the weight of one column that ends in a node, and the weight of its omitted
// out.
type cell struct {
	column     uint16
	self, left uint64
}

// node is a frame at one place of a tree.
type node struct {
	frame    calltree.NodeID
	parent   int32
	depth    int32
	rank     int32   // how many nodes were kept before
	from, to uint32  // its rows in tree.order
	share    float64 // of an event's total, the greatest of all events
	inlined  bool    // each activation here was inlined
	kept     bool
	wanted   bool // part of the heaviest path of a heavy function
	cells    []cell
	children []int32 // kept ones, heaviest first
}

// tree is a tree of calls with the heaviest nodes of the rows.
type tree struct {
	r       *rows
	reverse bool
	nodes   []node // by the order in which they were found; the root first
	order   []uint32
	// LeftOut is how many subtrees were left out, and Heaviest the greatest share among them.
	leftOut  int
	heaviest float64

	queue   []int32 // a heap of nodes with unknown children
	wanted  []int32 // by row, how many of its frames are wanted; nil for none
	totals  []float64
	slot    []uint32 // by frame: its group plus one while a range is split
	groups  []childGroup
	scratch []uint32
}

// childGroup holds the rows of a range that go on in one frame.
type childGroup struct {
	frame   calltree.NodeID
	rows    uint32
	place   uint32
	inlined bool
	wanted  bool
	sums    []uint64 // by event
}

// newTree keeps nodes in the order of their weight until there are most, and omits those
// with less than minShare of every event. Without minShare, a tree from the roots begins with the
// heaviest paths of heavy functions: of stacks that all differ each node is light.
func newTree(r *rows, reverse bool, most int, minShare float64) *tree {
	t := &tree{r: r, reverse: reverse, order: make([]uint32, len(r.rows)),
		scratch: make([]uint32, len(r.rows)), slot: make([]uint32, len(r.nodes)),
		totals: make([]float64, len(r.events))}
	for i := range t.order {
		t.order[i] = uint32(i)
	}
	for i, e := range r.events {
		t.totals[i] = float64(max(1, e.Kept))
	}
	if !reverse && minShare == 0 {
		t.wantPaths()
	}
	t.nodes = append(t.nodes, node{frame: calltree.NoNode, parent: -1, share: 1,
		to: uint32(len(t.order))})
	t.queue = append(t.queue, 0)
	for kept := 0; len(t.queue) > 0; kept++ {
		next := &t.nodes[t.queue[0]]
		if kept >= most || next.share < minShare || next.depth > maxDepth {
			break
		}
		next.rank = int32(kept)
		t.expand(heap.Pop(t).(int32))
	}
	t.leave()
	return t
}

// wantPaths chooses the row with the heaviest path to each heavy function.
func (t *tree) wantPaths() {
	type path struct {
		row    uint32
		frames int32
		share  float64
	}
	t.wanted = make([]int32, len(t.r.rows))
	heaviest := make([]path, len(t.r.nodes)) // by frame
	sums := make([]float64, len(t.r.nodes))
	for i := range t.r.rows {
		r := &t.r.rows[i]
		share := float64(r.value) / t.totals[t.r.columns[r.column].Event]
		for depth := range int32(min(r.to-r.from, maxDepth)) {
			marked, _ := t.at(r, depth)
			frame, _ := marked.Inlined()
			if t.slot[frame] == uint32(i)+1 {
				continue // recursion counts once
			}
			t.slot[frame] = uint32(i) + 1
			sums[frame] += share
			if p := &heaviest[frame]; share > p.share || share == p.share && depth < p.frames-1 {
				*p = path{uint32(i), depth + 1, share}
			}
		}
	}
	clear(t.slot)
	var heavy []int
	for frame, sum := range sums {
		if sum >= heavyShare {
			heavy = append(heavy, frame)
		}
	}
	slices.SortStableFunc(heavy, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	nodes := maxPaths
	for _, frame := range heavy[:min(len(heavy), maxHeavy)] {
		p := &heaviest[frame]
		if nodes -= int(max(0, p.frames-t.wanted[p.row])); nodes < 0 {
			break
		}
		t.wanted[p.row] = max(t.wanted[p.row], p.frames)
	}
}

// expand keeps a node and finds its children.
func (t *tree) expand(i int32) {
	n := &t.nodes[i]
	n.kept = true
	if n.parent >= 0 {
		parent := &t.nodes[n.parent]
		parent.children = append(parent.children, i)
	}
	depth := n.depth
	t.gather(n)
	from := n.from
	for g := range t.groups {
		t.groups[g].place = from
		from += t.groups[g].rows
	}
	t.arrange(n.from, n.to, depth)
	for g := range t.groups {
		c := &t.groups[g]
		t.slot[c.frame] = 0
		child := node{frame: c.frame, parent: i, depth: depth + 1, from: c.place - c.rows,
			to: c.place, inlined: c.inlined, wanted: c.wanted}
		for e, sum := range c.sums {
			child.share = max(child.share, float64(sum)/t.totals[e])
		}
		t.nodes = append(t.nodes, child)
		heap.Push(t, int32(len(t.nodes)-1))
	}
}

// at returns the frame of a row at a depth; ok is false below its last.
func (t *tree) at(r *row, depth int32) (frame calltree.NodeID, ok bool) {
	switch {
	case uint32(depth) >= r.to-r.from:
		return 0, false
	case t.reverse:
		return t.r.frames[r.to-1-uint32(depth)], true
	}
	return t.r.frames[r.from+uint32(depth)], true
}

// gather adds up the rows of a node by their next frame, and the weight that ends in it.
func (t *tree) gather(n *node) {
	t.groups = t.groups[:0]
	for _, i := range t.order[n.from:n.to] {
		r := &t.r.rows[i]
		marked, ok := t.at(r, n.depth)
		if !ok {
			n.add(r.column, r.value, 0)
			continue
		}
		frame, inlined := marked.Inlined()
		if t.slot[frame] == 0 {
			t.groups = append(t.groups, childGroup{frame: frame, inlined: true,
				sums: make([]uint64, len(t.totals))})
			t.slot[frame] = uint32(len(t.groups))
		}
		g := &t.groups[t.slot[frame]-1]
		g.rows++
		g.inlined = g.inlined && inlined
		g.wanted = g.wanted || t.wanted != nil && t.wanted[i] > n.depth
		g.sums[t.r.columns[r.column].Event] += r.value
	}
}

// arrange sorts the rows of a range by the places of their groups. Those that end here are
// last: no child has them.
func (t *tree) arrange(from, to uint32, depth int32) {
	rest := to
	for _, i := range append(t.scratch[:0], t.order[from:to]...) {
		marked, ok := t.at(&t.r.rows[i], depth)
		if !ok {
			rest--
			t.order[rest] = i
			continue
		}
		frame, _ := marked.Inlined()
		g := &t.groups[t.slot[frame]-1]
		t.order[g.place] = i
		g.place++
	}
}

// add adds to the cell of a column.
func (n *node) add(column uint16, self, left uint64) {
	i, ok := slices.BinarySearchFunc(n.cells, column, func(c cell, column uint16) int {
		return cmp.Compare(c.column, column)
	})
	if !ok {
		n.cells = slices.Insert(n.cells, i, cell{column: column})
	}
	n.cells[i].self += self
	n.cells[i].left += left
}

// leave gives the weight of the nodes that were not kept to their parents, and sorts children.
func (t *tree) leave() {
	for _, i := range t.queue {
		n := &t.nodes[i]
		t.leftOut++
		t.heaviest = max(t.heaviest, n.share)
		for _, o := range t.order[n.from:n.to] {
			r := &t.r.rows[o]
			t.nodes[n.parent].add(r.column, 0, r.value)
		}
	}
	t.queue = nil
	for i := range t.nodes {
		slices.SortFunc(t.nodes[i].children, t.compare)
	}
}

// The heap of nodes, wanted ones first, then heaviest first.

func (t *tree) Len() int { return len(t.queue) }

func (t *tree) Less(i, j int) bool {
	a, b := t.queue[i], t.queue[j]
	if wanted := t.nodes[a].wanted; wanted != t.nodes[b].wanted {
		return wanted
	}
	return t.compare(a, b) < 0
}

// compare orders nodes, heaviest first.
func (t *tree) compare(a, b int32) int {
	return cmp.Or(cmp.Compare(t.nodes[b].share, t.nodes[a].share), cmp.Compare(a, b))
}

func (t *tree) Swap(i, j int) { t.queue[i], t.queue[j] = t.queue[j], t.queue[i] }

func (t *tree) Push(x any) { t.queue = append(t.queue, x.(int32)) }

func (t *tree) Pop() any {
	last := t.queue[len(t.queue)-1]
	t.queue = t.queue[:len(t.queue)-1]
	return last
}

// cut returns the tree that newTree makes of fewer nodes: nodes have their index. The weight of the
// others is added to what their callers leave out.
func (t *tree) cut(most int) *tree {
	out := &tree{r: t.r, reverse: t.reverse, nodes: slices.Clone(t.nodes)}
	owner := make([]int32, len(t.nodes))
	for i := range out.nodes { // parents come first
		n := &out.nodes[i]
		if n.kept && int(n.rank) < most {
			owner[i] = int32(i)
			n.cells = slices.Clone(n.cells)
			n.children = slices.DeleteFunc(slices.Clone(n.children), func(c int32) bool {
				return int(t.nodes[c].rank) >= most
			})
			continue
		}
		owner[i] = owner[n.parent]
		if owner[i] == n.parent {
			out.leftOut++
			out.heaviest = max(out.heaviest, n.share)
		}
		for _, c := range n.cells {
			out.nodes[owner[i]].add(c.column, 0, c.self+c.left)
		}
		n.kept, n.cells, n.children = false, nil, nil
	}
	return out
}

// children returns the indexes of the kept nodes by the index of their parent and their frame.
func (t *tree) children() map[[2]uint32]int32 {
	index := make(map[[2]uint32]int32)
	for i := range t.nodes {
		if n := &t.nodes[i]; n.kept && n.parent >= 0 {
			index[[2]uint32{uint32(n.parent), uint32(n.frame)}] = int32(i)
		}
	}
	return index
}

// preorder calls f for each kept node, parents before children, heaviest children first.
func (t *tree) preorder(f func(n *node)) {
	t.walk(func(i int32) { f(&t.nodes[i]) })
}

// walk is preorder by the indexes of nodes.
func (t *tree) walk(f func(i int32)) {
	stack := []int32{0}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		n := &t.nodes[i]
		stack = stack[:len(stack)-1]
		f(i)
		for _, c := range slices.Backward(n.children) {
			stack = append(stack, c)
		}
	}
}
