package flame

import (
	"slices"
	"testing"
)

// TestSetLives: the lives in the time of a grid, in the order of their beginnings; of too many those
// that begin or end in the recording.
func TestSetLives(t *testing.T) {
	c := NewHeatRows(MaxColumns)
	c.Add(100e6, "a")
	c.Add(109e6, "a")
	g := c.Grid() // 10 columns from 100 ms
	ids := func(list []HeatLife) (ids []uint32) {
		g.SetLives(list)
		for _, l := range g.Lives {
			ids = append(ids, l.ID)
		}
		return ids
	}
	always := HeatLife{ID: 9}
	list := []HeatLife{{ID: 3, Loaded: 105e6, Unloaded: 106e6}, {ID: 2, Loaded: 105e6}, {ID: 1, Unloaded: 101e6},
		{ID: 4, Unloaded: 99e6}, {ID: 5, Loaded: 110e6}, always}
	if got := ids(list); !slices.Equal(got, []uint32{1, 9, 2, 3}) {
		t.Errorf("lives %v", got)
	}
	for range maxRows {
		list = append([]HeatLife{always}, list...)
	}
	if got := ids(list); len(got) != maxRows || !slices.Equal(got[maxRows-2:], []uint32{2, 3}) ||
		got[0] != 1 {
		t.Errorf("%d lives, %v", len(got), got)
	}
	if ids(nil); len(g.Lives) > 0 {
		t.Errorf("lives %v", g.Lives)
	}
}
