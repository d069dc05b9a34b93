package calltree

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Branches is a table of branches, by source and target.
type Branches struct {
	Head
	// Mispredicted counts the mispredicted branches of all in Predicted; Unknown counts branches of
	// processors that do not record it.
	Mispredicted uint64      `json:"mispredicted"`
	Unknown      uint64      `json:"unknown_prediction,omitempty"`
	Rows         []BranchRow `json:"rows"`
	Left         int         `json:"rows_left_off,omitempty"`
}

// BranchRow is all branches from one function, or line, to another.
type BranchRow struct {
	Count        uint64 `json:"count"`
	Mispredicted uint64 `json:"mispredicted"`
	Unknown      uint64 `json:"unknown_prediction,omitempty"`
	From         Item   `json:"from"`
	To           Item   `json:"to"`

	text string
}

// NewBranches adds up the branches of a profile that was read with input.Selection.Branches,
// without inlined calls, most frequent first. limit is how many rows are kept; 0 for all.
func NewBranches(p *ingest.Profile, opts Options, limit int) *Branches {
	by := slices.Clone(opts.By)
	if len(by) == 0 {
		by = []By{Function}
	}
	opts.Count = true
	opts.By = append([]By{ingest.PredictionTag}, by...)
	s := Fold(p, &opts)
	opts.By = by
	b := &Branches{Head: newHead(p, s, &opts), Rows: []BranchRow{}}
	b.Unit = "branches"
	type pair struct{ from, to NodeID }
	index := make(map[pair]int)
	full := demangle.New(demangle.Full)
	for nodes, n := range s.All() {
		if len(nodes) != 3 {
			continue // a frame of it is hidden
		}
		key := pair{nodes[1], nodes[2]}
		at, ok := index[key]
		if !ok {
			at = len(b.Rows)
			index[key] = at
			from, to := &s.Nodes[key.from], &s.Nodes[key.to]
			b.Rows = append(b.Rows, BranchRow{From: NewItem(from, full), To: NewItem(to, full),
				text: from.Name + ObjectSuffix(from) + " → " + to.Name + ObjectSuffix(to)})
		}
		r := &b.Rows[at]
		r.Count += n
		switch s.Nodes[nodes[0]].Name {
		case ingest.Mispredicted:
			r.Mispredicted += n
			b.Mispredicted += n
		case ingest.Predicted:
		default:
			r.Unknown += n
			b.Unknown += n
		}
	}
	slices.SortFunc(b.Rows, func(x, y BranchRow) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), strings.Compare(x.text, y.text),
			strings.Compare(x.From.BuildID+x.To.BuildID, y.From.BuildID+y.To.BuildID))
	})
	if limit > 0 && len(b.Rows) > limit {
		b.Left = len(b.Rows) - limit
		b.Rows = b.Rows[:limit]
	}
	return b
}

// WriteText writes the table.
func (b *Branches) WriteText(w io.Writer, style table.Style) error {
	return flushing(w, func(out *bufio.Writer) {
		fmt.Fprintf(out, "branches of %s: %s, %s mispredicted\n", b.Event, table.Thousands(b.Total),
			predicted(b.Mispredicted, b.Unknown, b.Total))
		const head, row = "%10s %6s %12s  %s\n", "%10s %6s %12s  "
		fmt.Fprintf(out, head, "count", "count%", "mispredicted", "from → to")
		for i := range b.Rows {
			r := &b.Rows[i]
			numbers := fmt.Sprintf(row, table.Thousands(r.Count), table.Percent(r.Count, b.Total),
				predicted(r.Mispredicted, r.Unknown, r.Count))
			WriteRow(out, style, numbers, table.Heat(r.Count, b.Total), r.text, "")
		}
		if b.Left > 0 {
			fmt.Fprintf(out, "%s more rows\n", table.Thousands(uint64(b.Left)))
		}
	})
}

// predicted is the share of mispredicted branches; "-" where the processor does not record it.
func predicted(missed, unknown, all uint64) string {
	if unknown == all {
		return "-"
	}
	return table.Percent(missed, all-unknown)
}

// WriteJSON writes the table as one JSON object.
func (b *Branches) WriteJSON(w io.Writer) error { return texts.WriteJSON(w, "top-branches/1", b) }
