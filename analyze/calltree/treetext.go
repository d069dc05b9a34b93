package calltree

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// TreeReport is a call tree as text and JSON.
type TreeReport struct {
	Head
	Direction string `json:"direction"` // "callees" or "callers"
	// Subtrees that were left out by MinShare or Depth, and their value.
	LeftOut   int       `json:"subtrees_left_out,omitempty"`
	LeftValue uint64    `json:"weight_left_out,omitempty"`
	Roots     []*Branch `json:"roots"`

	cut TreeOptions
}

// Branch is a node of a call tree with its subtree.
type Branch struct {
	Cum  uint64 `json:"cum"`
	Flat uint64 `json:"flat"` // of the stacks that end here
	Item
	Inlined  uint64    `json:"inlined,omitempty"` // the part of cum that was inlined here
	Left     uint64    `json:"weight_left_out,omitempty"`
	Children []*Branch `json:"children,omitempty"`

	label, suffix string
}

// NewTree builds the call tree of one event, heaviest branches first.
func NewTree(p *ingest.Profile, opts Options, cut TreeOptions) *TreeReport {
	s := Fold(p, &opts)
	tree := s.Tree(cut)
	t := &TreeReport{Head: newHead(p, s, &opts), Direction: "callees", LeftOut: tree.LeftOut,
		LeftValue: tree.LeftValue, Roots: []*Branch{}, cut: cut}
	if cut.Reverse {
		t.Direction = "callers"
	}
	full := demangle.New(demangle.Full)
	shown := LookAlikes(s.Nodes, distinct(tree.Nodes), full)
	branches := make([]*Branch, len(tree.Nodes))
	for i := range tree.Nodes {
		n := &tree.Nodes[i]
		if n.Parent < 0 {
			continue
		}
		node := &s.Nodes[n.Node]
		b := &Branch{Cum: n.Cum, Flat: n.Flat, Item: NewItem(node, full), Inlined: n.Inlined,
			Left: n.Left, label: cmp.Or(shown[n.Node], node.Name), suffix: ObjectSuffix(node)}
		branches[i] = b
		if n.Parent == 0 {
			t.Roots = append(t.Roots, b)
			continue
		}
		branches[n.Parent].Children = append(branches[n.Parent].Children, b)
	}
	return t
}

// WriteText writes the tree, a line a node. Chains of only children are not indented further,
// so that deep trees stay readable.
func (t *TreeReport) WriteText(w io.Writer, style table.Style) error {
	return flushing(w, func(out *bufio.Writer) {
		t.write(out)
		fmt.Fprintf(out, "%10s %7s %10s %7s  %s\n", "cum", "cum%", "flat", "flat%", t.Direction)
		t.writeBranches(out, style, t.Roots, 0)
		if t.LeftOut > 0 {
			fmt.Fprintf(out, "left out: %s %s; together %s, %s of the total\n",
				table.Count(t.LeftOut, "subtree", "subtrees"), t.limits(),
				table.Quantity(t.LeftValue, t.Unit), table.Percent(t.LeftValue, t.Total))
		}
	})
}

// limits describes why subtrees were left out.
func (t *TreeReport) limits() string {
	var why []string
	if t.cut.MinShare > 0 {
		why = append(why, fmt.Sprintf("with less than %.4g%% (--min-share)", 100*t.cut.MinShare))
	}
	if t.cut.MaxDepth > 0 {
		why = append(why, fmt.Sprintf("deeper than %d (--max-depth)", t.cut.MaxDepth))
	}
	if t.cut.Limit > 0 {
		why = append(why, fmt.Sprintf("lighter than the first %d (-n)", t.cut.Limit))
	}
	return strings.Join(why, " or ")
}

// writeBranches writes nodes with the same parent at a level of indentation. Below each of
// them only children follow at one level more, and where they end several at the next.
func (t *TreeReport) writeBranches(w *bufio.Writer, style table.Style, list []*Branch, level int) {
	for _, b := range list {
		t.writeBranch(w, style, b, level)
		below, chain := level+1, b.Children
		for len(chain) == 1 {
			t.writeBranch(w, style, chain[0], level+1)
			below, chain = level+2, chain[0].Children
		}
		t.writeBranches(w, style, chain, below)
	}
}

// maxIndent bounds the indentation of deep trees.
const maxIndent = 40

func (t *TreeReport) writeBranch(w *bufio.Writer, style table.Style, b *Branch, level int) {
	numbers := fmt.Sprintf("%10s %7s %10s %7s  ", table.Quantity(b.Cum, t.Unit),
		table.Percent(b.Cum, t.Total), table.Quantity(b.Flat, t.Unit),
		table.Percent(b.Flat, t.Total))
	numbers += strings.Repeat("| ", min(level, maxIndent))
	label := b.label
	if 2*b.Inlined > b.Cum {
		label += " [inlined]"
	}
	WriteRow(w, style, numbers, table.Heat(b.Flat, t.Total), label, b.suffix)
}

// WriteJSON writes the tree as one JSON object.
func (t *TreeReport) WriteJSON(w io.Writer) error { return texts.WriteJSON(w, "tree/1", t) }
