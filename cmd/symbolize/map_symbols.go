package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"symbolize/analyze/bpfmap"
	"symbolize/analyze/report"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

// symbolReport is what `map --symbols --format json` prints. Its JSON names are an
// interface.
type symbolReport struct {
	Map   string      `json:"map"`
	Field string      `json:"field"`
	Total uint64      `json:"total"`
	Rows  []symbolRow `json:"rows"`
	Lost  []string    `json:"lost,omitempty"`
}

type symbolRow struct {
	Address string        `json:"address"`
	Label   string        `json:"label,omitempty"` // what the key says besides
	Count   uint64        `json:"count"`
	Frames  []symbolFrame `json:"frames,omitempty"` // innermost first, inlined ones too
	Offset  uint64        `json:"offset"`           // of the address, from the function's start
	Object  string        `json:"object,omitempty"`
	Reason  string        `json:"reason,omitempty"` // why it has no name
}

type symbolFrame struct {
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int32  `json:"line,omitempty"`
	Inlined  bool   `json:"inlined,omitempty"`
}

// runSymbols prints the counts of a map whose keys are code addresses, with names.
func runSymbols(ctx context.Context, a *app, o *mapChartOptions, in *mapInputs,
	bundles []string) error {
	m, err := in.last(a)
	if err != nil {
		return err
	}
	field, err := m.layout.KeyField(o.symbols)
	if err != nil {
		return fmt.Errorf("--symbols: %s: %w", m.title(), err)
	}
	count, err := m.layout.Count(o.count)
	if err != nil {
		return withHint(fmt.Errorf("%s: %w", m.title(), err), "--count names the field")
	}
	next, end, err := m.pairs()
	if err != nil {
		return err
	}
	field.Signed = false
	rows, lost := m.layout.Addresses(next, field, count)
	m.tell(a, end())
	for _, text := range lost.Texts() {
		a.warn(m.title()+": "+text, "")
	}
	r := &symbolReport{Map: m.title(), Field: field.Name, Lost: lost.Texts(), Rows: []symbolRow{}}
	for _, row := range rows {
		r.Total += row.Count
	}
	if o.rows > 0 && len(rows) > o.rows {
		a.note(fmt.Sprintf("%d rows of %d; -n 0 shows all", o.rows, len(rows)))
		rows = rows[:o.rows]
	}
	if err := o.name(ctx, a, m, r, rows, bundles); err != nil {
		return err
	}
	return a.writeOutput(o.output, false, func(w io.Writer) error {
		if o.format == formatJSON {
			return ingest.WriteJSON(w, r)
		}
		return r.writeText(w)
	})
}

// name resolves the addresses of rows.
func (o *mapChartOptions) name(ctx context.Context, a *app, m *mapInput, r *symbolReport,
	rows []bpfmap.Row, bundles []string) error {
	inputs := inputOptions{with: o.with, kallsyms: o.kallsyms, bundles: bundles}
	if len(o.kallsyms) > 0 {
		inputs.stacks.parsed.Kallsyms = o.kallsyms[0]
	}
	s, err := a.openSession(ctx, &inputs)
	if err != nil {
		return err
	}
	defer s.Close()
	list := make([]uint64, len(rows))
	for i, row := range rows {
		list[i] = row.Address
		if o.returns && row.Address > 0 {
			list[i]-- // into the call
		}
	}
	p, at, err := input.Addresses(ctx, m.name, list, s.ingestOptions(ingest.Keep{}))
	if err != nil {
		return captureError(err)
	}
	if err := s.resolve(ctx, p); err != nil {
		return err
	}
	a.printWarnings(p)
	demangler := report.NewDemangler(o.mode)
	for i, row := range rows {
		x := newSymbolRow(p, at[i], demangler)
		x.Address, x.Label, x.Count = fmt.Sprintf("%#x", row.Address), row.Label, row.Count
		if o.returns && x.Reason == "" {
			x.Offset++
		}
		r.Rows = append(r.Rows, x)
	}
	return nil
}

// newSymbolRow takes the names of a location.
func newSymbolRow(p *ingest.Profile, at ingest.LocationID, d *report.Demangler) (x symbolRow) {
	x.Object = ingest.ShortName(&p.Objects[p.Locations[at].Object])
	if !p.Names.Named(at) {
		x.Reason = p.Names.Reasons[at].String()
		return x
	}
	x.Offset = p.Names.SymOff[at]
	for _, f := range p.Names.At(at) {
		fn := &p.Names.Functions[f.Func]
		x.Frames = append(x.Frames, symbolFrame{Function: d.Name(fn.SystemName), File: fn.File,
			Line: f.Line, Inlined: f.Inlined})
	}
	return x
}

// writeText prints a row for each address: the function that holds it with the offset,
// as the kernel's %pS prints it, and the innermost line; inlined calls below.
func (r *symbolReport) writeText(w io.Writer) error {
	t := table.New(true, true, false, false)
	labels := false
	for i := range r.Rows {
		labels = labels || r.Rows[i].Label != ""
	}
	head := []string{"COUNT", "SHARE", "FUNCTION", "LINE"}
	if labels {
		head = append(head, "KEY")
	}
	t.Row(head...)
	for i := range r.Rows {
		x := &r.Rows[i]
		share := "-"
		if r.Total > 0 {
			share = fmt.Sprintf("%.2f%%", 100*float64(x.Count)/float64(r.Total))
		}
		cells := []string{strconv.FormatUint(x.Count, 10), share, x.function(), x.line()}
		if labels {
			cells = append(cells, x.Label)
		}
		t.Row(cells...)
	}
	return t.Print(w)
}

// function is the physical function of a row, with what was inlined there.
func (x *symbolRow) function() string {
	if len(x.Frames) == 0 {
		return fmt.Sprintf("[%s] %s: %s", x.Object, x.Address, x.Reason)
	}
	last := len(x.Frames) - 1
	text := fmt.Sprintf("%s+%#x", x.Frames[last].Function, x.Offset)
	for i := last - 1; i >= 0; i-- {
		text += " > " + x.Frames[i].Function
	}
	return text
}

// line is where the address is in the source.
func (x *symbolRow) line() string {
	if len(x.Frames) == 0 || x.Frames[0].File == "" {
		return "-"
	}
	return fmt.Sprintf("%s:%d", x.Frames[0].File, x.Frames[0].Line)
}
