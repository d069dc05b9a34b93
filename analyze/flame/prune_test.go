package flame

import (
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

// flat lists the kept nodes in preorder.
func flat(t *tree) (list []node) {
	t.preorder(func(n *node) { list = append(list, *n) })
	return list
}

func equalNodes(a, b node) bool {
	return a.frame == b.frame && a.depth == b.depth && a.inlined == b.inlined && a.rank == b.rank &&
		slices.Equal(a.cells, b.cells)
}
