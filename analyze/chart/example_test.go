package chart_test

import (
	"fmt"

	"symbolize/analyze/chart"
)

func ExampleAppendHistogram() {
	scale, err := chart.ParseScale("log2")
	if err != nil {
		fmt.Println(err)
		return
	}
	h := &chart.Histogram{}
	for slot, n := range []uint64{0, 3, 12, 5} {
		h.Add(slot, n)
	}
	fmt.Printf("%s", chart.AppendHistogram(nil, h, scale, chart.StyleBCC, "usecs"))
	// Output:
	// usecs               : count     distribution
	//          0 -> 1          : 0        |                                        |
	//          2 -> 3          : 3        |**********                              |
	//          4 -> 7          : 12       |****************************************|
	//          8 -> 15         : 5        |****************                        |
}
