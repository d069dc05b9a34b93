package flame

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"

	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

const (
	// MaxColumns is how many columns a grid may have before they are joined, and PageColumns how
	// many of a page; maxShort is how many of less than a second.
	MaxColumns  = 1000
	PageColumns = 240
	maxShort    = 50
	// OffsetRows is the number of rows of a grid by offset: 20 ms each in columns of a second.
	OffsetRows = 50
	maxRows    = 256
	second     = uint64(1e9)
	shortest   = uint64(1e6) // columns of a grid with rows, ns
	firstWidth = second / 10 // columns of a grid by offset, ns
	others     = "others"
	noTime     = ^uint64(0)
)

// HeatGrid is counts of samples by time and row.
type HeatGrid struct {
	Rows []string `json:"rows"` // names from outside, printable; none of a grid by offset
	// Start is the time of the first column, ns of the recording's clock: a text in JSON, as
	// wall-clock times are beyond the exact numbers of scripts.
	Start uint64 `json:"start,string"`
	Width uint64 `json:"width"` // of a column, ns
	// Columns is the number of columns.
	Columns int        `json:"columns"`
	Cells   []HeatCell `json:"cells"` // in the order of columns and rows
	Total   uint64     `json:"total"`
	Untimed uint64     `json:"untimed"` // samples without a time, which no cell has
	Lives   []HeatLife `json:"bpf_programs,omitempty"`
	// Power is of a grid by values: row r counts values from 2^(Power-r) on, to twice that.
	Power int `json:"-"`
}

// HeatCell is a count of samples.
type HeatCell struct {
	Column int    `json:"c"`
	Row    int    `json:"r"`
	Count  uint64 `json:"n"`
}

// HeatMap is a grid of a recording, as JSON.
type HeatMap struct {
	Title string    `json:"title"`
	Event string    `json:"event"` // with the counted samples
	About []Fact    `json:"about"`
	Grid  *HeatGrid `json:"grid"`
}

// NewHeatMap describes a grid of a profile's samples of an event.
func NewHeatMap(p *ingest.Profile, event int, grid *HeatGrid) *HeatMap {
	g := &Graph{}
	g.describe(p)
	m := &HeatMap{Title: g.Title, About: g.About, Grid: grid, Event: "no event"}
	if event < len(p.Events) {
		m.Event = texts.Printable(p.Events[event].Name)
	}
	return m
}

// WriteJSON writes the counts.
func (m *HeatMap) WriteJSON(w io.Writer) error { return texts.WriteJSON(w, "heatmap/1", m) }

type place struct {
	column uint64 // since time 0
	row    int
}

// HeatCounter makes a HeatGrid of samples.
type HeatCounter struct {
	offsets     bool
	unit        string // of the values of a grid by values
	columns     uint64 // at most
	width       uint64
	cells       map[place]uint64
	first, last uint64 // columns
	rows        []string
	index       map[string]int
	total       uint64
	untimed     uint64
}

// NewHeatOffsets counts by the offset within columns: of a second each, of recordings of less than
// ten seconds of 200 or 100 ms, of more than 1,000 seconds of 2, 4, 8 … seconds.
func NewHeatOffsets() *HeatCounter {
	return &HeatCounter{offsets: true, columns: MaxColumns, width: firstWidth, cells: make(map[place]uint64)}
}

// NewHeatRows counts by rows with names, in at most so many columns.
func NewHeatRows(columns uint64) *HeatCounter {
	return &HeatCounter{columns: columns, width: shortest, cells: make(map[place]uint64), index: make(map[string]int)}
}

// NewHeatValues counts by values in a unit, by powers of two: 0 is counted as 1.
func NewHeatValues(unit string) *HeatCounter {
	return &HeatCounter{columns: PageColumns, width: shortest, unit: unit, cells: make(map[place]uint64)}
}

// Add counts a sample at a time of a row, which a grid by offset does not have. A sample at time 0
// or ~0 has no time.
func (c *HeatCounter) Add(time uint64, row string) {
	if time == 0 {
		time = noTime
	}
	p, ok := c.place(time)
	switch {
	case !ok:
		return
	case c.offsets:
		p.row = int((time - p.column*c.width) / (c.width / OffsetRows))
	default:
		p.row = c.row(row)
	}
	c.cells[p]++
}

