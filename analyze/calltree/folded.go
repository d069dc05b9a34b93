package calltree

import (
	"bufio"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/export"
)

// FoldedOptions are for WriteFolded.
type FoldedOptions struct {
	// Comm: the outermost nodes are comms, and are written as export.Folded writes them.
	Comm bool
	// Scale multiplies the values of the new side of Compare.
	Scale float64
}

// WriteFolded writes stacks as folded lines, outermost node first, with their value:
//
//	main;work;memcpy 1234
//
// Stacks of Compare have two values, as difffolded.pl writes them: the base, then the new side.
// export.FoldedName changes names. Lines are sorted bytewise, and have distinct stacks.
func (s *Stacks) WriteFolded(w io.Writer, opts FoldedOptions) error {
	names, comms := make([]string, len(s.Nodes)), make([]string, len(s.Nodes))
	for i := range s.Nodes {
		names[i] = export.FoldedName(s.Nodes[i].Name)
		if comms[i] = names[i]; opts.Comm {
			comms[i] = export.FoldedComm(strings.TrimSuffix(s.Nodes[i].Name, noComm))
		}
	}
	type values struct{ value, base uint64 }
	sums := make(map[string]values)
	var line []byte
	named, at := !opts.Comm, 0 // named: a sample has a comm
	for nodes, value := range s.All() {
		line = line[:0]
		for i, n := range nodes {
			if n &^= inlinedBit; i == 0 {
				line = append(line, comms[n]...)
				named = named || comms[n] != export.NoComm
			} else {
				line = append(append(line, ';'), names[n]...)
			}
		}
		v := sums[string(line)]
		if v.value += value; s.base != nil {
			v.base += s.base[at]
		}
		sums[string(line)] = v
		at++
	}
	lines := make([]string, 0, len(sums))
	for stack, v := range sums {
		if !named { // as export.Folded
			stack = strings.TrimPrefix(stack, export.NoComm+";")
		}
		if s.base != nil {
			stack += " " + strconv.FormatUint(v.base, 10)
			v.value = uint64(math.Round(float64(v.value) * opts.Scale))
		}
		lines = append(lines, stack+" "+strconv.FormatUint(v.value, 10)+"\n")
	}
	slices.Sort(lines)
	out := bufio.NewWriter(w)
	for _, l := range lines {
		out.WriteString(l)
	}
	return out.Flush()
}
