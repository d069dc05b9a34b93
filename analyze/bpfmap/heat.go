package bpfmap

import (
	"fmt"

	"symbolize/analyze/chart"
	"symbolize/ingest/texts"
)

// HeatReport is a heat map as data. Its JSON names are an interface; times are ns since the
// first dump.
type HeatReport struct {
	MapName
	Scale     string         `json:"scale"`
	Unit      string         `json:"unit,omitempty"`
	From      string         `json:"from,omitempty"`
	Numbered  bool           `json:"numbered,omitempty"` // the times are numbers of dumps
	Intervals []IntervalJSON `json:"intervals"`
	Notes     []string       `json:"notes,omitempty"`
}

// IntervalJSON are the counts between two dumps.
type IntervalJSON struct {
	Start   uint64     `json:"start"`
	End     uint64     `json:"end"`
	Cleared bool       `json:"cleared,omitempty"`
	Counts  []SlotJSON `json:"counts"`
}

// Bounds of a heat map.
const (
	maxSeries    = 1 << 16 // dumps
	maxHeatCells = 1 << 24 // slots of all dumps, of 16 bytes
)

// HeatMap adds up the histograms of each dump and computes the differences.
func (in *Dumps) HeatMap(o ChartOptions, log Log) (*chart.HeatMap, error) {
	if len(in.List) > maxSeries {
		return nil, fmt.Errorf("%d dumps are more than the %d that are drawn", len(in.List),
			maxSeries)
	}
	first := in.List[0]
	p, err := first.plan(&o, log)
	if err != nil {
		return nil, err
	}
	h := &chart.HeatMap{Title: first.Title(), Unit: o.Unit, Scale: p.Scale, Numbered: !in.byTime()}
	var samples []chart.Sample
	var lost Losses
	hists, cells := 0, 0
	for i, m := range in.List {
		if m.Header.KeySize != first.Header.KeySize ||
			m.Header.ValueSize != first.Header.ValueSize {
			return nil, fmt.Errorf(
				"%s was dumped from another map than %s: keys of %d and values of %d bytes, not "+
					"of %d and %d", m.Name, first.Name, m.Header.KeySize, m.Header.ValueSize,
				first.Header.KeySize, first.Header.ValueSize)
		}
		m.Layout.Types, m.Layout.Key, m.Layout.Value = first.Layout.Types, first.Layout.Key,
			first.Layout.Value
		list, l, err := m.histograms(p, log)
		if err != nil {
			return nil, err
		}
		lost.Add(l)
		hists = max(hists, len(list))
		at := m.Header.Time
		if h.Numbered {
			at = uint64(i) + 1
		}
		samples = append(samples, SumOf(list, at))
		if cells += len(samples[i].Counts); cells > maxHeatCells {
			return nil, fmt.Errorf("%s: more than %d slots in all dumps", first.Title(), maxHeatCells)
		}
	}
	if len(samples) < 2 && !o.Cleared {
		return nil, texts.WithHint(fmt.Errorf("%s: one dump makes no heat map", first.Title()),
			"name several, or a bundle of `symbolize capture --maps`")
	}
	setColumns(h, samples, o.Cleared)
	if !h.Numbered {
		h.From = first.wall(samples[0].Time)
	}
	if hists > 1 {
		h.Notes = append(h.Notes, fmt.Sprintf("the sum of up to %d keys", hists))
	}
	h.Notes = append(h.Notes, lost.Texts()...)
	return h, nil
}

// setColumns fills in the intervals.
func setColumns(h *chart.HeatMap, samples []chart.Sample, cleared bool) {
	var before uint64
	h.Columns, before = chart.Differences(samples, cleared)
	if before > 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("%d counts were made before the first dump", before))
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

// HeatReport returns the data of the heat map of the dumps.
func (in *Dumps) HeatReport(m *chart.HeatMap) *HeatReport {
	r := &HeatReport{MapName: in.List[0].mapName(), Scale: m.Scale.String(), Unit: m.Unit, From: m.From,
		Numbered: m.Numbered, Notes: m.Notes, Intervals: []IntervalJSON{}}
	for i := range m.Columns {
		c := &m.Columns[i]
		x := IntervalJSON{Start: c.Start, End: c.End, Cleared: c.Reset,
			Counts: slotsJSON(m.Scale, c.Counts)}
		if !m.Numbered {
			x.Start, x.End = c.Start-m.Columns[0].Start, c.End-m.Columns[0].Start
		}
		r.Intervals = append(r.Intervals, x)
	}
	return r
}
