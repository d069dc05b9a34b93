package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/analyze/bpfmap"
	"symbolize/analyze/chart"
	"symbolize/ingest"
)

// heatReport is what `map --heatmap --format json` prints. Its JSON names are an
// interface; times are ns since the first dump.
type heatReport struct {
	Map       string         `json:"map"`
	Scale     string         `json:"scale"`
	Unit      string         `json:"unit,omitempty"`
	From      string         `json:"from,omitempty"`
	Numbered  bool           `json:"numbered,omitempty"` // the times are numbers of dumps
	Intervals []intervalJSON `json:"intervals"`
	Notes     []string       `json:"notes,omitempty"`
}

type intervalJSON struct {
	Start   uint64     `json:"start"`
	End     uint64     `json:"end"`
	Cleared bool       `json:"cleared,omitempty"`
	Counts  []slotJSON `json:"counts"`
}

// Bounds of a heat map.
const (
	maxSeries = 1 << 16 // dumps
	maxCells  = 1 << 24 // slots of all dumps, of 16 bytes
)

// runHeatMap draws the series of dumps.
func runHeatMap(a *app, o *mapChartOptions, in *mapInputs) error {
	if len(in.list) > maxSeries {
		return fmt.Errorf("%d dumps are more than the %d that are drawn", len(in.list), maxSeries)
	}
	m, err := o.heatMap(a, in)
	if err != nil {
		return err
	}
	format := o.heatFormat()
	if format == formatSVG { // the others hold them
		for _, note := range m.Notes {
			a.note(m.Title + ": " + note)
		}
	}
	return a.writeOutput(o.output, false, func(w io.Writer) error {
		var out []byte
		switch format {
		case formatJSON:
			return ingest.WriteJSON(w, newHeatReport(m))
		case formatSVG:
			out = m.AppendSVG(nil)
		case formatHTML:
			out = m.AppendHTML(nil)
		default:
			terminal := a.env.StdoutTerminal && (o.output == "" || o.output == "-")
			out = m.AppendText(nil, terminal && a.env.Getenv("NO_COLOR") == "")
		}
		_, err := w.Write(out)
		return err
	})
}

// heatFormat is the format that was asked for, or that the file's name tells.
func (o *mapChartOptions) heatFormat() string {
	if o.format != "" {
		return o.format
	}
	switch strings.ToLower(filepath.Ext(o.output)) {
	case ".svg":
		return formatSVG
	case ".html", ".htm":
		return formatHTML
	case ".json":
		return formatJSON
	}
	return formatText
}

// heatMap adds up each dump's histograms and takes the differences.
func (o *mapChartOptions) heatMap(a *app, in *mapInputs) (*chart.HeatMap, error) {
	first := in.list[0]
	p, err := o.plan(a, first)
	if err != nil {
		return nil, err
	}
	h := &chart.HeatMap{Title: first.title(), Unit: o.unit, Scale: p.Scale, Numbered: !in.byTime()}
	var samples []chart.Sample
	var lost bpfmap.Losses
	hists, cells := 0, 0
	for i, m := range in.list {
		if m.header.KeySize != first.header.KeySize ||
			m.header.ValueSize != first.header.ValueSize {
			return nil, fmt.Errorf(
				"%s is of another map than %s: keys of %d and values of %d bytes, not "+
					"of %d and %d", m.name, first.name, m.header.KeySize, m.header.ValueSize,
				first.header.KeySize, first.header.ValueSize)
		}
		m.layout.Types, m.layout.Key, m.layout.Value = first.layout.Types, first.layout.Key,
			first.layout.Value
		list, l, err := m.histograms(a, p)
		if err != nil {
			return nil, err
		}
		lost.Add(l)
		hists = max(hists, len(list))
		at := m.header.Time
		if h.Numbered {
			at = uint64(i) + 1
		}
		samples = append(samples, bpfmap.Sum(list, at))
		if cells += len(samples[i].Counts); cells > maxCells {
			return nil, fmt.Errorf("%s: more than %d slots in all dumps", first.title(), maxCells)
		}
	}
	if len(samples) < 2 && !o.cleared {
		return nil, withHint(fmt.Errorf("%s: one dump makes no heat map", first.title()),
			"name several, or a bundle of `symbolize capture --maps`")
	}
	o.columns(h, samples)
	if !h.Numbered {
		h.From = first.wall(samples[0].Time)
	}
	if hists > 1 {
		h.Notes = append(h.Notes, fmt.Sprintf("the sum of up to %d keys", hists))
	}
	h.Notes = append(h.Notes, lost.Texts()...)
	return h, nil
}

// columns fills in the intervals.
func (o *mapChartOptions) columns(h *chart.HeatMap, samples []chart.Sample) {
	var before uint64
	h.Columns, before = chart.Differences(samples, o.cleared)
	if before > 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("%d counts are of before the first dump", before))
	}
	resets := 0
	for i := range h.Columns {
		if h.Columns[i].Reset {
			resets++
		}
	}
	if resets > 0 {
		h.Notes = append(h.Notes, fmt.Sprintf(
			"intervals in which counts became fewer, because the "+
				"map was cleared or elements were deleted: %d", resets))
	}
}

// byTime puts the dumps in the order of time; false if not all say theirs.
func (in *mapInputs) byTime() bool {
	seen := make(map[uint64]bool)
	for _, m := range in.list {
		if m.header.Time == 0 || seen[m.header.Time] {
			return false
		}
		seen[m.header.Time] = true
	}
	slices.SortFunc(in.list, func(a, b *mapInput) int {
		if a.header.Time < b.header.Time {
			return -1
		}
		return 1
	})
	return true
}

func newHeatReport(m *chart.HeatMap) *heatReport {
	r := &heatReport{Map: m.Title, Scale: m.Scale.String(), Unit: m.Unit, From: m.From,
		Numbered: m.Numbered, Notes: m.Notes, Intervals: []intervalJSON{}}
	for i := range m.Columns {
		c := &m.Columns[i]
		x := intervalJSON{Start: c.Start, End: c.End, Cleared: c.Reset,
			Counts: slotsJSON(m.Scale, c.Counts)}
		if !m.Numbered {
			x.Start, x.End = c.Start-m.Columns[0].Start, c.End-m.Columns[0].Start
		}
		r.Intervals = append(r.Intervals, x)
	}
	return r
}
