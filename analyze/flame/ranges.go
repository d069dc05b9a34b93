package flame

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"symbolize/analyze/calltree"
	"symbolize/analyze/table"
	"symbolize/ingest"
	"symbolize/ingest/input"
)

// ErrManyLabels is the error of Times.Add for pages with labels that single samples do not have.
var ErrManyLabels = errors.New("the labels of its samples have no times")

// rangeData are the samples of a page in order of time, of which the page makes the graph of a
// range. Samples of one tick that are alike are one. The page reads them after its first frame.
type rangeData struct {
	Start   uint64        `json:"start,string"` // of the first tick, ns of the recording's clock
	Tick    uint64        `json:"tick"`         // ns
	Ticks   int           `json:"ticks"`
	Threads []rangeThread `json:"threads"` // heaviest first
	Series  [][2]int      `json:"series"`  // thread and column of the page
	// Of each sample: ticks since the one before; the number of its series; twice the number of
	// a node of the forward tree, plus one if the sample is of a frame that the page leaves out;
	// weight; how many samples; the number of its line of code, plus one, 0 for none.
	Time   []uint32 `json:"time"`
	Of     []uint32 `json:"of"`
	Place  []uint32 `json:"place"`
	Weight []uint64 `json:"weight"`
	Count  []uint32 `json:"count"`
	Line   []uint32 `json:"line,omitempty"`
}

// rangeThread is a row of a timeline.
type rangeThread struct {
	Name string `json:"name"` // the comm of most samples, printable
	PID  int32  `json:"pid"`
	TID  int32  `json:"tid"` // -1 for the lightest threads together
}

// rangeLevel is a resolution of ranges.
type rangeLevel struct {
	ticks, nodes int  // how many at most
	digits       int  // of weights; 0 for all
	lines        bool // of code
}

// rangeLevels are the resolutions from which the first one that fits is chosen. The last ones are
// for pages of hundreds of thousands of stacks.
var rangeLevels = [...]rangeLevel{
	{ticks: 200_000, nodes: maxForward, lines: true},
	{ticks: 50_000, nodes: maxForward, lines: true, digits: 3},
	{ticks: 10_000, nodes: 20_000, digits: 3},
	{ticks: 1000, nodes: 5000, digits: 3},
	{ticks: 300, nodes: 1500, digits: 3},
	{ticks: 100, nodes: 500, digits: 3},
}

const (
	leastSample     = 2 // characters of a sample in a page, about
	fineLevels      = 3 // resolutions for which the page need not have fewer frames
	maxRangeThreads = 1000
	maxRanged       = 500_000 // samples of a recording
)

// ManySamples reports whether the graph has too many samples for ranges, and adds a fact that says
// so: to read them one by one needs far longer than the rest of the page.
func (g *Graph) ManySamples() bool {
	var n uint64
	for i := range g.Events {
		n += g.Events[i].Samples
	}
	if n > maxRanged {
		g.About = append(g.About, Fact{"times", fmt.Sprintf("over %s samples: symbolize heatmap shows "+
			"their times, and symbolize flamegraph --time FROM,TO or --time 0%%-10%% the stacks of a range",
			table.Thousands(maxRanged))})
	}
	return n > maxRanged
}

// SetRanges makes an empty Times for the ranges of the page. The graph is as for SetTimes. line
// returns the number of a line of code of an innermost frame, plus one, 0 for none; nil if the page
// has no code.
func (g *Graph) SetRanges(line func(ingest.LocationID) uint32) *Times {
	t := g.SetTimes()
	t.line, t.columns = line, make(map[string]uint16)
	for i := range g.Columns {
		c := &g.Columns[i]
		text := []byte{byte(c.Event)}
		for l, v := range c.Values {
			if v < 0 { // the shared column: its key has no values
				text = text[:1]
				break
			}
			text = append(append(text, g.Labels[l].Values[v]...), 0)
		}
		t.columns[string(text)] = uint16(i)
	}
	return t
}

// column finds the column of a sample; ok is false if the page has none.
func (t *Times) column(event int, s *input.ReplaySample) (uint16, bool) {
	t.text = append(t.text[:0], byte(event))
	for _, by := range t.g.rows.by {
		text, ok := calltree.SampleLabel(by, s.Comm, s.PID, s.TID, s.CPU)
		if !ok {
			return 0, false
		}
		t.text = append(append(t.text, text...), 0)
	}
	c, ok := t.columns[string(t.text)]
	if !ok {
		c, ok = t.columns[string(t.text[:1])]
	}
	return c, ok
}

// packRanges returns the ranges of a graph that was filled, deflated, in at most the bytes of
// most; level is the number of their resolution. Without samples, or if none fits, it returns "".
func (g *Graph) packRanges(forward *tree, most int) (packed string, level int, err error) {
	if !g.Timed() || g.times.columns == nil {
		return "", 0, nil
	}
	for i, l := range rangeLevels {
		d := g.times.ranges(forward, l)
		if len(d.Time)*leastSample > most {
			continue
		}
		if packed, err = deflate(d); err != nil || len(packed) <= most {
			return packed, i, err
		}
	}
	return "", len(rangeLevels), nil
}

// rangeSample is a sample of rangeData.
type rangeSample struct {
	tick, of, place, line, count uint32
	weight                       uint64
}

func compareRangeSamples(a, b rangeSample) int {
	return cmp.Or(cmp.Compare(a.tick, b.tick), cmp.Compare(a.of, b.of),
		cmp.Compare(a.place, b.place), cmp.Compare(a.line, b.line))
}

