package diff

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"symbolize/analyze/calltree"
)

// WriteFolded writes the stacks of both sides as difffolded.pl does, for differential flame
// graphs of others: a line a stack, outermost frame first, with the value of the base and that
// of the new side:
//
//	main;work;memcpy 1234 1300
//
// ';' inside a name becomes ':'. With normalize the new side is scaled to the base's total. Lines
// are sorted bytewise.
func (f *Folded) WriteFolded(w io.Writer, normalize bool) error {
	both := calltree.Compare(f.New, f.Base)
	scale := 1.0
	if normalize && both.Total > 0 && both.BaseTotal > 0 {
		scale = float64(both.BaseTotal) / float64(both.Total)
	}
	tree := both.Tree(calltree.TreeOptions{})
	paths := make([]string, len(tree.Nodes))
	var lines []string
	for i := range tree.Nodes {
		n := &tree.Nodes[i]
		if n.Parent < 0 {
			continue
		}
		name := strings.ReplaceAll(both.Nodes[n.Node].Name, ";", ":")
		if paths[i] = name; n.Parent > 0 {
			paths[i] = paths[n.Parent] + ";" + name
		}
		if n.Flat > 0 || n.BaseFlat > 0 {
			lines = append(lines, fmt.Sprintf("%s %d %d\n", paths[i], n.BaseFlat,
				int64(math.Round(float64(n.Flat)*scale))))
		}
	}
	slices.Sort(lines)
	out := bufio.NewWriter(w)
	for _, line := range lines {
		out.WriteString(line)
	}
	return out.Flush()
}
