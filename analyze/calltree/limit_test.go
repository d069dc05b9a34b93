package calltree_test

import (
	"testing"

	"symbolize/analyze/calltree"
	"symbolize/fixtures/profilebuild"
)

// TestTreeLimit: a tree of N nodes has the heaviest ones, their weights and what is left out of them,
// in both directions; its weights add up.
func TestTreeLimit(t *testing.T) {
	p := profilebuild.EveryKind()
	for _, reverse := range []bool{false, true} {
		all := calltree.Fold(p, &calltree.Options{}).Tree(calltree.TreeOptions{Reverse: reverse})
		for limit := 1; limit < len(all.Nodes)+2; limit++ {
			tree := calltree.Fold(p, &calltree.Options{}).Tree(calltree.TreeOptions{Reverse: reverse, Limit: limit})
			if n := len(tree.Nodes) - 1; n != min(limit, len(all.Nodes)-1) {
				t.Fatalf("limit %d: %d nodes", limit, n)
			}
			for i, n := range tree.Nodes {
				sum := n.Flat + n.Left
				for c := n.First; c < n.First+n.Children; c++ {
					if tree.Nodes[c].Parent != int32(i) || tree.Nodes[c].Depth != n.Depth+1 {
						t.Fatalf("limit %d: node %d is no child of %d", limit, c, i)
					}
					sum += tree.Nodes[c].Cum
				}
				if sum != n.Cum {
					t.Fatalf("limit %d: node %d has %d, its parts %d", limit, i, n.Cum, sum)
				}
			}
		}
	}
}