// ranges makes the data of a resolution.
func (t *Times) ranges(forward *tree, l rangeLevel) *rangeData {
	d := &rangeData{Tick: tickOf((t.last - t.first) / uint64(l.ticks))}
	d.Start = t.first - t.first%d.Tick
	d.Ticks = int((t.last-d.Start)/d.Tick) + 1
	series := t.rangeSeries(d)
	places := t.places(forward, l.nodes)
	var list []rangeSample
	for b := range t.blocks {
		for i := range t.blocks[b] {
			s := &t.blocks[b][i]
			c := &t.chains[s.stack]
			out := rangeSample{tick: uint32((max(s.time, d.Start) - d.Start) / d.Tick),
				of: series[s.thread], place: places[c.row+1], count: 1, weight: s.weight}
			if l.lines && t.line != nil && c.leaf != noLocation {
				out.line = t.line(c.leaf)
			}
			list = append(list, out)
		}
	}
	slices.SortFunc(list, compareRangeSamples)
	merged := list[:0]
	for _, s := range list {
		if n := len(merged); n > 0 && compareRangeSamples(merged[n-1], s) == 0 {
			merged[n-1].count++
			merged[n-1].weight += s.weight
			continue
		}
		merged = append(merged, s)
	}
	d.fill(merged, l)
	return d
}

// fill writes the samples, which are sorted. Rounded weights carry what they lack to the next
// sample of the series, so that sums of many are right.
func (d *rangeData) fill(list []rangeSample, l rangeLevel) {
	carry := make([]int64, len(d.Series))
	last := uint32(0)
	for _, s := range list {
		if l.digits > 0 {
			whole := max(0, int64(s.weight)+carry[s.of])
			s.weight = roundDigits(uint64(whole), l.digits)
			carry[s.of] = whole - int64(s.weight)
		}
		d.Time, last = append(d.Time, s.tick-last), s.tick
		d.Of, d.Place = append(d.Of, s.of), append(d.Place, s.place)
		d.Weight, d.Count = append(d.Weight, s.weight), append(d.Count, s.count)
		if l.lines {
			d.Line = append(d.Line, s.line)
		}
	}
	if !slices.ContainsFunc(d.Line, func(n uint32) bool { return n != 0 }) {
		d.Line = nil
	}
}

// tickOf rounds a time up to a tick of 1, 2 or 5 units, at least a microsecond.
func tickOf(ns uint64) uint64 {
	for unit := uint64(1000); ; unit *= 10 {
		for _, n := range []uint64{1, 2, 5} {
			if n*unit >= ns {
				return n * unit
			}
		}
		if hi, _ := bits.Mul64(unit, 100); hi != 0 {
			return unit
		}
	}
}

// roundDigits rounds to a number of decimal digits.
func roundDigits(v uint64, digits int) uint64 {
	unit := uint64(1)
	for most := math.Pow10(digits); float64(v/unit) >= most; {
		unit *= 10
	}
	return (v + unit/2) / unit * unit
}

// rangeSeries sets the threads and series of d, and returns the series of each of t.threads.
func (t *Times) rangeSeries(d *rangeData) []uint32 {
	type thread struct{ pid, tid int32 }
	counts := make(map[thread]int)
	names := make(map[thread]*timedThread) // the heaviest of several comms
	for i := range t.threads {
		th := &t.threads[i]
		k := thread{th.pid, th.tid}
		counts[k] += th.count
		if n := names[k]; n == nil || th.count > n.count {
			names[k] = th
		}
	}
	order := make([]thread, 0, len(counts))
	for th := range counts {
		order = append(order, th)
	}
	slices.SortFunc(order, func(a, b thread) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.pid, b.pid),
			cmp.Compare(a.tid, b.tid))
	})
	place := make(map[thread]int, len(order))
	for i, th := range order {
		place[th] = min(i, maxRangeThreads)
		switch {
		case i < maxRangeThreads:
			d.Threads = append(d.Threads, rangeThread{ingest.Printable(names[th].comm), th.pid, th.tid})
		case i == maxRangeThreads:
			d.Threads = append(d.Threads, rangeThread{others, -1, -1})
		}
	}
	index := make(map[[2]int]uint32)
	series := make([]uint32, len(t.threads))
	for i := range t.threads {
		th := &t.threads[i]
		k := [2]int{place[thread{th.pid, th.tid}], int(th.column)}
		n, ok := index[k]
		if !ok {
			n = uint32(len(d.Series))
			index[k], d.Series = n, append(d.Series, k)
		}
		series[i] = n
	}
	return series
}

// places returns for each row of the table, from 1 on, the place of its stack in the forward tree
// with at most this number of nodes, as in rangeData; first that of an empty stack.
func (t *Times) places(forward *tree, nodes int) []uint32 {
	number := make(map[*node]uint32, len(forward.nodes))
	children := make(map[[2]uint32]uint32, len(forward.nodes))
	ranks := []int32{}
	forward.preorder(func(n *node) {
		i := uint32(len(ranks))
		number[n], ranks = i, append(ranks, n.rank)
		if n.parent >= 0 {
			children[[2]uint32{number[&forward.nodes[n.parent]], uint32(n.frame)}] = i
		}
	})
	places := make([]uint32, len(t.table.frames)+1)
	for row, frame := range t.table.frames {
		up := uint32(0)
		if d := t.table.parents[row]; d > 0 {
			up = places[row+1-int(d)]
		}
		child, ok := children[[2]uint32{up / 2, frame / 2}]
		switch {
		case up%2 == 1:
			places[row+1] = up
		case !ok || int(ranks[child]) >= nodes:
			places[row+1] = up + 1
		default:
			places[row+1] = 2 * child
		}
	}
	return places
}
