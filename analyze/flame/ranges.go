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
	"symbolize/ingest/texts"
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
	leastSample     = 2  // characters of a sample in a page, about
	packedPart      = 16 // of a list, of which the whole size is estimated
	fineLevels      = 3  // resolutions for which the page need not have fewer frames
	maxRangeThreads = 1000
	maxRanged       = 2_000_000 // samples of a recording
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
	t.children = g.forward().children()
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
		text, ok := calltree.SampleLabel(by, s.Comm, s.State, s.PID, s.TID, s.CPU)
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
// Each resolution is made of the list of the one before, which is shorter than the samples.
func (g *Graph) packRanges(forward *tree, most int) (packed string, level int, err error) {
	if !g.Timed() || g.times.columns == nil {
		return "", 0, nil
	}
	t := g.times
	d := &rangeData{Tick: 1, Start: t.first}
	places := forward.places()
	list := t.rangeList(d, places)
	for i, l := range rangeLevels {
		list = d.coarsen(list, forward.coarse(places, l.nodes), l, t.first, t.last)
		if len(list)*leastSample > most {
			continue
		}
		if n := len(list) / packedPart; n > 1000 {
			packed, err = deflate(d.filled(list[:n], l))
			if err != nil || len(packed)*packedPart > most*5/4 {
				continue
			}
		}
		if packed, err = deflate(d.filled(list, l)); err != nil || len(packed) <= most {
			return packed, i, err
		}
	}
	return "", len(rangeLevels), nil
}

// rangeSample is a sample of rangeData.
type rangeSample struct {
	tick                   uint64
	of, place, line, count uint32
	weight                 uint64
}

func compareRangeSamples(a, b rangeSample) int {
	switch {
	case a.tick != b.tick:
		return cmp.Compare(a.tick, b.tick)
	case a.of != b.of:
		return cmp.Compare(a.of, b.of)
	case a.place != b.place:
		return cmp.Compare(a.place, b.place)
	}
	return cmp.Compare(a.line, b.line)
}

// rangeList lists the samples by ticks of 1 ns, and sets the threads and series of d. places are those
// of the nodes by index.
func (t *Times) rangeList(d *rangeData, places []uint32) []rangeSample {
	series := t.rangeSeries(d)
	list := make([]rangeSample, 0, len(t.blocks)*timedBlock)
	at, lines := make([]uint32, len(t.chains)), make([]uint32, len(t.chains))
	for i, c := range t.chains {
		at[i] = places[c.row/2] | uint32(c.row%2)
		if t.line != nil && c.leaf != noLocation {
			lines[i] = t.line(c.leaf)
		}
	}
	for b := range t.blocks {
		for i := range t.blocks[b] {
			s := &t.blocks[b][i]
			list = append(list, rangeSample{tick: max(s.time, d.Start) - d.Start, of: series[s.thread],
				place: at[s.stack], line: lines[s.stack], count: 1, weight: s.weight})
		}
	}
	return list
}

// coarsen brings a list to a resolution, in place, and returns it sorted, with the samples added up
// that are now alike. coarse has the places of nodes by number; first and last are the times of the
// first and the last sample.
func (d *rangeData) coarsen(list []rangeSample, coarse []uint32, l rangeLevel,
	first, last uint64) []rangeSample {
	tick := tickOf((last-first)/uint64(l.ticks), d.Tick)
	start := first - first%tick
	for i := range list {
		s := &list[i]
		s.tick = (s.tick*d.Tick + d.Start - start) / tick
		s.place = coarse[s.place/2] | s.place%2
		if !l.lines {
			s.line = 0
		}
	}
	d.Start, d.Tick, d.Ticks = start, tick, int((last-start)/tick)+1
	slices.SortFunc(list, compareRangeSamples)
	merged := list[:0]
	for _, s := range list {
		if n := len(merged); n > 0 && compareRangeSamples(merged[n-1], s) == 0 {
			merged[n-1].count += s.count
			merged[n-1].weight += s.weight
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// filled returns the data with the samples of a list, which is sorted. Rounded weights carry what
// they lack to the next sample of the series, so that sums of many are right.
func (d *rangeData) filled(list []rangeSample, l rangeLevel) *rangeData {
	out := *d
	n := len(list)
	out.Time, out.Of, out.Place = make([]uint32, n), make([]uint32, n), make([]uint32, n)
	out.Weight, out.Count = make([]uint64, n), make([]uint32, n)
	carry := make([]int64, len(d.Series))
	last, hasLines := uint64(0), false
	for i, s := range list {
		if l.digits > 0 {
			whole := max(0, int64(s.weight)+carry[s.of])
			s.weight = roundDigits(uint64(whole), l.digits)
			carry[s.of] = whole - int64(s.weight)
		}
		out.Time[i], last = uint32(s.tick-last), s.tick
		out.Of[i], out.Place[i] = s.of, s.place
		out.Weight[i], out.Count[i] = s.weight, s.count
		hasLines = hasLines || s.line != 0
	}
	if hasLines {
		out.Line = make([]uint32, n)
		for i, s := range list {
			out.Line[i] = s.line
		}
	}
	return &out
}

// tickOf rounds a time up to a tick of 1, 2 or 5 units that is a multiple of another tick, at least
// a microsecond.
func tickOf(ns, of uint64) uint64 {
	for unit := uint64(1000); ; unit *= 10 {
		for _, n := range []uint64{1, 2, 5} {
			if n*unit >= ns && n*unit%of == 0 {
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
			d.Threads = append(d.Threads, rangeThread{texts.Printable(names[th].comm), th.pid, th.tid})
		case i == maxRangeThreads:
			d.Threads = append(d.Threads, rangeThread{fmt.Sprintf("%d %s", len(order)-i, others), -1, -1})
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

// places returns for each node, by index, its place in the page, as in rangeData.
func (t *tree) places() []uint32 {
	list := make([]uint32, len(t.nodes))
	next := uint32(0)
	t.walk(func(i int32) {
		list[i] = 2 * next
		next++
	})
	for i := range t.nodes { // parents come first
		if n := &t.nodes[i]; !n.kept {
			list[i] = list[n.parent] | 1
		}
	}
	return list
}

// coarse returns for each node of the page, by number, its place if there are only the heaviest
// nodes. places are those of all.
func (t *tree) coarse(places []uint32, most int) []uint32 {
	list := make([]uint32, 0, len(t.nodes))
	t.walk(func(i int32) {
		n := &t.nodes[i]
		if int(n.rank) < most {
			list = append(list, places[i])
		} else {
			list = append(list, list[places[n.parent]/2]|1)
		}
	})
	return list
}
