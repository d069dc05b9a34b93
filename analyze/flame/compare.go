package flame

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"symbolize/analyze/advice"
	"symbolize/analyze/calltree"
)

// Comparison is for NewDifferential: two sides of at least one profile each, with stacks that share
// their nodes, as in diff.Fold.
type Comparison struct {
	New, Base []*calltree.Stacks
	// Title names both sides in a line, About describes them.
	Title string
	About []Fact
	// Cover counts the named frames of the new side, BaseCover of the base.
	Cover, BaseCover *advice.Coverage
	// Normalize scales the new side to the base's total; else values are compared as measured.
	Normalize bool
	// Tests are the tests of functions; nil without several profiles on a side.
	Tests *Tests
	// Reverse and MinShare are as in Options; a frame is left out if both sides have less.
	Reverse  bool
	MinShare float64
}

// The numbers of the sides in a differential graph: each is an event with one column.
const (
	newSide = iota
	baseSide
)

// Scaling is how the values of two sides compare.
type Scaling struct {
	// Scale is the factor of values of the new side, which gives it the base's total.
	Scale float64 `json:"scale"`
	// Total is the value of which changes are percentages: the base's total, or the new side's if
	// the base has no samples. Where both sides have this total, they are percentage points.
	Total float64 `json:"total"`
	// Raw is set where the totals differ and the values were not scaled.
	Raw bool `json:"raw"`
	// Tests are the tests of functions; only several profiles on a side have them.
	Tests *testData `json:"tests,omitempty"`
	// Steps are the percentages from which a change has the colour of its size.
	Steps []float64 `json:"steps"`
}

// changeSteps are the steps of Scaling: changes below the first have no colour.
var changeSteps = []float64{0.1, 1, 5}

// NewDifferential makes the graph of the differences between two sides: frames are as wide as on
// the new side, and coloured by their change.
func NewDifferential(c Comparison) *Graph {
	both := calltree.Compare(c.New, c.Base)
	r := &rows{nodes: both.Nodes}
	for side, list := range [][]*calltree.Stacks{newSide: c.New, baseSide: c.Base} {
		r.columns = append(r.columns, column{Event: side, Values: []int{}})
		for _, s := range list {
			for nodes, value := range s.All() {
				from := uint32(len(r.frames))
				r.frames = append(r.frames, nodes...)
				r.rows = append(r.rows, row{from: from, to: uint32(len(r.frames)),
					column: uint16(side), value: value})
			}
		}
		r.events = append(r.events, calltree.Compare(list, nil))
	}
	g := &Graph{Title: c.Title, About: c.About,
		Labels: []Label{}, Columns: r.columns, Cover: c.Cover, StartReversed: c.Reverse,
		minShare: c.MinShare}
	g.setRows(r)
	for side, s := range r.events {
		g.Events = append(g.Events, Event{Name: [...]string{"new: ", "base: "}[side] + both.Event,
			Unit: both.Unit, Samples: s.Samples, Total: s.Total, Kept: s.Kept})
	}
	g.Scaling = newScaling(both.Total, both.BaseTotal, c.Normalize)
	g.tests = c.Tests
	g.About = slices.Concat(g.About, c.facts(g.Scaling, both))
	return g
}

// facts describes how the sides are compared.
func (c *Comparison) facts(s *Scaling, both *calltree.Stacks) (facts []Fact) {
	switch {
	case both.Total == 0 || both.BaseTotal == 0:
		facts = append(facts, Fact{"scale", "one side has no samples of this event"})
	case s.Raw:
		facts = append(facts, Fact{"scale", "the totals differ and values are as they are: " +
			"changes are percentages of the base's total"})
	case s.Scale != 1:
		facts = append(facts, Fact{"scale", fmt.Sprintf("the totals differ: the new side is "+
			"scaled by %.4g to the base's, so that shares compare", s.Scale)})
	}
	if c.Cover != nil && c.BaseCover != nil {
		facts = append(facts, Fact{"named", fmt.Sprintf("%.2f%% of the samples of the base, %.2f%% "+
			"of the new side's, by their innermost frames", c.BaseCover.Named, c.Cover.Named)})
	}
	if len(c.New) > 1 || len(c.Base) > 1 {
		facts = append(facts, Fact{"values", fmt.Sprintf("sums of %d profiles of the base and "+
			"%d of the new side; what has no name is that of the first%s", len(c.Base), len(c.New),
			c.Tests.fact())})
	}
	return facts
}

func newScaling(total, base uint64, normalize bool) *Scaling {
	s := &Scaling{Scale: 1, Total: float64(max(1, cmp.Or(base, total))), Steps: changeSteps}
	switch {
	case total == base || total == 0 || base == 0:
	case normalize:
		s.Scale = float64(base) / float64(total)
	default:
		s.Raw = true
	}
	return s
}

// change returns the change of a value, as a percentage of Total. Rounding by the scale is no
// change.
func (s *Scaling) change(new, base uint64) float64 {
	c := 100 * (float64(new)*s.Scale - float64(base)) / s.Total
	if math.Abs(c) < 1e-9 {
		return 0
	}
	return c
}

// step returns the number of the colour of a change: 0 for none, above for growth.
func (s *Scaling) step(change float64) int {
	n := 0
	for n < len(s.Steps) && math.Abs(change) >= s.Steps[n] {
		n++
	}
	if change < 0 {
		return -n
	}
	return n
}
