package reportcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/chart"
	"symbolize/analyze/flame"
	"symbolize/analyze/report"
	"symbolize/analyze/table"
	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
)

// latencyWords are the words of --of.
var latencyWords = []string{ingest.RunQueueEvent, ingest.OffCPUEvent, "pair"}

const (
	latencyColumns = 60 // about
	worstSamples   = 10
	worstFrames    = 6 // of a stack that is printed
)

// latencies counts samples by their end and their time, and keeps the longest.
type latencies struct {
	width   uint64 // of a column, ns
	columns map[uint64][]uint64
	worst   []latency // longest first
	sums    uint64    // samples without a time: sums of perf record --off-cpu
	unit    string    // of the values
}

// latency is one of the longest samples, or of those with the greatest values.
type latency struct {
	Seconds string   `json:"seconds"` // of the recording's clock, when it ended
	Nanos   *uint64  `json:"duration_ns,omitempty"`
	Value   *uint64  `json:"value,omitempty"` // of a field
	Comm    string   `json:"comm"`
	PID     int32    `json:"pid"`
	TID     int32    `json:"tid"`
	CPU     int32    `json:"cpu"`
	Stack   []string `json:"stack"` // innermost first
	at      []ingest.LocationID
	period  uint64
}

// newLatencies makes an empty latencies for the samples of an event.
func newLatencies(p *ingest.Profile, event int, of string) *latencies {
	l := &latencies{columns: make(map[uint64][]uint64), width: 1e6, unit: unitOf(&p.Events[event], of)}
	for uint64(p.Meta.Duration)/l.width > latencyColumns {
		l.width *= 2
	}
	return l
}

// add counts a sample.
func (l *latencies) add(s *input.ReplaySample) {
	if s.Time == perfdata.NoTime {
		l.sums++
		return
	}
	slot := max(bits.Len64(s.Period), 1) - 1 // of chart.Log2
	counts := l.columns[s.Time/l.width]
	for len(counts) <= slot {
		counts = append(counts, 0)
	}
	counts[slot]++
	l.columns[s.Time/l.width] = counts
	at, _ := slices.BinarySearchFunc(l.worst, s.Period, func(x latency, ns uint64) int {
		return cmp.Or(cmp.Compare(ns, x.period), -1)
	})
	if at == worstSamples {
		return
	}
	x := latency{Seconds: fmt.Sprintf("%d.%06d", s.Time/1e9, s.Time%1e9/1e3), period: s.Period,
		Comm: texts.Printable(s.Comm), PID: s.PID, TID: s.TID, CPU: s.CPU, Stack: []string{}}
	if l.unit == "ns" {
		x.Nanos = &x.period
	} else {
		x.Value = &x.period
	}
	for _, f := range s.Frames {
		x.at = append(x.at, f.Location)
	}
	l.worst = slices.Insert(l.worst, at, x)
	l.worst = l.worst[:min(len(l.worst), worstSamples)]
}

// finish warns of samples that are left out and names the stacks of the longest.
func (l *latencies) finish(a *cli.App, c *input.Capture, p *ingest.Profile) {
	if l.sums > 0 {
		a.Warn(fmt.Sprintf("%s: %d samples are left out, as they are sums of waits", c.Path(), l.sums),
			"record single waits: perf record --off-cpu --off-cpu-thresh 0")
	}
	mode, _ := cli.ParseDemangle("", "simple")
	d := report.NewDemangler(mode)
	for i := range l.worst {
		x := &l.worst[i]
		for _, at := range x.at {
			name := "[" + ingest.ShortName(&p.Objects[p.Locations[at].Object]) + "]"
			if frames := p.Names.At(at); len(frames) > 0 {
				name = d.Name(p.Names.Functions[frames[0].Func].SystemName)
			}
			x.Stack = append(x.Stack, texts.Printable(name))
		}
	}
}

// show gives a page its rows, the longest times first, and the table of the longest.
func (l *latencies) show(g *flame.Graph) {
	m := l.heatMap("")
	most := 0
	for _, c := range m.Columns {
		most = max(most, len(c.Counts))
	}
	if most == 0 {
		return
	}
	rows := &flame.HeatGrid{Start: m.Columns[0].Start, Width: l.width, Columns: len(m.Columns)}
	for slot := most - 1; slot >= 0; slot-- {
		low, _ := m.Scale.Bounds(slot)
		n, _ := strconv.ParseUint(low, 10, 64)
		rows.Rows = append(rows.Rows, "from "+table.Quantity(n, l.quantityUnit()))
	}
	for i, c := range m.Columns {
		for slot, n := range slices.Backward(c.Counts) {
			if n > 0 {
				rows.Cells = append(rows.Cells, flame.HeatCell{Column: i, Row: most - 1 - slot, Count: n})
				rows.Total += n
			}
		}
	}
	for empty := l.emptyRows(m); empty > 0; empty-- {
		rows.Rows = rows.Rows[:len(rows.Rows)-1]
	}
	g.Rows, g.RowsBy = rows, "time, longest first"
	value := flame.TableColumn{Name: "time", Kind: flame.NanosecondsColumn}
	if l.unit != "ns" {
		g.RowsBy, value = l.unit+", greatest first", flame.TableColumn{Name: l.unit, Kind: flame.CountColumn}
	}
	t := flame.Table{Name: "Longest", Columns: []flame.TableColumn{value}}
	for _, name := range []string{"seconds", "comm", "tid", "cpu", "stack, innermost first"} {
		t.Columns = append(t.Columns, flame.TableColumn{Name: name, Kind: flame.TextColumn})
	}
	for i := range l.worst {
		x := &l.worst[i]
		t.Rows = append(t.Rows, []any{x.period, x.Seconds, x.Comm, fmt.Sprint(x.TID), fmt.Sprint(x.CPU),
			strings.Join(x.Stack[:min(len(x.Stack), worstFrames)], " < ")})
	}
	g.Tables = append(g.Tables, t)
}

