package calltree

import "slices"

// Unify gives nodes of several profiles the same numbers where key returns the same text for
// them: it gets the number of the profile in the list and the node, which it may change. The
// first node of a key describes it. The result's stacks share one list of nodes.
func Unify(list []*Stacks, key func(profile int, n *Node) string) []*Stacks {
	index := make(map[string]NodeID)
	var nodes []Node
	out := make([]*Stacks, len(list))
	for i, s := range list {
		numbers := make([]NodeID, len(s.Nodes))
		for n := range s.Nodes {
			node := s.Nodes[n]
			k := key(i, &node)
			id, ok := index[k]
			if !ok {
				id = NodeID(len(nodes))
				index[k] = id
				nodes = append(nodes, node)
			}
			numbers[n] = id
		}
		c := *s
		c.frames = slices.Clone(s.frames)
		for j := range c.frames[1:] {
			n := &c.frames[j+1].node
			*n = numbers[*n&^inlinedBit] | *n&inlinedBit
		}
		out[i] = &c
	}
	for _, s := range out {
		s.Nodes = nodes
	}
	return out
}

// Compare joins the stacks of two sides that Unify gave the same nodes. Values are the sums of the
// first side, base values the sums of the second. Tree then has both.
func Compare(sides, base []*Stacks) *Stacks {
	c := &Stacks{frames: make([]frame, 1)}
	add := func(s *Stacks, isBase bool) {
		from := uint32(len(c.frames)) - 1 // is added to all numbers but 0
		c.frames = append(c.frames, s.frames[1:]...)
		for i := from + 1; int(i) < len(c.frames); i++ {
			if c.frames[i].caller > 0 {
				c.frames[i].caller += from
			}
		}
		for _, leaf := range s.leaves {
			if leaf > 0 {
				leaf += from
			}
			c.leaves = append(c.leaves, leaf)
		}
		zeros := make([]uint64, len(s.values))
		if c.Nodes == nil {
			c.Nodes, c.Event, c.Unit = s.Nodes, s.Event, s.Unit
		}
		if isBase {
			c.values, c.base = append(c.values, zeros...), append(c.base, s.values...)
			c.BaseTotal += s.Total
			c.BaseKept += s.Kept
			return
		}
		c.values, c.base = append(c.values, s.values...), append(c.base, zeros...)
		c.Total += s.Total
		c.Kept += s.Kept
		c.Samples += s.Samples
	}
	for _, s := range sides {
		add(s, false)
	}
	for _, s := range base {
		add(s, true)
	}
	return c
}
