package input

import (
	"math"
	"slices"
	"testing"

	"symbolize/ingest/fold/intern"
	"symbolize/ingest/fold/merge"
)

// TestChainCounts counts samples of one chain beyond 32 bits, with two labels and two results.
func TestChainCounts(t *testing.T) {
	table := newChainTable(nil)
	v, _ := table.chains.Add(intern.Hash{})
	v.stack = 7
	for range 3 {
		table.count(v, &message{label: 1, count: math.MaxUint32 - 1, weight: 10})
		table.count(v, &message{label: 1, count: 2, weight: 1})
		table.count(v, &message{label: 2, count: 5, weight: 3})
	}
	table.move(v)
	v.stack = 8
	table.count(v, &message{label: 2, count: 1, weight: 1})
	got := map[[2]uint32]merge.Row{}
	for r := range table.rows() {
		key := [2]uint32{r.Stack, r.Label}
		sum := got[key]
		got[key] = merge.Row{Stack: r.Stack, Label: r.Label, Count: sum.Count + r.Count,
			Weight: sum.Weight + r.Weight}
	}
	want := map[[2]uint32]merge.Row{
		{7, 1}: {Stack: 7, Label: 1, Count: 3 * (math.MaxUint32 + 1), Weight: 33},
		{7, 2}: {Stack: 7, Label: 2, Count: 15, Weight: 9},
		{8, 2}: {Stack: 8, Label: 2, Count: 1, Weight: 1},
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	for key, row := range want {
		if got[key] != row {
			t.Errorf("%v, want %v", got[key], row)
		}
	}
	if n := len(slices.Collect(table.rows())); n > 3 {
		t.Errorf("%d rows for 3 results", n)
	}
}