// AddValue counts a sample at a time in a grid by values: one at time 0, too, as recordings without
// times have values.
func (c *HeatCounter) AddValue(time, value uint64) {
	if p, ok := c.place(time); ok {
		p.row = max(bits.Len64(value), 1) - 1
		c.cells[p]++
	}
}

// place returns the first row of the column of a time, and counts the sample; ok is false if it has
// no time.
func (c *HeatCounter) place(time uint64) (p place, ok bool) {
	if time == noTime {
		c.untimed++
		return place{}, false
	}
	column := time / c.width
	if c.total == 0 {
		c.first, c.last = column, column
	}
	c.total++
	for min(column, c.first)+c.most() <= max(column, c.last) {
		c.join()
		column = time / c.width
	}
	c.first, c.last = min(c.first, column), max(c.last, column)
	return place{column: column}, true
}

func (c *HeatCounter) row(name string) int {
	i, ok := c.index[name]
	if !ok {
		i = len(c.rows)
		c.index[name] = i
		c.rows = append(c.rows, name)
	}
	return i
}

// most is how many columns of the width there may be.
func (c *HeatCounter) most() uint64 {
	if c.offsets && c.width < second {
		return maxShort
	}
	return c.columns
}

// join makes one column of two, or of the five that are a second.
func (c *HeatCounter) join() {
	n := uint64(2)
	if c.offsets && c.width == 2*firstWidth {
		n = 5
	}
	old := c.cells
	c.cells = make(map[place]uint64, len(old)/2)
	for p, count := range old {
		if c.offsets {
			p.row = (int(p.column%n)*OffsetRows + p.row) / int(n)
		}
		p.column /= n
		c.cells[p] += count
	}
	c.width *= n
	c.first, c.last = c.first/n, c.last/n
}

// Grid returns the counts so far. Of more than 256 rows the lightest are added up in one.
func (c *HeatCounter) Grid() *HeatGrid {
	g := &HeatGrid{Width: c.width, Total: c.total, Untimed: c.untimed, Cells: []HeatCell{}, Rows: []string{}}
	if c.total == 0 {
		return g
	}
	g.Start, g.Columns = c.first*c.width, int(c.last-c.first)+1
	rows := c.order(g)
	sums := make(map[place]uint64, len(c.cells))
	for p, n := range c.cells {
		if !c.offsets {
			p.row = rows[p.row]
		}
		sums[p] += n
	}
	for _, p := range slices.SortedFunc(maps.Keys(sums), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.column, b.column), cmp.Compare(a.row, b.row))
	}) {
		g.Cells = append(g.Cells, HeatCell{int(p.column - c.first), p.row, sums[p]})
	}
	return g
}

// order names the rows of the grid, heaviest first, and returns the place of each row.
func (c *HeatCounter) order(g *HeatGrid) []int {
	switch {
	case c.offsets:
		return nil
	case c.unit != "":
		return c.orderValues(g)
	}
	weight := make([]uint64, len(c.rows))
	for p, n := range c.cells {
		weight[p.row] += n
	}
	order := make([]int, len(c.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(c.rows[a], c.rows[b]))
	})
	at := make([]int, len(c.rows))
	for i, row := range order {
		if at[row] = min(i, maxRows-1); i < maxRows {
			g.Rows = append(g.Rows, c.rows[row])
		}
	}
	if len(order) > maxRows {
		g.Rows[maxRows-1] = fmt.Sprintf("%d %s", len(order)-maxRows+1, others)
	}
	return at
}

// orderValues names the rows from the greatest value to the least that have samples.
func (c *HeatCounter) orderValues(g *HeatGrid) []int {
	least := bits.UintSize
	for p := range c.cells {
		least, g.Power = min(least, p.row), max(g.Power, p.row)
	}
	at := make([]int, g.Power+1)
	for power := g.Power; power >= least; power-- {
		at[power] = len(g.Rows)
		from := uint64(1) << power
		if power == 0 {
			from = 0
		}
		g.Rows = append(g.Rows, "from "+table.Quantity(from, c.unit))
	}
	return at
}
