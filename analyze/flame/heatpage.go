package flame

import (
	_ "embed"
	"encoding/base64"
	"io"
	"strings"

	"symbolize/analyze/page"
	"symbolize/ingest"
)

// The files of the page of heat maps.
var (
	//go:embed page/heat.html
	heatHTML string
	//go:embed page/heat.js
	heatJS string
	//go:embed page/heatpage.js
	heatpageJS string
)

var heatTemplate = page.Parse(&heatHTML)

// HeatMap is the data of a page of one heat map.
type HeatMap struct {
	Title string    `json:"title"`
	Kind  string    `json:"-"`
	Event string    `json:"event"` // with the counted samples
	About []Fact    `json:"about"`
	Grid  *HeatGrid `json:"grid"`
}

// NewHeatMap describes a grid of a profile's samples of an event: a "Heat map" or a "Timeline".
func NewHeatMap(p *ingest.Profile, kind string, event int, grid *HeatGrid) *HeatMap {
	g := &Graph{}
	g.describe(p)
	m := &HeatMap{Title: g.Title, Kind: kind, About: g.About, Grid: grid, Event: "no event"}
	if event < len(p.Events) {
		m.Event = ingest.Printable(p.Events[event].Name)
	}
	return m
}

// WriteJSON writes the counts.
func (m *HeatMap) WriteJSON(w io.Writer) error { return ingest.WriteJSON(w, "heatmap/1", m) }

// WriteHTML writes a page that loads nothing. A range that is chosen in it is printed as the
// option that selects its samples.
func (m *HeatMap) WriteHTML(w io.Writer) error {
	var data strings.Builder
	if err := ingest.NewJSONEncoder(&data).Encode(m); err != nil {
		return err
	}
	return writePage(w, heatTemplate(), page.Style(styleCSS, scheme), m.Kind+": "+m.Title,
		[]string{base64.StdEncoding.EncodeToString([]byte(data.String()))}, formatJS, heatJS, heatpageJS)
}
