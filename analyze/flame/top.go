package flame

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"symbolize/analyze/calltree"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// topSum is a function of one column.
type topSum struct {
	frame     calltree.NodeID
	column    uint16
	flat, cum uint64
}

// fillTop adds up flat and cumulative values by function and column, exactly, and keeps the
// heaviest functions of all events.
func (g *Graph) fillTop(most int) {
	sums := g.sumTop()
	shares := make(map[calltree.NodeID]float64)
	at := make([]float64, len(g.Events))
	for from := 0; from < len(sums); {
		to := from
		for ; to < len(sums) && sums[to].frame == sums[from].frame; to++ {
			at[g.Columns[sums[to].column].Event] += float64(sums[to].cum)
		}
		share := 0.0
		for e := range at {
			share = max(share, at[e]/float64(max(1, g.Events[e].Kept)))
			at[e] = 0
		}
		shares[sums[from].frame] = share
		from = to
	}
	if len(shares) > most {
		order := make([]float64, 0, len(shares))
		for _, s := range shares {
			order = append(order, s)
		}
		slices.SortFunc(order, func(a, b float64) int { return cmp.Compare(b, a) })
		least := order[most]
		sums = slices.DeleteFunc(sums, func(s topSum) bool { return shares[s.frame] <= least })
		kept := 0
		for _, s := range shares {
			if s > least {
				kept++
			}
		}
		g.Top.Left = len(shares) - kept
		g.Notes = append(g.Notes, fmt.Sprintf("functions: the table has the %d heaviest of %d; "+
			"each other one has at most %s on its stacks", kept, len(shares), percentText(least)))
	}
	g.Top.Cells = []uint64{}
	last := 0
	for _, s := range sums {
		i := g.number(s.frame)
		g.Top.Cells = append(g.Top.Cells, uint64(i-last), uint64(s.column), s.flat, s.cum)
		last = i
	}
}

// sumTop returns the sums by (frame, column), sorted.
func (g *Graph) sumTop() []topSum {
	r := g.rows
	byColumn := make([][]uint32, len(r.columns))
	for i := range r.rows {
		c := r.rows[i].column
		byColumn[c] = append(byColumn[c], uint32(i))
	}
	n := len(r.nodes)
	flat, cum := make([]uint64, n), make([]uint64, n)
	seen := make([]uint32, n) // by frame: number of the last row that had it, plus one
	var sums []topSum
	var met []calltree.NodeID
	for c, list := range byColumn {
		met = met[:0]
		for _, i := range list {
			row := &r.rows[i]
			for at := row.from; at < row.to; at++ {
				f, _ := r.frames[at].Inlined()
				if cum[f] == 0 && row.value > 0 {
					met = append(met, f)
				}
				if seen[f] != i+1 {
					seen[f] = i + 1
					cum[f] += row.value
				}
				if at+1 == row.to {
					flat[f] += row.value
				}
			}
		}
		for _, f := range met {
			sums = append(sums, topSum{f, uint16(c), flat[f], cum[f]})
			flat[f], cum[f] = 0, 0
		}
	}
	slices.SortFunc(sums, func(a, b topSum) int {
		return cmp.Or(cmp.Compare(a.frame, b.frame), cmp.Compare(a.column, b.column))
	})
	return sums
}

// The kinds of frames, as page/format.js numbers them.
const (
	kindUser = iota
	kindKernel
	kindBPF
	kindJIT
	kindInlined // of a node, not of its frame
	kindUnresolved
	kindLabel
)

// fillFrames writes the table of the frames that trees and table have numbered.
func (g *Graph) fillFrames() {
	f := &g.Frames
	f.Name, f.File, f.Object, f.Kind = []string{}, []string{}, []int{}, []int{}
	g.Objects = []object{}
	objects := make(map[object]int)
	cut := 0
	for _, id := range f.nodes {
		n := &g.rows.nodes[id]
		name := cutMiddle(n.Name, maxName)
		if len(name) < len(n.Name) {
			cut++
		}
		f.Name = append(f.Name, name)
		f.File = append(f.File, cutMiddle(placeText(n), maxName))
		f.Kind = append(f.Kind, kindOf(n))
		o := -1
		if k := (object{cutMiddle(n.Object, maxName), n.BuildID}); k != (object{}) {
			var ok bool
			if o, ok = objects[k]; !ok {
				o = len(g.Objects)
				objects[k] = o
				g.Objects = append(g.Objects, k)
			}
		}
		f.Object = append(f.Object, o)
	}
	if cut > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("%d long names are cut in the middle", cut))
	}
}

func kindOf(n *calltree.Node) int {
	switch {
	case n.By.OfSample():
		return kindLabel
	case n.Unresolved:
		return kindUnresolved
	}
	switch n.Domain {
	case ingest.KernelDomain:
		return kindKernel
	case ingest.BPFDomain:
		return kindBPF
	case ingest.JITDomain:
		return kindJIT
	}
	return kindUser
}

// placeText is the source of a function: "/src/a.c:12".
func placeText(n *calltree.Node) string {
	text := texts.Printable(n.File)
	if text != "" && n.Line > 0 {
		text += ":" + strconv.Itoa(int(n.Line))
	}
	return text
}

// cutMiddle shortens a text to at most n characters.
func cutMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	head := n / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

func percentText(share float64) string {
	if share > 0 && share < 0.000005 {
		return "less than 0.0005 %"
	}
	return strconv.FormatFloat(100*share, 'f', 3, 64) + " %"
}

// leftOutText describes the frames that a tree lacks.
func leftOutText(t *tree) string {
	return fmt.Sprintf("%d subtrees with at most %s of an event each are left out; their weight "+
		"stays in their callers", t.leftOut, percentText(t.heaviest))
}
