package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
)

// TopOptions are for NewTop.
type TopOptions struct {
	Event     int  // which of Profile.Events
	Count     bool // samples instead of weight
	Limit     int  // how many rows are printed; 0 for all
	Cum       bool // sort by the cumulative value
	Demangler *Demangler
}

// Top is a flat and cumulative table by function.
type Top struct {
	Event   string   `json:"event"`
	Unit    string   `json:"unit"`
	Others  []string `json:"other_events,omitempty"` // events with samples that are not shown
	Total   uint64   `json:"total"`
	Samples uint64   `json:"samples"`
	Rows    []TopRow `json:"rows"`
	Left    int      `json:"rows_left_off,omitempty"` // by Limit
}

// TopRow is a function of one object, a BPF function of all its loads, or all unresolved
// frames of an object.
type TopRow struct {
	Flat       uint64 `json:"flat"` // where it was the leaf
	Cum        uint64 `json:"cum"`  // where it was on the stack, recursion counted once
	Name       string `json:"name"` // demangled; "[libc.so.6]" if unresolved
	SystemName string `json:"system_name,omitempty"`
	Object     string `json:"object"`
	BuildID    string `json:"build_id,omitempty"`
	Unresolved bool   `json:"unresolved,omitempty"`
}

// NewTop adds up one event by function, heaviest first.
func NewTop(p *ingest.Profile, opts TopOptions) *Top {
	if opts.Demangler == nil {
		opts.Demangler = NewDemangler(Simple)
	}
	opts.Demangler.Warm(p)
	c := newTopCounter(p, &opts)
	t := &Top{Others: OtherEvents(p, opts.Event)}
	if opts.Event < len(p.Events) {
		t.Event, t.Unit = ingest.Printable(p.Events[opts.Event].Name),
			ingest.Printable(p.Events[opts.Event].Unit)
	}
	if opts.Count {
		t.Unit = "samples"
	}
	t.Total, t.Samples = c.count()
	t.Rows = c.rows()
	if opts.Limit > 0 && len(t.Rows) > opts.Limit {
		t.Left = len(t.Rows) - opts.Limit
		t.Rows = t.Rows[:opts.Limit]
	}
	return t
}

// DefaultEvent is the event that folded and top show when none is named: the
// first that has samples.
func DefaultEvent(p *ingest.Profile) int {
	first := len(p.Events)
	for i := range p.Samples {
		first = min(first, int(p.Samples[i].Event))
	}
	if first == len(p.Events) {
		return 0
	}
	return first
}

// OtherEvents names the events besides this one that have samples.
func OtherEvents(p *ingest.Profile, event int) []string {
	has := make([]bool, len(p.Events))
	for i := range p.Samples {
		has[p.Samples[i].Event] = true
	}
	var names []string
	for i := range p.Events {
		if has[i] && i != event {
			names = append(names, ingest.Printable(p.Events[i].Name))
		}
	}
	return names
}

// topCounter counts by row number: functions first, then the unresolved rest of
// each object.
type topCounter struct {
	p         *ingest.Profile
	opts      *TopOptions
	row       []uint32 // by FuncID
	functions []ingest.FuncID
	flat, cum []uint64
	seen      []uint32 // by row: number of the last sample that had it, plus one
}

func newTopCounter(p *ingest.Profile, opts *TopOptions) *topCounter {
	c := &topCounter{p: p, opts: opts}
	if p.Names != nil {
		// Functions are sorted by object and name: those that differ only in file and
		// line are neighbours, and one row.
		funcs := p.Names.Functions
		c.row = make([]uint32, len(funcs))
		jited := make(map[string]uint32)
		for i := range funcs {
			// The name of a BPF function has its tag: loads of it that are several objects,
			// since the kernel hardened their code, are one function.
			if isProgram(p, &funcs[i]) {
				row, ok := jited[funcs[i].SystemName]
				if !ok {
					row = uint32(len(c.functions))
					jited[funcs[i].SystemName] = row
					c.functions = append(c.functions, ingest.FuncID(i))
				}
				c.row[i] = row
				continue
			}
			if i == 0 || funcs[i].Object != funcs[i-1].Object ||
				funcs[i].SystemName != funcs[i-1].SystemName {
				c.functions = append(c.functions, ingest.FuncID(i))
			}
			c.row[i] = uint32(len(c.functions) - 1)
		}
	}
	n := len(c.functions) + len(p.Objects)
	c.flat, c.cum, c.seen = make([]uint64, n), make([]uint64, n), make([]uint32, n)
	return c
}

// isProgram reports whether a function is one of a BPF program.
func isProgram(p *ingest.Profile, f *ingest.Function) bool {
	_, _, ok := bpf.SplitSymbol(f.SystemName)
	return ok && p.Objects[f.Object].Kind == ingest.JIT
}

