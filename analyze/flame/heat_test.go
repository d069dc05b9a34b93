package flame

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestOffsets(t *testing.T) {
	c := NewHeatOffsets()
	for _, at := range []uint64{5e9, 5_019_999_999, 5_020_000_000, 6_999_999_999, 0, ^uint64(0)} {
		c.Add(at, "")
	}
	want := &HeatGrid{Rows: []string{}, Start: 5e9, Width: 1e8, Columns: 20, Total: 4, Untimed: 2,
		Cells: []HeatCell{{0, 0, 1}, {0, 9, 1}, {0, 10, 1}, {19, 49, 1}}}
	if got := c.Grid(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	c.Add(10e9, "") // 51 columns of 100 ms
	if got := c.Grid(); got.Width != 2e8 || got.Columns != 26 {
		t.Errorf("%d columns of %d ns", got.Columns, got.Width)
	}
	c.Add(25e9, "") // columns of a second
	want = &HeatGrid{Rows: []string{}, Start: 5e9, Width: 1e9, Columns: 21, Total: 6, Untimed: 2,
		Cells: []HeatCell{{0, 0, 2}, {0, 1, 1}, {1, 49, 1}, {5, 0, 1}, {20, 0, 1}}}
	if got := c.Grid(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestRows(t *testing.T) {
	c := NewHeatRows(MaxColumns)
	c.Add(3_000_000, "b")
	c.Add(1_500_000, "a")
	c.Add(1_600_000, "a")
	want := &HeatGrid{Rows: []string{"a", "b"}, Start: 1e6, Width: 1e6, Columns: 3, Total: 3,
		Cells: []HeatCell{{0, 0, 2}, {2, 1, 1}}}
	if got := c.Grid(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := NewHeatRows(MaxColumns).Grid(); got.Total != 0 || got.Columns != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestValues: rows are powers of two from the greatest value to the least, and samples at any times,
// as damaged files have, give a bounded number of columns.
func TestValues(t *testing.T) {
	c := NewHeatValues("nanoseconds")
	for _, s := range []struct{ time, value uint64 }{{5e6, 4096}, {5e6, 8191}, {7e6, 1500}, {math.MaxUint64, 1}} {
		c.AddValue(s.time, s.value)
	}
	want := &HeatGrid{Rows: []string{"from 4.10us", "from 2.05us", "from 1.02us"}, Start: 5e6, Width: 1e6,
		Columns: 3, Total: 3, Untimed: 1, Power: 12, Cells: []HeatCell{{0, 0, 2}, {2, 2, 1}}}
	if got := c.Grid(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	c = NewHeatValues("node")
	for _, time := range []uint64{5e6, 6e6, 1 << 60, math.MaxUint64 - 1, math.MaxUint64} {
		c.AddValue(time, time>>63)
	}
	g := c.Grid()
	if !slices.Equal(g.Rows, []string{"from 0"}) || g.Total != 4 || g.Untimed != 1 || g.Columns < 2 ||
		g.Columns > PageColumns {
		t.Errorf("%d columns, %d samples, %d without a time; rows %q", g.Columns, g.Total, g.Untimed, g.Rows)
	}
}

// TestJoin: whatever the order and distance of samples, a grid has its last width.
func TestJoin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, span := range []uint64{1e9, 1e12, 1e15, 1 << 62} {
		times := make([]uint64, 2000)
		for i := range times {
			times[i] = 1 + rng.Uint64N(span)
		}
		offsets, rows := NewHeatOffsets(), NewHeatRows(MaxColumns)
		for i, at := range times {
			offsets.Add(at, "")
			rows.Add(at, fmt.Sprint("row", i%7))
		}
		for _, c := range []*HeatCounter{offsets, rows} {
			g := c.Grid()
			if g.Columns > MaxColumns {
				t.Fatalf("%d columns", g.Columns)
			}
			want := make(map[HeatCell]uint64)
			for i, at := range times {
				cell := HeatCell{Column: int((at - g.Start) / g.Width)}
				if c.offsets {
					cell.Row = int(at % g.Width / (g.Width / OffsetRows))
				} else {
					for g.Rows[cell.Row] != fmt.Sprint("row", i%7) {
						cell.Row++
					}
				}
				want[cell]++
			}
			for _, cell := range g.Cells {
				n := cell.Count
				cell.Count = 0
				if want[cell] != n {
					t.Fatalf("span %d: cell %+v has %d, want %d", span, cell, n, want[cell])
				}
			}
			if len(want) != len(g.Cells) {
				t.Errorf("%d cells, want %d", len(g.Cells), len(want))
			}
		}
	}
}

func TestManyRows(t *testing.T) {
	c := NewHeatRows(MaxColumns)
	for i := range 1000 {
		for range 1 + i%3 {
			c.Add(1e9, fmt.Sprintf("row%03d", i))
		}
	}
	g := c.Grid()
	sum := uint64(0)
	for _, cell := range g.Cells {
		sum += cell.Count
	}
	if len(g.Rows) != maxRows || g.Rows[maxRows-1] != fmt.Sprintf("%d others", 1+len(c.rows)-maxRows) || sum != c.total ||
		g.Rows[0] != "row002" {
		t.Errorf("%d rows, %q first, sum %d of %d", len(g.Rows), g.Rows[0], sum, c.total)
	}
}
