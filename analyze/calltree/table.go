package calltree

import (
	"cmp"
	"slices"
	"strings"
)

// Row is a line of a table: a node with its flat value, of the stacks that end in it, and its
// cumulative value, of the stacks that contain it, recursion counted once.
type Row struct {
	Node      NodeID
	Flat, Cum uint64
}

// Table returns the nodes of the stacks with their values, heaviest flat or, with cum,
// cumulative value first, then by name and number.
func (s *Stacks) Table(cum bool) []Row {
	flat, all := s.Sums()
	return s.rows(flat, all, cum)
}

// rows is Table of sums.
func (s *Stacks) rows(flat, all []uint64, cum bool) []Row {
	rows := make([]Row, 0, len(all))
	for n := range all {
		if all[n] > 0 {
			rows = append(rows, Row{Node: NodeID(n), Flat: flat[n], Cum: all[n]})
		}
	}
	nodes := s.Nodes
	slices.SortFunc(rows, func(a, b Row) int {
		first, second := cmp.Compare(b.Flat, a.Flat), cmp.Compare(b.Cum, a.Cum)
		if cum {
			first, second = second, first
		}
		return cmp.Or(first, second, compareNodes(&nodes[a.Node], &nodes[b.Node]),
			cmp.Compare(a.Node, b.Node))
	})
	return rows
}

func compareNodes(a, b *Node) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.SystemName, b.SystemName))
}

// Sums returns the flat and the cumulative value of each node, by its number.
func (s *Stacks) Sums() (flat, cum []uint64) { return sums(s, s.values) }

// Squares returns for each node the sums of the squares of the values that Sums adds up: the
// variance that random sampling gives those sums. It needs Options.Squares.
func (s *Stacks) Squares() (flat, cum []float64) { return sums(s, s.squares) }

func sums[T uint64 | float64](s *Stacks, values []T) (flat, cum []T) {
	n := len(s.Nodes)
	flat, cum = make([]T, n), make([]T, n)
	for i, v := range values {
		if leaf := s.leaves[i]; leaf > 0 {
			flat[s.frames[leaf].node&^inlinedBit] += v
		}
	}
	sum := below(s, values)
	open := make([]uint32, n) // frames of the node among the callers
	s.walk(func(f uint32) {
		id := s.frames[f].node &^ inlinedBit
		if open[id] == 0 {
			cum[id] += sum[f]
		}
		open[id]++
	}, func(f uint32) { open[s.frames[f].node&^inlinedBit]-- })
	return flat, cum
}

// Call is a caller or callee of a node with the value of the stacks that have the call,
// recursion counted once.
type Call struct {
	Node    NodeID
	Value   uint64
	Inlined bool // the callee is inlined wherever the call is made
}

// Neighbors is a node with its direct callers and callees, heaviest first.
type Neighbors struct {
	Row
	Callers, Callees []Call
}

// edge is a call from one node to another.
type edge struct{ caller, callee NodeID }

// edgeSum adds up a call.
type edgeSum struct {
	value   uint64
	open    int  // calls among the callers
	outside bool // the callee is not inlined somewhere
}

// Peek returns the nodes for which match reports true with their callers and callees, in the
// order of Table. Direct recursion is no call, as in pprof.
func (s *Stacks) Peek(match func(*Node) bool) []Neighbors {
	nodes := s.Nodes
	wanted := make([]bool, len(nodes))
	for n := range nodes {
		wanted[n] = match(&nodes[n])
	}
	callers, callees := make(map[NodeID][]Call), make(map[NodeID][]Call)
	for e, sum := range s.edges(wanted) {
		c := Call{Value: sum.value, Inlined: !sum.outside}
		c.Node = e.caller
		callers[e.callee] = append(callers[e.callee], c)
		c.Node = e.callee
		callees[e.caller] = append(callees[e.caller], c)
	}
	var list []Neighbors
	for _, r := range s.Table(false) {
		if wanted[r.Node] {
			list = append(list, Neighbors{Row: r, Callers: s.sortCalls(callers[r.Node]),
				Callees: s.sortCalls(callees[r.Node])})
		}
	}
	return list
}

// edges adds up the calls from or to the wanted nodes.
func (s *Stacks) edges(wanted []bool) map[edge]*edgeSum {
	sums, values := make(map[edge]*edgeSum), below(s, s.values)
	call := func(f uint32) *edgeSum { // nil for none that is wanted
		caller := s.frames[f].caller
		e := edge{s.frames[caller].node &^ inlinedBit, s.frames[f].node &^ inlinedBit}
		if caller == 0 || e.caller == e.callee || !wanted[e.caller] && !wanted[e.callee] {
			return nil
		}
		if sums[e] == nil {
			sums[e] = &edgeSum{}
		}
		return sums[e]
	}
	s.walk(func(f uint32) {
		if sum := call(f); sum != nil {
			sum.outside = sum.outside || s.frames[f].node&inlinedBit == 0
			if sum.open == 0 {
				sum.value += values[f]
			}
			sum.open++
		}
	}, func(f uint32) {
		if sum := call(f); sum != nil {
			sum.open--
		}
	})
	return sums
}

func (s *Stacks) sortCalls(calls []Call) []Call {
	nodes := s.Nodes
	slices.SortFunc(calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value),
			compareNodes(&nodes[a.Node], &nodes[b.Node]), cmp.Compare(a.Node, b.Node))
	})
	return calls
}