func (c *topCounter) count() (total, samples uint64) {
	for i := range c.p.Samples {
		s := &c.p.Samples[i]
		if int(s.Event) != c.opts.Event {
			continue
		}
		value := s.Weight
		if c.opts.Count {
			value = s.Count
		}
		total += value
		samples += s.Count
		for k, l := range c.p.Stack(s.Stack) {
			c.location(l, k == 0, value, uint32(i)+1)
		}
	}
	return total, samples
}

func (c *topCounter) location(l ingest.LocationID, leaf bool, value uint64, sample uint32) {
	if c.p.Names != nil {
		frames := c.p.Names.At(l)
		for i := range frames {
			c.add(c.row[frames[i].Func], leaf && i == 0, value, sample)
		}
		if len(frames) > 0 {
			return
		}
	}
	c.add(uint32(len(c.functions))+uint32(c.p.Locations[l].Object), leaf, value, sample)
}

func (c *topCounter) add(row uint32, leaf bool, value uint64, sample uint32) {
	if leaf {
		c.flat[row] += value
	}
	if c.seen[row] != sample {
		c.seen[row] = sample
		c.cum[row] += value
	}
}

// rows gives the functions on stacks, heaviest first, then by name and object.
func (c *topCounter) rows() []TopRow {
	rows := make([]TopRow, 0, len(c.functions))
	for i := range c.cum {
		if c.cum[i] == 0 && c.flat[i] == 0 {
			continue
		}
		r := TopRow{Flat: c.flat[i], Cum: c.cum[i]}
		var o *ingest.Object
		if i < len(c.functions) {
			f := &c.p.Names.Functions[c.functions[i]]
			o = &c.p.Objects[f.Object]
			r.Name = c.opts.Demangler.Name(f.SystemName)
			r.SystemName = ingest.Printable(f.SystemName)
		} else {
			o = &c.p.Objects[i-len(c.functions)]
			r.Name, r.Unresolved = "["+ingest.ShortName(o)+"]", true
		}
		r.Object, r.BuildID = ingest.Printable(o.File.Path), o.ID.String()
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b TopRow) int {
		first := cmp.Compare(b.Flat, a.Flat)
		second := cmp.Compare(b.Cum, a.Cum)
		if c.opts.Cum {
			first, second = second, first
		}
		return cmp.Or(first, second, cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.SystemName, b.SystemName),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.BuildID, b.BuildID))
	})
	return rows
}

// WriteText writes the table with the columns of `go tool pprof -top`.
func (t *Top) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "event: %s, %s samples, total %s\n", t.Event, thousands(t.Samples),
		quantity(t.Total, t.Unit))
	if len(t.Others) > 0 {
		fmt.Fprintf(out, "other events: %s (--event)\n", joinNames(t.Others))
	}
	fmt.Fprintf(out, "%10s %6s %6s %10s %6s  %s\n", "flat", "flat%", "sum%", "cum", "cum%", "name")
	sum := uint64(0)
	for i := range t.Rows {
		r := &t.Rows[i]
		sum += r.Flat
		fmt.Fprintf(out, "%10s %6s %6s %10s %6s  %s", quantity(r.Flat, t.Unit),
			percent(r.Flat, t.Total),
			percent(sum, t.Total), quantity(r.Cum, t.Unit), percent(r.Cum, t.Total), r.Name)
		// A BPF function is an object of its own name.
		if object := baseName(r.Object); !r.Unresolved && r.Object != "" && object != r.Name {
			fmt.Fprintf(out, "  (%s)", object)
		}
		out.WriteByte('\n')
	}
	if t.Left > 0 {
		fmt.Fprintf(out, "%s more rows\n", thousands(uint64(t.Left)))
	}
	return out.Flush()
}

// WriteJSON writes the table as one JSON object.
func (t *Top) WriteJSON(w io.Writer) error { return ingest.WriteJSON(w, t) }

// quantity prints a value with three or four digits in its unit: "1.23s".
func quantity(v uint64, unit string) string {
	switch unit {
	case "nanoseconds":
		switch f := float64(v); {
		case v < 1e3:
			return strconv.FormatUint(v, 10) + "ns"
		case v < 1e6:
			return fmt.Sprintf("%.2fus", f/1e3)
		case v < 1e9:
			return fmt.Sprintf("%.2fms", f/1e6)
		default:
			return fmt.Sprintf("%.2fs", f/1e9)
		}
	case "bytes":
		f, units := float64(v), "kMGTPE"
		if v < 1024 {
			return strconv.FormatUint(v, 10) + "B"
		}
		for f /= 1024; f >= 1024 && len(units) > 1; units = units[1:] {
			f /= 1024
		}
		return fmt.Sprintf("%.2f%cB", f, units[0])
	}
	return strconv.FormatUint(v, 10)
}

// percent prints a share; "0%" is nothing at all.
func percent(part, all uint64) string {
	switch {
	case all == 0 || part == 0:
		return "0%"
	case part == all:
		return "100%"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(all))
}

// thousands prints a number with commas.
func thousands(v uint64) string {
	s := strconv.FormatUint(v, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
