package reportcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"symbolize/analyze/chart"
	"symbolize/analyze/demangle"
	"symbolize/analyze/flame"
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
	worstSamples = 10
	worstFrames  = 6 // of a stack that is printed
)

// latencies counts samples by their end and their time, and keeps the longest.
type latencies struct {
	counter *flame.HeatCounter
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
	l := &latencies{unit: unitOf(&p.Events[event], of)}
	unit := l.unit
	if unit == "ns" {
		unit = "nanoseconds" // as table.Quantity knows it
	}
	l.counter = flame.NewHeatValues(unit)
	return l
}

// add counts a sample.
func (l *latencies) add(s *input.ReplaySample) {
	if s.Time == perfdata.NoTime {
		l.sums++
		return
	}
	l.counter.AddValue(s.Time, s.Period)
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
	d := demangle.New(mode)
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
	rows := l.counter.Grid()
	if rows.Total == 0 {
		return
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

func (l *latencies) writeJSON(w io.Writer, event string, g *flame.HeatGrid) error {
	r := latencyReport{Event: event, Unit: l.unit, Worst: slices.Concat([]latency{}, l.worst)}
	if r.Unit == "ns" {
		r.Unit = ""
	}
	for i := range uint64(g.Columns) {
		start := g.Start + i*g.Width
		r.Columns = append(r.Columns, latencyColumn{start, start + g.Width, []uint64{}})
	}
	for _, c := range g.Cells {
		counts, power := &r.Columns[c.Column].Counts, g.Power-c.Row
		for len(*counts) <= power {
			*counts = append(*counts, 0)
		}
		(*counts)[power] = c.Count
	}
	return texts.WriteJSON(w, "heatmap-of/1", r)
}

// writeText writes the histogram and the longest samples.
func (l *latencies) writeText(w io.Writer, g *flame.HeatGrid) error {
	sums := &chart.Histogram{}
	for _, c := range g.Cells {
		sums.Add(g.Power-c.Row, c.Count)
	}
	text := chart.AppendHistogram(nil, sums, chart.Scale{Kind: chart.Log2}, chart.StyleBCC, l.unit)
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
