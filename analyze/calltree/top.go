package calltree

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"symbolize/analyze/demangle"
	"symbolize/analyze/memory"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// TopOptions are for NewTop.
type TopOptions struct {
	Options
	Limit  int  // how many rows are printed; 0 for all
	Cum    bool // sort by the cumulative value
	Memory bool // columns of what processors recorded of accesses, if they did
	// MinShare leaves out rows with a smaller cumulative share of the total, 0 to 1.
	MinShare float64
}

// Top is a flat and cumulative table, by function unless Options.By is set.
type Top struct {
	Head
	Rows []TopRow `json:"rows"`
	Left int      `json:"rows_left_off,omitempty"` // by Limit
	// Overhead is the total without Options.Latency.
	Overhead uint64 `json:"total_overhead,omitempty"`

	memory bool // rows have Memory
}

// TopRow is a function of one object, a BPF function of all its loads, all unresolved frames of
// an object, or another node.
type TopRow struct {
	Flat uint64 `json:"flat"` // where it was the leaf
	Cum  uint64 `json:"cum"`  // where it was on the stack, recursion counted once
	// Overhead is Flat without Options.Latency.
	Overhead uint64 `json:"overhead,omitempty"`
	// Memory has what was recorded of the accesses of Flat, with TopOptions.Memory.
	Memory *memory.Sums `json:"memory,omitempty"`
	Item

	label, suffix string
}

// Item is a node in JSON.
type Item struct {
	Name       string `json:"name"`                // demangled; "[libc.so.6]" if unresolved
	FullName   string `json:"full_name,omitempty"` // if Name leaves something out
	SystemName string `json:"system_name,omitempty"`
	Object     string `json:"object"`
	BuildID    string `json:"build_id,omitempty"`
	File       string `json:"file,omitempty"` // of nodes by file and line
	Line       int32  `json:"line,omitempty"`
	Unresolved bool   `json:"unresolved,omitempty"`
}

// NewItem describes a node; full makes names whole.
func NewItem(n *Node, full *demangle.Demangler) Item {
	i := Item{Name: n.Name, SystemName: texts.Printable(n.SystemName), Object: n.Object,
		BuildID: n.BuildID, Unresolved: n.Unresolved}
	if name := full.Name(n.SystemName); n.By == Function && name != n.Name {
		i.FullName = name
	}
	if n.By == File || n.By == Line {
		i.File = texts.Printable(n.File)
	}
	if n.By == Line {
		i.Line = n.Line
	}
	return i
}

// NewTop adds up one event, heaviest first.
func NewTop(p *ingest.Profile, opts TopOptions) *Top {
	folder := New(p, opts.Options)
	s, flat, cum := folder.FoldSums(opts.event(), opts.Count)
	var accesses map[NodeID]*memory.Sums
	if opts.Memory {
		accesses = folder.accesses(opts.event())
	}
	overhead := make([]uint64, len(s.Nodes))
	var whole uint64
	if opts.Latency {
		plain := opts.Options
		plain.Latency = false
		var o *Stacks // with the same nodes
		o, overhead, _ = New(p, plain).FoldSums(plain.event(), plain.Count)
		whole = o.Total
	}
	t := &Top{Overhead: whole, memory: len(accesses) > 0, Head: newHead(p, s, &opts.Options), Rows: []TopRow{}}
	rows := s.rows(flat, cum, opts.Cum)
	nodes := make([]NodeID, len(rows)) // also nodes without a row: else one of two would look like both
	for i := range rows {
		nodes[i] = rows[i].Node
	}
	all := len(rows)
	if opts.MinShare > 0 {
		least := threshold(opts.MinShare, s.Total)
		rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Cum < least })
	}
	if opts.Limit > 0 && len(rows) > opts.Limit {
		rows = rows[:opts.Limit]
	}
	t.Left = all - len(rows)
	full := demangle.New(demangle.Full)
	shown := LookAlikes(s.Nodes, nodes, full)
	for _, r := range rows {
		n := &s.Nodes[r.Node]
		t.Rows = append(t.Rows, TopRow{Flat: r.Flat, Cum: r.Cum, Overhead: overhead[r.Node], Memory: accesses[r.Node],
			Item:  NewItem(n, full),
			label: cmp.Or(shown[r.Node], n.Name), suffix: ObjectSuffix(n)})
	}
	return t
}

// accesses adds up what was recorded of accesses by the innermost nodes.
func (f *Folder) accesses(event int) map[NodeID]*memory.Sums {
	sums := make(map[NodeID]*memory.Sums)
	var locs []ingest.LocationID
	for i := range f.Profile.Samples {
		smp := &f.Profile.Samples[i]
		if event != AllEvents && int(smp.Event) != event || !f.keeps(smp) {
			continue
		}
		locs = f.Profile.Stack(locs[:0], smp.Stack)
		if !f.stackOf(locs, smp) || len(f.list) == 0 {
			continue
		}
		n := f.list[len(f.list)-1] &^ inlinedBit
		if sums[n] == nil {
			sums[n] = new(memory.Sums)
		}
		if sums[n].Add(f.Profile, smp); sums[n].Empty() {
			delete(sums, n)
		}
	}
	return sums
}

// narrow is the width of terminals that show no sums of rows, so that more of the names fits.
const narrow = 72

// WriteText writes the table with the columns of `go tool pprof -top`.
func (t *Top) WriteText(w io.Writer, style table.Style) error {
	return flushing(w, func(out *bufio.Writer) {
		t.write(out)
		columns := func(flat, share, sum, cum, cumShare, overhead string) string {
			if t.Latency {
				return fmt.Sprintf("%10s %8s %8s %10s %6s  ", flat, share, overhead, cum, cumShare)
			}
			if style.Width > 0 && style.Width < narrow {
				return fmt.Sprintf("%9s %6s %9s %6s  ", flat, share, cum, cumShare)
			}
			return fmt.Sprintf("%10s %6s %6s %10s %6s  ", flat, share, sum, cum, cumShare)
		}
		flat := "flat"
		if t.Latency {
			flat = "latency"
		}
		more := func(list func() []string) string {
			if !t.memory || style.Width > 0 && style.Width < narrow {
				return ""
			}
			return memory.Line(list())[1:] + "  "
		}
		out.WriteString(columns(flat, flat+"%", "sum%", "cum", "cum%", "overhead") + more(memory.Titles) + "name\n")
		sum := uint64(0)
		for i := range t.Rows {
			r := &t.Rows[i]
			sum += r.Flat
			numbers := columns(table.Quantity(r.Flat, t.Unit),
				table.Percent(r.Flat, t.Total), table.Percent(sum, t.Total),
				table.Quantity(r.Cum, t.Unit), table.Percent(r.Cum, t.Total),
				table.Percent(r.Overhead, t.Overhead)) + more(r.Memory.Columns)
			WriteRow(out, style, numbers, table.Heat(r.Flat, t.Total), r.label, r.suffix)
		}
		if t.Left > 0 {
			fmt.Fprintf(out, "%s more rows\n", table.Thousands(uint64(t.Left)))
		}
	})
}

// WriteRow writes the numbers of a row, and a name with a suffix cut to the terminal's width, the
// suffix first.
func WriteRow(w *bufio.Writer, style table.Style, numbers string, color table.Color,
	name, suffix string) {
	text := style.FitBoth(name, suffix, len(numbers))
	w.WriteString(style.Paint(color, numbers+text) + "\n")
}

// WriteJSON writes the table as one JSON object.
func (t *Top) WriteJSON(w io.Writer) error { return texts.WriteJSON(w, "top/1", t) }
