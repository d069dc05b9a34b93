package chart

import "slices"

// Column is the counts of an interval of time.
type Column struct {
	Start, End uint64 // ns of any clock
	Counts     []uint64
	// Reset: counts are lower than in the dump before, so that the interval has the counts of its
	// dump.
	Reset bool
}

// HeatMap is counts by value and time.
type HeatMap struct {
	Title string // of the map, as text from outside
	Unit  string // of values: "ns", "usecs", "bytes" …; "" if not known
	From  string // wall-clock time of the first column's start; "" if not known
	// Numbered: the times are not known; Start and End are numbers of dumps.
	Numbered bool
	Scale    Scale
	Columns  []Column // in the order of time
	Notes    []string // further remarks for the reader
}

// Sample is the content of a map at a time: all counts since it was made or cleared.
type Sample struct {
	Time   uint64
	Counts []uint64
}

// Differences makes columns of samples in the order of time. Counts grow, so that those
// of an interval are the difference of two samples; if any became fewer the map was
// cleared or recreated meanwhile, and the later sample is the interval's. The counts of
// the first one are earlier, and are returned as a sum.
//
// With cleared each sample is of its own interval, because the map's reader clears it (tracex3
// does), and the first one's interval is assumed to be as long as the second's.
func Differences(samples []Sample, cleared bool) (columns []Column, before uint64) {
	if len(samples) == 0 {
		return nil, 0
	}
	if cleared {
		step := uint64(1)
		if len(samples) > 1 {
			step = samples[1].Time - samples[0].Time
		}
		start := samples[0].Time - min(step, samples[0].Time)
		for _, s := range samples {
			columns = append(columns, Column{Start: start, End: s.Time, Counts: s.Counts})
			start = s.Time
		}
		return columns, 0
	}
	for _, n := range samples[0].Counts {
		before = addSaturating(before, n)
	}
	for i, s := range samples[1:] {
		last := samples[i]
		c := Column{Start: last.Time, End: s.Time, Counts: s.Counts}
		if c.Reset = fewer(last.Counts, s.Counts); !c.Reset {
			c.Counts = slices.Clone(s.Counts)
			for slot, n := range last.Counts {
				if slot < len(c.Counts) { // else n is 0: nothing became fewer
					c.Counts[slot] -= n
				}
			}
		}
		columns = append(columns, c)
	}
	return columns, before
}

// fewer reports whether any count became fewer.
func fewer(before, after []uint64) bool {
	for i, n := range before {
		if n > 0 && (i >= len(after) || after[i] < n) {
			return true
		}
	}
	return false
}

// Total returns the sum of all counts.
func (m *HeatMap) Total() uint64 {
	var sum uint64
	for i := range m.Columns {
		sum = addSaturating(sum, m.Columns[i].total())
	}
	return sum
}

func (c *Column) total() uint64 {
	h := Histogram{Counts: c.Counts}
	return h.Total()
}

// grid is a heat map fitted to the drawing: slots without any count at both ends left
// out, adjacent ones combined where there are too many.
type grid struct {
	scale       Scale
	first, last int // slots
	perRow      int // slots to a row
	columns     []Column
	perColumn   int
	most        uint64 // of a cell
}

// fit makes a grid of at most so many columns and rows; 0 is no limit.
func (m *HeatMap) fit(columns, rows int) *grid {
	g := &grid{scale: m.Scale, first: -1, perRow: 1, perColumn: 1}
	for i := range m.Columns {
		first, last, _ := (&Histogram{Counts: m.Columns[i].Counts}).used()
		if first >= 0 && (g.first < 0 || first < g.first) {
			g.first = first
		}
		g.last = max(g.last, last)
	}
	g.first = max(g.first, 0)
	if n := g.last - g.first + 1; rows > 0 && n > rows {
		g.perRow = (n + rows - 1) / rows
	}
	if n := len(m.Columns); columns > 0 && n > columns {
		g.perColumn = (n + columns - 1) / columns
	}
	for group := range slices.Chunk(m.Columns, g.perColumn) {
		c := Column{Start: group[0].Start, End: group[len(group)-1].End}
		c.Counts = make([]uint64, g.rows())
		for i := range group {
			c.Reset = c.Reset || group[i].Reset
			for slot, n := range group[i].Counts {
				if n > 0 {
					row := (slot - g.first) / g.perRow
					c.Counts[row] = addSaturating(c.Counts[row], n)
				}
			}
		}
		g.most = max(g.most, slices.Max(c.Counts))
		g.columns = append(g.columns, c)
	}
	return g
}

func (g *grid) rows() int { return (g.last-g.first)/g.perRow + 1 }

// bounds returns the first and last value of a row.
func (g *grid) bounds(row int) (low, high string) {
	slot := g.first + row*g.perRow
	low, high = g.scale.Bounds(slot)
	if g.perRow > 1 {
		_, high = g.scale.Bounds(min(slot+g.perRow-1, g.last))
	}
	return low, high
}
