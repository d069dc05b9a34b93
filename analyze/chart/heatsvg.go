package chart

import (
	"fmt"
	"html"
	"strings"

	"symbolize/ingest/texts"
)

// Sizes of the picture, in its own units (pixels at scale 1).
const (
	svgLeft, svgRight = 92, 168
	svgTop, svgBottom = 58, 64
	svgPlotWidth      = 820
	svgPlotHeight     = 440
	svgMinRow         = 5
	svgMaxRow         = 30
	svgMaxColumns     = svgPlotWidth / 2
	svgMaxRows        = 128
	svgTicks          = 8
	svgRowLabels      = 22 // at most, on the axis of values
	svgLegendRow      = 20
)

// svgColours are the shades from few to many: of yellow, orange and red, so that they
// differ in lightness too, for print and for the colour-blind.
var svgColours = []string{"#ffeda0", "#fed976", "#feb24c", "#fd8d3c", "#fc4e2a", "#e31a1c",
	"#bd0026", "#800026"}

// canvas is one picture on its way.
type canvas struct {
	m      *HeatMap
	g      *grid
	s      shades
	row    int // height
	height int // of the plot
	from   uint64
	span   uint64 // of time, at least 1
	out    []byte
}

// AppendSVG appends the heat map as a complete picture: time to the right, values upwards, each
// cell with its counts as a title.
func (m *HeatMap) AppendSVG(dst []byte) []byte {
	dst = append(dst, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"...)
	return m.appendSVG(dst)
}

func (m *HeatMap) appendSVG(dst []byte) []byte {
	g := m.fit(svgMaxColumns, svgMaxRows)
	c := &canvas{m: m, g: g, s: newShades(g.most, g.scaleEnd(), len(svgColours)), span: 1, out: dst}
	c.row = min(max(svgPlotHeight/g.rows(), svgMinRow), svgMaxRow)
	c.height = max(c.row*g.rows(), svgLegendRow*(len(svgColours)+2))
	if n := len(g.columns); n > 0 {
		c.from = g.columns[0].Start
		c.span = max(1, g.columns[n-1].End-c.from)
	}
	width, height := svgLeft+svgPlotWidth+svgRight, svgTop+c.height+svgBottom
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="12" role="img">`+"\n", width, height, width, height)
	c.style()
	c.printf("<title>%s</title>\n", escape(m.heading()))
	c.printf(`<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	c.printf(`<text class="head" x="%d" y="26">%s</text>`+"\n", svgLeft, escape(m.heading()))
	c.printf(`<text class="sub" x="%d" y="44">%s</text>`+"\n", svgLeft, escape(m.summary()))
	c.cells()
	c.valueAxis()
	c.timeAxis()
	c.legend()
	c.printf("</svg>\n")
	return c.out
}

func (c *canvas) printf(format string, args ...any) { c.out = fmt.Appendf(c.out, format, args...) }

func (c *canvas) style() {
	c.printf("<style>\n.page{fill:#fff}.plot{fill:#f6f6f6;stroke:#999}.axis{stroke:#999}" +
		"text{fill:#222}.head{font-size:17px;font-weight:bold}.sub{fill:#555}.e{text-anchor:end}" +
		".m{text-anchor:middle}rect{shape-rendering:crispEdges}rect.c:hover{stroke:#000}\n")
	for i, colour := range svgColours {
		c.printf(".s%d{fill:%s}", i, colour)
	}
	c.printf("\n</style>\n")
}

// summary is the line below the heading.
func (m *HeatMap) summary() string {
	text := fmt.Sprintf("%d counts in %d intervals", m.Total(), len(m.Columns))
	if m.From != "" {
		text += " from " + m.From
	}
	return text
}

// x is the position of a time, in whole units.
func (c *canvas) x(t uint64) int {
	return svgLeft + scaled(t-c.from, c.span, svgPlotWidth)
}

// top is the upper edge of a row.
func (c *canvas) top(row int) int { return svgTop + c.height - (row+1)*c.row }

func (c *canvas) cells() {
	c.printf(`<rect class="plot" x="%d" y="%d" width="%d" height="%d"/>`+"\n", svgLeft, svgTop,
		svgPlotWidth, c.height)
	labels := make([]string, c.g.rows())
	for row := range labels {
		labels[row] = escape(c.m.rangeLabel(c.g.bounds(row)))
	}
	for i := range c.g.columns {
		col := &c.g.columns[i]
		x := c.x(col.Start)
		width := max(1, c.x(col.End)-x)
		when := escape(c.m.interval(c.from, col))
		for row, n := range col.Counts {
			level := c.s.level(n)
			if level == 0 {
				continue
			}
			c.printf(`<rect class="c s%d" x="%d" y="%d" width="%d" height="%d">`+
				"<title>%s, %s: %d</title></rect>\n", c.s.colour(level, len(svgColours)), x,
				c.top(row), width, c.row, when, labels[row], n)
		}
	}
}

// interval formats the time of a column.
func (m *HeatMap) interval(from uint64, c *Column) string {
	text := fmt.Sprintf("%s to %s s", seconds(c.Start-from, 3), seconds(c.End-from, 3))
	if m.Numbered {
		text = fmt.Sprintf("dump %d", c.End)
	}
	if c.Reset {
		text += " (cleared)"
	}
	return text
}

// valueAxis labels the lower edges of rows.
func (c *canvas) valueAxis() {
	rows := c.g.rows()
	every := (rows + svgRowLabels - 1) / svgRowLabels
	for row := 0; row < rows; row += every {
		low, _ := c.g.bounds(row)
		y := c.top(row) + c.row
		c.printf(`<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`, svgLeft-5, y, svgLeft, y)
		c.printf(`<text class="e" x="%d" y="%d">%s</text>`+"\n", svgLeft-8, y+4,
			escape(c.m.valueLabel(low)))
	}
	what := "value"
	if c.m.Unit != "" {
		what = c.m.Unit
	}
	c.printf(`<text class="m" transform="translate(18 %d) rotate(-90)">%s</text>`+"\n",
		svgTop+c.height/2, escape(what))
}

// timeAxis puts ticks at round numbers.
func (c *canvas) timeAxis() {
	const second = 1e9
	step, decimals := uint64(1), 0
	if !c.m.Numbered {
		step = 1e6
	}
	for i := 0; c.span/step > svgTicks; i++ { // 1, 2, 5, 10, 20 …
		if i%3 == 1 {
			step = step / 2 * 5
		} else {
			step *= 2
		}
	}
	for d := uint64(second); !c.m.Numbered && step%d != 0 && decimals < 3; d /= 10 {
		decimals++
	}
	base := svgTop + c.height
	for t := uint64(0); t <= c.span; t += step {
		x := c.x(c.from + t)
		label := seconds(t, decimals)
		if c.m.Numbered {
			label = number(c.from + t)
		}
		c.printf(`<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`, x, base, x, base+5)
		c.printf(`<text class="m" x="%d" y="%d">%s</text>`+"\n", x, base+20, label)
	}
	what := "time, seconds"
	if c.m.Numbered {
		what = "number of the dump"
	}
	c.printf(`<text class="m" x="%d" y="%d">%s</text>`+"\n", svgLeft+svgPlotWidth/2, base+44, what)
}

// legend prints the range of counts of each colour, the most on top.
func (c *canvas) legend() {
	x, y := svgLeft+svgPlotWidth+20, svgTop+12
	c.printf(`<text x="%d" y="%d">counts of a cell</text>`+"\n", x, y)
	for level := c.s.used; level > 0; level-- {
		y += svgLegendRow
		low, high := c.s.bounds(level)
		c.printf(`<rect class="s%d" x="%d" y="%d" width="18" height="14"/>`,
			c.s.colour(level, len(svgColours)), x, y-11)
		c.printf(`<text x="%d" y="%d">%s</text>`+"\n", x+26, y, countRange(low, high))
	}
}

// escape makes text from outside fit for XML and HTML: no markup, no characters that either lacks.
func escape(text string) string { return html.EscapeString(printable(text)) }

// printable replaces control characters and characters that XML lacks.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, texts.Printable(text))
}
