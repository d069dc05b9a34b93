package flame

import (
	"fmt"
	"math"

	"symbolize/analyze/calltree"
)

// Tests are statistics of functions over several profiles a side: medians, spreads, significance.
type Tests struct {
	Base, New int     // numbers of profiles
	Total     float64 // of each profile's values; or the base's median, where they are as they are
	Alpha     float64 // a p-value below it is significant
	Flat, Cum map[calltree.NodeID]Test
}

// Test is the test of one function.
type Test struct {
	Base, New float64 // medians
	// BaseSpread and NewSpread are half the range of the values by their median.
	BaseSpread, NewSpread float64
	P                     float64 // corrected for the number of functions
}

// testData has the tests by the frames of the page: null, or base, new, their spreads and p.
type testData struct {
	Base  int         `json:"base"`
	New   int         `json:"new"`
	Total float64     `json:"total"`
	Alpha float64     `json:"alpha"`
	Flat  [][]float64 `json:"flat"`
	Cum   [][]float64 `json:"cum"`
}

// fact ends the remark on the values of several profiles.
func (t *Tests) fact() string {
	if t == nil {
		return "; with several profiles on a side functions are tested for significance"
	}
	return fmt.Sprintf("; functions are compared by their medians, and significant where p, "+
		"corrected for their number, is below %g", t.Alpha)
}

// fillTests writes the tests of the frames that trees and table have numbered.
func (g *Graph) fillTests() {
	if g.tests == nil {
		return
	}
	t := g.tests
	d := &testData{Base: t.Base, New: t.New, Total: t.Total, Alpha: t.Alpha,
		Flat: make([][]float64, len(g.Frames.nodes)), Cum: make([][]float64, len(g.Frames.nodes))}
	for i, n := range g.Frames.nodes {
		d.Flat[i], d.Cum[i] = valuesOf(t.Flat, n), valuesOf(t.Cum, n)
	}
	g.Scaling.Tests = d
}

// valuesOf returns the values of a test, to six digits; nil if the function was not tested.
func valuesOf(tests map[calltree.NodeID]Test, n calltree.NodeID) []float64 {
	x, ok := tests[n]
	if !ok {
		return nil
	}
	return []float64{digits(x.Base), digits(x.New), digits(x.BaseSpread), digits(x.NewSpread),
		digits(x.P)}
}

func digits(v float64) float64 {
	const most = 6
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, most-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
