package bpfmap

import (
	"fmt"
	"io"
	"strconv"

	"symbolize/analyze/demangle"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/texts"
)

// SymbolReport are counts by code address. Its JSON names are an interface.
type SymbolReport struct {
	MapName
	Field string      `json:"field"`
	Total uint64      `json:"total"`
	Rows  []SymbolRow `json:"rows"`
	Lost  []string    `json:"lost,omitempty"`

	rows     []Row // Rows before they have names
	returns  bool
	unplaced int
}

// SymbolRow is a code address with its count and name.
type SymbolRow struct {
	Address string        `json:"address"`
	Label   string        `json:"label,omitempty"` // of the rest of the key
	Count   uint64        `json:"count"`
	Frames  []SymbolFrame `json:"frames,omitempty"` // innermost first, inlined ones too
	Offset  uint64        `json:"offset"`           // of the address, from the function's start
	Object  string        `json:"object,omitempty"`
	Reason  string        `json:"reason,omitempty"` // why it has no name
}

// SymbolFrame is a function at an address.
type SymbolFrame struct {
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int32  `json:"line,omitempty"`
	Inlined  bool   `json:"inlined,omitempty"`
}

// SymbolOptions select the counts of a SymbolReport.
type SymbolOptions struct {
	Key     string // field of the key that is the address, or "key"
	Count   string // field of the value; "" for the only number
	Rows    int    // the most to keep; 0 for all
	Returns bool   // addresses are return addresses
}

// Addresses counts by code address. Name then names them.
func (m *Dump) Addresses(o SymbolOptions, log Log) (*SymbolReport, error) {
	field, err := m.Layout.KeyField(o.Key)
	if err != nil {
		return nil, fmt.Errorf("--symbols: %s: %w", m.Title(), err)
	}
	count, err := m.Layout.Count(o.Count)
	if err != nil {
		return nil, texts.WithHint(fmt.Errorf("%s: %w", m.Title(), err), "--count names the field")
	}
	next, end, err := m.pairs()
	if err != nil {
		return nil, err
	}
	field.Signed = false
	rows, lost := m.Layout.Addresses(next, field, count)
	m.report(log, end())
	for _, text := range lost.Texts() {
		log.Warn(m.Title()+": "+text, "")
	}
	r := &SymbolReport{MapName: m.mapName(), Field: field.Name, Lost: lost.Texts(), Rows: []SymbolRow{},
		rows: rows, returns: o.Returns}
	for _, row := range rows {
		r.Total += row.Count
	}
	if o.Rows > 0 && len(rows) > o.Rows {
		log.Note(fmt.Sprintf("%d rows of %d; -n 0 shows all", o.Rows, len(rows)))
		r.rows = rows[:o.Rows]
	}
	return r, nil
}

// PCs returns the addresses to resolve, by row; for return addresses, addresses inside the calls.
func (r *SymbolReport) PCs() []uint64 {
	list := make([]uint64, len(r.rows))
	for i, row := range r.rows {
		list[i] = addr.Site(row.Address, r.returns)
	}
	return list
}

// Name fills in Rows from a resolved profile; at has the location of each of PCs.
func (r *SymbolReport) Name(p *ingest.Profile, at []ingest.LocationID, d *demangle.Demangler) {
	for i, row := range r.rows {
		x := newSymbolRow(p, at[i], d)
		x.Address, x.Label, x.Count = fmt.Sprintf("%#x", row.Address), row.Label, row.Count
		if x.Reason == "" {
			x.Offset = addr.Return(x.Offset, r.returns)
		}
		if kernelUnknown(p, at[i]) {
			r.unplaced++
		}
		r.Rows = append(r.Rows, x)
	}
}

// kernelUnknown reports whether a location is a kernel address in no known kernel.
func kernelUnknown(p *ingest.Profile, at ingest.LocationID) bool {
	o := &p.Objects[p.Locations[at].Object]
	return o.File.Path == ingest.UnmappedKernelPath && o.Reason == ingest.MapsNotSaved
}

// Unplaced returns the number of rows with kernel addresses that are in no known kernel.
func (r *SymbolReport) Unplaced() int { return r.unplaced }

// newSymbolRow makes a row with the names of a location.
func newSymbolRow(p *ingest.Profile, at ingest.LocationID, d *demangle.Demangler) (x SymbolRow) {
	x.Object, x.Frames, x.Reason = namesAt(p, at, d)
	if x.Reason == "" {
		x.Offset = p.Names.SymOff[at]
	}
	return x
}

// namesAt returns the object and the functions at a location, or the reason why there are none.
func namesAt(p *ingest.Profile, at ingest.LocationID, d *demangle.Demangler) (
	object string, frames []SymbolFrame, reason string) {
	object = ingest.ShortName(&p.Objects[p.Locations[at].Object])
	if !p.Names.Named(at) {
		return object, nil, p.Names.Reasons[at].String()
	}
	for _, f := range p.Names.At(at) {
		fn := &p.Names.Functions[f.Func]
		frames = append(frames, SymbolFrame{Function: d.Name(fn.SystemName), File: fn.File,
			Line: f.Line, Inlined: f.Inlined})
	}
	return object, frames, ""
}

// WriteText prints a row for each address: the function that holds it with the offset,
// as the kernel's %pS prints it, and the innermost line; inlined calls below.
func (r *SymbolReport) WriteText(w io.Writer) error {
	t := table.New(true, true, false, false).Names(2, 3)
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

// function names the physical function of a row and the calls inlined there.
func (x *SymbolRow) function() string {
	if len(x.Frames) == 0 {
		return fmt.Sprintf("[%s] %s: %s", x.Object, x.Address, x.Reason)
	}
	last := len(x.Frames) - 1
	return fmt.Sprintf("%s+%#x", x.Frames[last].Function, x.Offset) + inlinedText(x.Frames)
}

// inlinedText lists the calls inlined in the physical function, which is last.
func inlinedText(frames []SymbolFrame) (text string) {
	for i := len(frames) - 2; i >= 0; i-- {
		text += " > " + frames[i].Function
	}
	return text
}

// line is where the address is in the source.
func (x *SymbolRow) line() string { return lineText(x.Frames) }

// lineText is the line of the innermost function.
func lineText(frames []SymbolFrame) string {
	if len(frames) == 0 || frames[0].File == "" {
		return "-"
	}
	return fmt.Sprintf("%s:%d", frames[0].File, frames[0].Line)
}
