package bpfmap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"symbolize/analyze/chart"
	"symbolize/ingest/texts"
)

// HistReport are the histograms of a map. Its JSON names are an interface.
type HistReport struct {
	MapName
	Scale      string          `json:"scale"`
	Unit       string          `json:"unit,omitempty"`
	Histograms []HistogramJSON `json:"histograms"` // filled in by WriteJSON
	Lost       []string        `json:"lost,omitempty"`

	title string // of the map, for people
	name  string // of the map, as bpftrace prints it
	scale chart.Scale
	list  []*chart.Histogram
}

// HistogramJSON is the histogram of one key.
type HistogramJSON struct {
	Label string     `json:"label,omitempty"`
	Total uint64     `json:"total"`
	Slots []SlotJSON `json:"slots"`
}

// SlotJSON is a slot that is not empty; low and high are the first and last value in it, null
// where it has no such bound.
type SlotJSON struct {
	Low   *json.Number `json:"low"`
	High  *json.Number `json:"high"`
	Count uint64       `json:"count"`
}

func slotsJSON(s chart.Scale, counts []uint64) []SlotJSON {
	out := []SlotJSON{}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		low, high := s.Bounds(i)
		out = append(out, SlotJSON{bound(low), bound(high), n})
	}
	return out
}

func bound(text string) *json.Number {
	if text == "" {
		return nil
	}
	n := json.Number(text)
	return &n
}

// ChartOptions select the numbers of histograms and heat maps.
type ChartOptions struct {
	PlanOptions
	Unit    string
	Cleared bool // the reader of the map clears it: dumps hold the counts of an interval
}

// plan finds the histograms of a map, and logs a scale that nobody chose.
func (m *Dump) plan(o *ChartOptions, log Log) (*Plan, error) {
	p, err := m.Layout.Plan(o.PlanOptions, m.Header.MaxEntries)
	if err != nil {
		return nil, texts.WithHint(fmt.Errorf("%s: %w", m.Title(), err),
			"--slot names the field of the key, --count the field of the value, --btf a file with "+
				"the types")
	}
	if p.Guessed {
		log.Note(fmt.Sprintf("%s: %s; --hist differs: %s", m.Title(), p.Scale.Describe(),
			chart.ScaleNames))
	}
	return p, nil
}

// histograms reads the histograms of one dump.
func (m *Dump) histograms(p *Plan, log Log) ([]*chart.Histogram, Losses, error) {
	next, end, err := m.pairs()
	if err != nil {
		return nil, Losses{}, err
	}
	list, lost := m.Layout.Histograms(next, p)
	m.report(log, end())
	return list, lost, nil
}

// Histograms counts the histograms of a dump.
func (m *Dump) Histograms(o ChartOptions, log Log) (*HistReport, error) {
	p, err := m.plan(&o, log)
	if err != nil {
		return nil, err
	}
	list, lost, err := m.histograms(p, log)
	if err != nil {
		return nil, err
	}
	for _, text := range lost.Texts() {
		log.Warn(m.Title()+": "+text, "")
	}
	chart.Sort(list)
	return &HistReport{MapName: m.mapName(), Scale: p.Scale.String(), Unit: o.Unit, Lost: lost.Texts(),
		title: m.Title(), name: m.Header.Name, scale: p.Scale, list: list}, nil
}

// WriteJSON writes the report.
func (r *HistReport) WriteJSON(w io.Writer) error {
	r.Histograms = []HistogramJSON{}
	for _, h := range r.list {
		r.Histograms = append(r.Histograms, HistogramJSON{h.Label, h.Total(),
			slotsJSON(r.scale, h.Counts)})
	}
	return texts.WriteJSON(w, "map-histograms/1", r)
}

// Style returns the style of the tool that has histograms of this scale.
func (r *HistReport) Style() chart.Style { return r.scale.Style() }

// WriteText draws histograms in the style of a tool: bpftrace heads each with the map and the
// key, bcc with the key.
func (r *HistReport) WriteText(w io.Writer, style chart.Style) error {
	if len(r.list) == 0 {
		_, err := fmt.Fprintf(w, "%s: no counts\n", texts.OneLine(r.title))
		return err
	}
	unit := cmp.Or(r.Unit, "value")
	for _, h := range r.list {
		label := texts.OneLine(h.Label)
		var text []byte
		switch {
		case style == chart.StyleBpftrace && label == "":
			text = fmt.Appendf(text, "@%s: \n", texts.OneLine(r.name))
		case style == chart.StyleBpftrace:
			text = fmt.Appendf(text, "@%s[%s]: \n", texts.OneLine(r.name), label)
		case label != "":
			text = fmt.Appendf(text, "\n%s\n", label)
		}
		text = chart.AppendHistogram(text, h, r.scale, style, unit)
		if style == chart.StyleBpftrace {
			text = append(text, '\n')
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}
