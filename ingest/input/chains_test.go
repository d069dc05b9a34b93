package input

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"symbolize/ingest/input/merge"
	"symbolize/ingest/intern"
)

// TestSmallCounts counts samples beyond what the fields of a chainValue hold.
func TestSmallCounts(t *testing.T) {
	table := newChainTable(nil)
	v, _ := table.chains.Add(intern.Hash{})
	want := merge.Row{Label: 3}
	for _, m := range []message{
		{count: 1, weight: 1}, {count: 254, weight: 1}, {count: 1, weight: 1}, {count: 255, weight: 1},
		{count: 256, weight: 1}, {count: 1, weight: math.MaxUint32 - 1}, {count: 1, weight: 2},
		{count: 1, weight: math.MaxUint32}, {count: 1, weight: math.MaxUint32 + 1}, {count: 1},
		{count: 1, weight: 1 << 40}, {count: math.MaxUint32, weight: 1},
	} {
		m.label = want.Label
		table.count(v, &m)
		want.Count, want.Weight = want.Count+uint64(m.count), want.Weight+m.weight
		got := merge.Row{Label: want.Label}
		for r := range table.rows() {
			got.Count, got.Weight = got.Count+r.Count, got.Weight+r.Weight
		}
		if got != want {
			t.Fatalf("after %d samples of weight %d: %+v, want %+v", m.count, m.weight, got, want)
		}
	}
	if size := reflect.TypeFor[chainValue]().Size(); size > 24 {
		t.Errorf("a value has %d bytes", size)
	}
}

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
