package calltree

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Peek holds functions with their direct callers and callees.
type Peek struct {
	Head
	Functions []Peeked `json:"functions"`
	Left      int      `json:"rows_left_off,omitempty"` // by Cut
}

// Cut leaves the n heaviest functions; 0 leaves all.
func (t *Peek) Cut(n int) {
	if n > 0 && len(t.Functions) > n {
		t.Left, t.Functions = len(t.Functions)-n, t.Functions[:n]
	}
}

// Peeked is a function with its callers and callees, heaviest first.
type Peeked struct {
	Flat uint64 `json:"flat"`
	Cum  uint64 `json:"cum"`
	Item
	Callers []PeekCall `json:"callers"`
	Callees []PeekCall `json:"callees"`

	label, suffix string
}

// PeekCall is a caller or callee.
type PeekCall struct {
	Value uint64 `json:"weight"` // of the stacks with this call, recursion counted once
	Item
	Inlined bool `json:"inlined,omitempty"` // the callee was inlined into the caller

	label, suffix string
}

// NewPeek finds the functions with a matching printed name.
func NewPeek(p *ingest.Profile, match *regexp.Regexp, opts Options) *Peek {
	s := Fold(p, &opts)
	t := &Peek{Head: newHead(p, s, &opts), Functions: []Peeked{}}
	full := demangle.New(demangle.Full)
	matches := func(n *Node) bool { return match.MatchString(n.Name) }
	found := s.Peek(matches)
	var nodes []NodeID
	for _, n := range found {
		nodes = append(nodes, n.Node)
		for _, c := range slices.Concat(n.Callers, n.Callees) {
			nodes = append(nodes, c.Node)
		}
	}
	slices.Sort(nodes)
	shown := LookAlikes(s.Nodes, slices.Compact(nodes), full)
	for _, n := range found {
		node := &s.Nodes[n.Node]
		t.Functions = append(t.Functions, Peeked{Flat: n.Flat, Cum: n.Cum, Item: NewItem(node, full),
			Callers: newCalls(s, n.Callers, full, shown), Callees: newCalls(s, n.Callees, full, shown),
			label: cmp.Or(shown[n.Node], node.Name), suffix: ObjectSuffix(node)})
	}
	return t
}

func newCalls(s *Stacks, calls []Call, full *demangle.Demangler,
	shown map[NodeID]string) []PeekCall {
	list := make([]PeekCall, len(calls))
	for i, c := range calls {
		n := &s.Nodes[c.Node]
		list[i] = PeekCall{Value: c.Value, Item: NewItem(n, full), Inlined: c.Inlined,
			label: cmp.Or(shown[c.Node], n.Name), suffix: ObjectSuffix(n)}
	}
	return list
}

// WriteText writes the functions with the columns of `go tool pprof -peek`: callers above,
// callees below, with the weight of the stacks with each call and its share of the function's
// cumulative one. A function is marked as inlined at its own row, as in a tree, or, if only some
// callers inline it, at theirs.
func (t *Peek) WriteText(w io.Writer, style table.Style) error {
	return flushing(w, func(out *bufio.Writer) {
		t.write(out)
		fmt.Fprintf(out, "%10s %6s %10s %6s %10s %6s  %s\n", "flat", "flat%", "cum", "cum%", "weight",
			"share", "context")
		for i := range t.Functions {
			f := &t.Functions[i]
			out.WriteString(strings.Repeat("-", 60) + "\n")
			mark, own := "", " [inlined]"
			for j := range f.Callers {
				if !f.Callers[j].Inlined {
					mark, own = " [inlines it]", ""
				}
			}
			if len(f.Callers) == 0 {
				own = ""
			}
			for j := range f.Callers {
				t.writeCall(out, style, f, &f.Callers[j], mark)
			}
			numbers := fmt.Sprintf("%10s %6s %10s %6s %17s  ", table.Quantity(f.Flat, t.Unit),
				table.Percent(f.Flat, t.Total), table.Quantity(f.Cum, t.Unit),
				table.Percent(f.Cum, t.Total), "")
			WriteRow(out, style, numbers, table.Bold, f.label+own, f.suffix)
			for j := range f.Callees {
				t.writeCall(out, style, f, &f.Callees[j], " [inlined]")
			}
		}
		if t.Left > 0 {
			fmt.Fprintf(out, "%s more rows\n", table.Thousands(uint64(t.Left)))
		}
	})
}

// writeCall writes a call, with a mark if it is inlined.
func (t *Peek) writeCall(w *bufio.Writer, style table.Style, f *Peeked, c *PeekCall, mark string) {
	numbers := fmt.Sprintf("%34s  %10s %6s    ", "", table.Quantity(c.Value, t.Unit),
		table.Percent(c.Value, f.Cum))
	if !c.Inlined {
		mark = ""
	}
	WriteRow(w, style, numbers, table.Plain, c.label+mark, c.suffix)
}

// WriteJSON writes the functions as one JSON object.
func (t *Peek) WriteJSON(w io.Writer) error { return texts.WriteJSON(w, "peek/1", t) }
