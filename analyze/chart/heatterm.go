package chart

import (
	"fmt"
	"strings"

	"symbolize/ingest/texts"
)

// Shades of a terminal, as in tracex3: from light to dark grey of the 256 colours.
// Cells without counts have none.
var termColours = []int{252, 250, 248, 246, 244, 242, 240, 238, 236, 234, 232}

// termLetters are the shades where there are no colours, as tracex3's -t.
const termLetters = ".*oO#"

// maxTermRows bounds the width of a line: 64 powers of two, tracex3's 100 slots.
const maxTermRows = 128

// AppendText appends the heat map as tracex3 prints it: a line for each interval, values
// to the right, then the sum of the line. Colours are for a terminal of 256 colours.
func (m *HeatMap) AppendText(dst []byte, colours bool) []byte {
	g := m.fit(0, maxTermRows)
	levels := len(termLetters)
	if colours {
		levels = len(termColours)
	}
	s := newShades(g.most, g.scaleEnd(), levels)
	dst = fmt.Appendf(dst, "%s\n", texts.Printable(m.heading()))
	dst = fmt.Appendf(dst, "%*s %s\n", termTime, m.timeHead(), m.banner(g))
	for i := range g.columns {
		c := &g.columns[i]
		dst = fmt.Appendf(dst, "%*s |", termTime, m.timeLabel(g, c))
		for _, n := range c.Counts {
			dst = appendCell(dst, s, n, colours)
		}
		dst = fmt.Appendf(dst, "| # %d", c.total())
		if c.Reset {
			dst = append(dst, " (cleared)"...)
		}
		dst = append(dst, '\n')
	}
	return m.appendLegend(dst, s, colours)
}

const termTime = 10 // columns of the time

func (m *HeatMap) heading() string {
	if m.Unit == "" {
		return m.Title
	}
	return m.Title + " (" + m.Unit + ")"
}

func (m *HeatMap) timeHead() string {
	if m.Numbered {
		return "dump"
	}
	return "seconds"
}

// timeLabel is the end of an interval, counted from the first one's start.
func (m *HeatMap) timeLabel(g *grid, c *Column) string {
	if m.Numbered {
		return number(c.End)
	}
	return seconds(c.End-g.columns[0].Start, 3)
}

// banner marks slots with their first value, as many as fit.
func (m *HeatMap) banner(g *grid) string {
	var b strings.Builder
	for row := range g.rows() {
		if b.Len() > row {
			continue // the label before reaches here
		}
		low, _ := g.bounds(row)
		label := "|" + m.valueLabel(low)
		if low == "" {
			label = "|<"
		}
		b.WriteString(label)
		for b.Len() <= row+len(label) && b.Len() < g.rows() {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func appendCell(dst []byte, s shades, n uint64, colours bool) []byte {
	level := s.level(n)
	switch {
	case level == 0:
		return append(dst, ' ')
	case colours:
		colour := termColours[s.colour(level, len(termColours))]
		return fmt.Appendf(dst, "\x1b[48;5;%dm \x1b[0m", colour)
	}
	return append(dst, termLetters[s.colour(level, len(termLetters))])
}

// appendLegend prints the range of counts of each shade.
func (m *HeatMap) appendLegend(dst []byte, s shades, colours bool) []byte {
	dst = fmt.Appendf(dst, "%*s ", termTime, "counts")
	for level := 1; level <= s.used; level++ {
		low, high := s.bounds(level)
		dst = appendCell(dst, s, low, colours)
		dst = fmt.Appendf(dst, " %s", countRange(low, high))
		if level < s.used {
			dst = append(dst, "  "...)
		}
	}
	if s.used == 0 {
		dst = append(dst, "none"...)
	}
	dst = append(dst, '\n')
	for _, note := range m.Notes {
		dst = fmt.Appendf(dst, "%*s %s\n", termTime, "note", texts.Printable(note))
	}
	return dst
}

func countRange(low, high uint64) string {
	if low == high {
		return number(low)
	}
	return number(low) + "-" + number(high)
}
