package intern

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// Node is a list of numbers: the list of a parent, followed by a value.
type Node struct{ Parent, Value uint32 }

// Tree is a prefix tree. Node 0 is the empty list, and parents come before their children. Nodes have
// as many bytes as they need, mostly 4 or 5 in place of 8.
type Tree struct {
	n, size int
	shift   int    // the bits of a parent
	packed  []byte // by node, in size bytes: how far before is its parent, and above it its value
}

// Pack returns a tree of nodes.
func Pack(nodes []Node) Tree {
	before := func(i int) uint32 { return uint32(i) - 1 - nodes[i].Parent }
	value, distance := uint32(0), uint32(0)
	for i := 1; i < len(nodes); i++ {
		value, distance = max(value, nodes[i].Value), max(distance, before(i))
	}
	t := Tree{n: len(nodes), shift: bits.Len32(distance)}
	t.size = (t.shift + bits.Len32(value) + 7) / 8
	t.packed = make([]byte, t.n*t.size+8-t.size)
	for i := 1; i < t.n; i++ {
		binary.LittleEndian.PutUint64(t.packed[i*t.size:],
			uint64(before(i))|uint64(nodes[i].Value)<<t.shift)
	}
	return t
}

// Len returns the number of nodes.
func (t *Tree) Len() int { return t.n }

// Nodes returns the nodes.
func (t *Tree) Nodes() []Node {
	nodes := make([]Node, t.n)
	for i := 1; i < t.n; i++ {
		x := binary.LittleEndian.Uint64(t.packed[i*t.size:]) & (1<<(8*t.size) - 1)
		nodes[i] = Node{uint32(i) - 1 - uint32(x&(1<<t.shift-1)), uint32(x >> t.shift)}
	}
	return nodes
}

// treeNodes is the size of a tree from which a Forest begins another: with its hash table 128 KiB, so
// that it stays in a level 2 cache, and nodes pack into 4 bytes. With 16 times as much a third fewer
// nodes are in two trees, but each costs two cache misses; with one tree for all lists adding lists
// took ten times as long.
const treeNodes = 1 << 13

// Forest stores lists of 32-bit numbers as prefix trees: lists that begin alike, of which most are
// added soon after each other, have the nodes of the common beginning once for each tree. The zero
// Forest is not usable; use NewForest.
type Forest struct {
	trees []Tree
	nodes []Node // the last tree
	base  uint32 // number of its node 0
	most  int    // nodes of a tree, unless it is a single list
	seed  maphash.Seed
	// slots are a hash table of the last tree's nodes. A slot is the number of a node, and above
	// it, as far as the number of slots leaves bits, bits of its hash; 0 if it is free.
	slots []uint32
	list  []uint32 // the last list
	path  []uint32 // its nodes
}

// NewForest returns an empty forest.
func NewForest() *Forest {
	return &Forest{nodes: make([]Node, 1), most: treeNodes, seed: maphash.MakeSeed()}
}

// Add returns the number of a list that begins at the end of the slice, as call chains do: the
// innermost frame comes first. Equal lists can have several numbers.
func (t *Forest) Add(list []uint32) uint32 {
	if len(t.nodes) > 1 && len(t.nodes)+len(list) > t.most {
		t.seal()
	}
	known := 0
	for n := min(len(list), len(t.list)); known < n &&
		list[len(list)-1-known] == t.list[len(t.list)-1-known]; known++ {
	}
	at := uint32(0)
	if known > 0 {
		at = t.path[known-1]
	}
	t.path = t.path[:known]
	for i := len(list) - 1 - known; i >= 0; i-- {
		at = t.child(at, list[i])
		t.path = append(t.path, at)
	}
	t.list = append(t.list[:0], list...)
	return t.base + at
}

// seal ends the last tree and begins another.
func (t *Forest) seal() {
	t.trees = append(t.trees, Pack(t.nodes))
	t.base += uint32(len(t.nodes))
	t.nodes = t.nodes[:1]
	t.list, t.path = t.list[:0], t.path[:0]
	clear(t.slots)
}

// Trees returns the trees, and ends the forest: the numbers of a tree's nodes follow the numbers of
// the tree before.
func (t *Forest) Trees() []Tree {
	trees := append(t.trees, Pack(t.nodes))
	*t = Forest{}
	return trees
}

// child returns the node of the list of a parent followed by a value.
func (t *Forest) child(parent, value uint32) uint32 {
	if (len(t.nodes)+1)*4 > len(t.slots)*3 {
		t.grow()
	}
	h := t.hash(parent, value)
	mask := uint32(len(t.slots) - 1)
	for i := uint32(h>>32) & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			id := uint32(len(t.nodes))
			t.nodes = append(t.nodes, Node{parent, value})
			t.slots[i] = uint32(h)&^mask | id
			return id
		}
		if (s^uint32(h))&^mask == 0 {
			if n := t.nodes[s&mask]; n.Parent == parent && n.Value == value {
				return s & mask
			}
		}
	}
}

func (t *Forest) hash(parent, value uint32) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], parent)
	binary.LittleEndian.PutUint32(b[4:], value)
	return maphash.Bytes(t.seed, b[:])
}

func (t *Forest) grow() {
	t.slots = newSlots(2 * len(t.slots))
	mask := uint32(len(t.slots) - 1)
	for id := 1; id < len(t.nodes); id++ {
		n := t.nodes[id]
		h := t.hash(n.Parent, n.Value)
		i := uint32(h>>32) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint32(h)&^mask | uint32(id)
	}
}