// emptyRows is how many of the shortest times have no sample.
func (l *latencies) emptyRows(m *chart.HeatMap) int {
	for slot := 0; ; slot++ {
		for _, c := range m.Columns {
			if slot < len(c.Counts) && c.Counts[slot] > 0 {
				return slot
			}
		}
	}
}

// quantityUnit is the unit of values as table.Quantity knows it.
func (l *latencies) quantityUnit() string {
	if l.unit == "ns" {
		return "nanoseconds"
	}
	return l.unit
}

// widen joins pairs of columns.
func (l *latencies) widen() {
	columns := make(map[uint64][]uint64)
	for c, counts := range l.columns {
		sums := slices.Grow(columns[c/2], len(counts))
		sums = sums[:max(len(sums), len(counts))]
		for slot, n := range counts {
			sums[slot] += n
		}
		columns[c/2] = sums
	}
	l.columns, l.width = columns, l.width*2
}

// heatMap makes the picture.
func (l *latencies) heatMap(title string) *chart.HeatMap {
	m := &chart.HeatMap{Title: title, Unit: l.unit, Scale: chart.Scale{Kind: chart.Log2}}
	at := slices.Sorted(maps.Keys(l.columns))
	if len(at) == 0 {
		return m
	}
	for at[len(at)-1]-at[0] > 4*latencyColumns { // of a damaged file
		l.widen()
		at = slices.Sorted(maps.Keys(l.columns))
	}
	for c := at[0]; c <= at[len(at)-1]; c++ {
		m.Columns = append(m.Columns, chart.Column{Start: c * l.width, End: (c + 1) * l.width,
			Counts: l.columns[c]})
	}
	return m
}

// latencyReport is the form of --format json.
type latencyReport struct {
	Event   string          `json:"event"`
	Unit    string          `json:"unit,omitempty"` // of a field's values
	Columns []latencyColumn `json:"columns"`
	Worst   []latency       `json:"worst"`
}

// latencyColumn has the counts of 2^i to 2^(i+1)-1 ns, or of the unit.
type latencyColumn struct {
	Start  uint64   `json:"start,string"`
	End    uint64   `json:"end,string"`
	Counts []uint64 `json:"counts"`
}

// unitOf returns the unit of a field's values: "bytes", or the name of the field for a count.
func unitOf(e *ingest.Event, of string) string {
	switch field, ok := strings.CutPrefix(of, ingest.FieldTag); {
	case !ok, e.Unit == "nanoseconds":
		return "ns"
	case e.Unit == "count":
		return field
	}
	return e.Unit
}

// runLatency draws the times of a derived event, or the values of a field.
func runLatency(ctx context.Context, a *cli.App, o *heatOptions, s *cli.Session, paths []string) error {
	return s.Each(ctx, paths, func(c *input.Capture, p *ingest.Profile) error {
		if _, err := s.Name(ctx, p); err != nil {
			return err
		}
		s.PrintWarnings(p)
		event := s.Event(p)
		if event < 0 {
			event = 0
		}
		a.PrintOtherEvents(p, event)
		l := newLatencies(p, event, o.of)
		if err := c.Replay(ctx, func(s *input.ReplaySample) error {
			if int(s.Event) == event {
				l.add(s)
			}
			return nil
		}); err != nil {
			return err
		}
		l.finish(a, c, p)
		name := o.Event
		if o.Weight != "" {
			name = p.Events[event].Name + " " + o.of
		}
		m := l.heatMap(name + ": " + c.Path())
		return a.WriteOutput(o.output, false, func(w io.Writer) error {
			if o.format == cli.JSON {
				return l.writeJSON(w, name, m)
			}
			return l.writeText(w, m)
		})
	})
}

func (l *latencies) writeJSON(w io.Writer, event string, m *chart.HeatMap) error {
	r := latencyReport{Event: event, Unit: l.unit, Worst: slices.Concat([]latency{}, l.worst)}
	if r.Unit == "ns" {
		r.Unit = ""
	}
	for _, c := range m.Columns {
		r.Columns = append(r.Columns, latencyColumn{c.Start, c.End, slices.Concat([]uint64{}, c.Counts)})
	}
	return texts.WriteJSON(w, "heatmap-of/1", r)
}

// writeText writes the histogram and the longest samples.
func (l *latencies) writeText(w io.Writer, m *chart.HeatMap) error {
	sums := &chart.Histogram{}
	for _, c := range m.Columns {
		for slot, n := range c.Counts {
			sums.Add(slot, n)
		}
	}
	text := chart.AppendHistogram(nil, sums, m.Scale, chart.StyleBCC, l.unit)
	if _, err := w.Write(append(text, '\n')); err != nil {
		return err
	}
	t := table.New(true, true, false, true, true).Names(5)
	head, value := "time", chart.Nanoseconds
	if l.unit != "ns" {
		head, value = l.unit, func(n uint64) string { return fmt.Sprint(n) }
	}
	t.Row("seconds", head, "comm", "tid", "cpu", "stack, innermost first")
	for i := range l.worst {
		x := &l.worst[i]
		stack := strings.Join(x.Stack[:min(len(x.Stack), worstFrames)], " < ")
		t.Row(x.Seconds, value(x.period), x.Comm, fmt.Sprint(x.TID), fmt.Sprint(x.CPU), stack)
	}
	return t.Print(w)
}
