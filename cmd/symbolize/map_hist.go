package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"symbolize/analyze/bpfmap"
	"symbolize/analyze/chart"
	"symbolize/ingest"
)

// histReport is what `map --hist --format json` prints. Its JSON names are an interface.
type histReport struct {
	Map        string          `json:"map"`
	Scale      string          `json:"scale"`
	Unit       string          `json:"unit,omitempty"`
	Histograms []histogramJSON `json:"histograms"`
	Lost       []string        `json:"lost,omitempty"`
}

type histogramJSON struct {
	Label string     `json:"label,omitempty"`
	Total uint64     `json:"total"`
	Slots []slotJSON `json:"slots"`
}

// slotJSON is a slot with counts; low and high are the first and last value in it, null
// where it has no such bound.
type slotJSON struct {
	Low   *json.Number `json:"low"`
	High  *json.Number `json:"high"`
	Count uint64       `json:"count"`
}

func slotsJSON(s chart.Scale, counts []uint64) []slotJSON {
	out := []slotJSON{}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		low, high := s.Bounds(i)
		out = append(out, slotJSON{bound(low), bound(high), n})
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

// plan finds the histograms of a map, and says what was taken for granted.
func (o *mapChartOptions) plan(a *app, m *mapInput) (*bpfmap.Plan, error) {
	p, err := m.layout.Plan(bpfmap.PlanOptions{Scale: o.scale, Slot: o.slot, Count: o.count},
		m.header.MaxEntries)
	if err != nil {
		return nil, withHint(fmt.Errorf("%s: %w", m.title(), err),
			"--slot names the field of the key, --count that of the value, --btf what tells "+
				"the fields")
	}
	if p.Guessed {
		a.note(fmt.Sprintf("%s: %s; --hist says otherwise: %s", m.title(), p.Scale.Describe(),
			chart.ScaleNames))
	}
	return p, nil
}

// histograms reads those of one dump.
func (m *mapInput) histograms(a *app, p *bpfmap.Plan) ([]*chart.Histogram, bpfmap.Losses, error) {
	next, end, err := m.pairs()
	if err != nil {
		return nil, bpfmap.Losses{}, err
	}
	list, lost := m.layout.Histograms(next, p)
	m.tell(a, end())
	return list, lost, nil
}

// runHist draws the histograms of the last of the dumps.
func runHist(a *app, o *mapChartOptions, in *mapInputs) error {
	m, err := in.last(a)
	if err != nil {
		return err
	}
	p, err := o.plan(a, m)
	if err != nil {
		return err
	}
	list, lost, err := m.histograms(a, p)
	if err != nil {
		return err
	}
	for _, text := range lost.Texts() {
		a.warn(m.title()+": "+text, "")
	}
	chart.Sort(list)
	return a.writeOutput(o.output, false, func(w io.Writer) error {
		if o.format == formatJSON {
			r := histReport{Map: m.title(), Scale: p.Scale.String(), Unit: o.unit,
				Histograms: []histogramJSON{}, Lost: lost.Texts()}
			for _, h := range list {
				r.Histograms = append(r.Histograms, histogramJSON{h.Label, h.Total(),
					slotsJSON(p.Scale, h.Counts)})
			}
			return ingest.WriteJSON(w, r)
		}
		return o.writeHist(w, m, p, list)
	})
}

// writeHist prints histograms as the tools do: bpftrace heads each with the map and the
// key, bcc with the key.
func (o *mapChartOptions) writeHist(w io.Writer, m *mapInput, p *bpfmap.Plan,
	list []*chart.Histogram) error {
	style := p.Scale.Style()
	if o.style != "" {
		style = chart.Style(slices.Index(chartStyles, o.style))
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(w, "%s: no counts\n", oneLine(m.title()))
		return err
	}
	unit := o.unit
	if unit == "" {
		unit = "value"
	}
	for _, h := range list {
		label := oneLine(h.Label)
		var text []byte
		switch {
		case style == chart.StyleBpftrace && label == "":
			text = fmt.Appendf(text, "@%s: \n", oneLine(m.header.Name))
		case style == chart.StyleBpftrace:
			text = fmt.Appendf(text, "@%s[%s]: \n", oneLine(m.header.Name), label)
		case label != "":
			text = fmt.Appendf(text, "\n%s\n", label)
		}
		text = chart.AppendHistogram(text, h, p.Scale, style, unit)
		if style == chart.StyleBpftrace {
			text = append(text, '\n')
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// last returns the dump that holds all counts: the latest of a series.
func (in *mapInputs) last(a *app) (*mapInput, error) {
	m := in.list[len(in.list)-1]
	if n := len(in.list); n > 1 {
		if m.host == nil {
			return nil, withHint(usagef("one dump at a time"), "--heatmap takes several")
		}
		a.note(fmt.Sprintf("%s: the last of %d dumps", m.title(), n))
	}
	return m, nil
}
