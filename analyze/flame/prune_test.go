package flame

import (
	"fmt"
	"slices"
	"testing"

	"symbolize/fixtures/profilebuild"
)

// TestCut: a tree cut to fewer nodes is the tree that is made of fewer nodes.
func TestCut(t *testing.T) {
	p := profilebuild.Random(3, profilebuild.Size{Objects: 5, Functions: 300, Locations: 2000,
		Stacks: 1500, Depth: 20})
	for _, reverse := range []bool{false, true} {
		r := New(p, Options{Event: -1}).rows
		whole := newTree(r, reverse, 4000, 0)
		for _, most := range []int{1, 2, 10, 700, 3999, 4000, 5000} {
			got, want := whole.cut(most), newTree(r, reverse, min(most, 4000), 0)
			if got.leftOut != want.leftOut || got.heaviest != want.heaviest {
				t.Errorf("%d nodes: %d left out, at most %v, want %d, %v", most, got.leftOut, got.heaviest,
					want.leftOut, want.heaviest)
			}
			if a, b := flat(got), flat(want); !slices.EqualFunc(a, b, equalNodes) {
				t.Errorf("%d nodes: %d nodes, want %d: %v\n%v", most, len(a), len(b), a[0], b[0])
			}
		}
	}
}

// TestHeavyPaths: of stacks that all differ, each heavy function has its heaviest path, and siblings
// are in the order of their weight.
func TestHeavyPaths(t *testing.T) {
	stacks := make(map[string]uint64)
	for i := range 5000 {
		stacks[fmt.Sprintf("main;caller%d;heavy%d", i, i%10)] = uint64(1000 + i%10)
	}
	stacks["main;caller7;heavy3"] = 1500
	stacks["main;rare"] = 4
	g := New(profilebuild.Stacks(stacks), Options{Event: -1})
	name := func(n *node) string { return g.rows.nodes[n.frame].SystemName }
	whole := newTree(g.rows, false, 1000, 0)
	for kept, tree := range map[int]*tree{1000: whole, 100: whole.cut(100)} {
		heavy, caller := make(map[string]string), ""
		last := 1.0
		for _, n := range flat(tree)[1:] {
			switch n.depth {
			case 2:
				if n.share > last {
					t.Errorf("%s has more than its sibling before", name(&n))
				}
				caller, last = name(&n), n.share
			case 3:
				heavy[name(&n)] = caller
			}
		}
		if len(flat(tree)) != kept || len(heavy) != 10 || heavy["heavy3"] != "caller7" {
			t.Errorf("%d nodes, want %d, with the paths %v", len(flat(tree)), kept, heavy)
		}
	}
}

// flat lists the kept nodes in preorder.
func flat(t *tree) (list []node) {
	t.preorder(func(n *node) { list = append(list, *n) })
	return list
}

func equalNodes(a, b node) bool {
	return a.frame == b.frame && a.depth == b.depth && a.inlined == b.inlined && a.rank == b.rank &&
		slices.Equal(a.cells, b.cells)
}
