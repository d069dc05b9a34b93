package flame

import (
	"cmp"
	"slices"
)

// HeatLife is the time over which a BPF program was loaded.
type HeatLife struct {
	ID   uint32 `json:"id"`
	Name string `json:"name"` // printable
	Tag  string `json:"tag"`
	// Loaded and Unloaded are times of the recording's clock, ns; 0 if it was loaded before the
	// recording, or unloaded after it.
	Loaded   uint64 `json:"loaded,string,omitempty"`
	Unloaded uint64 `json:"unloaded,string,omitempty"`
}

// recorded reports whether the recording has the beginning or the end of the life.
func (l *HeatLife) recorded() bool { return l.Loaded != 0 || l.Unloaded != 0 }

// SetLives gives the grid the lives that are in its time, in the order of their beginnings: at most
// as many as it has rows, and those that begin or end in the recording first.
func (g *HeatGrid) SetLives(list []HeatLife) {
	end := g.Start + uint64(g.Columns)*g.Width
	lives := slices.DeleteFunc(slices.Clone(list), func(l HeatLife) bool {
		return l.Loaded >= end || l.Unloaded != 0 && l.Unloaded < g.Start
	})
	if len(lives) > maxRows {
		slices.SortStableFunc(lives, func(a, b HeatLife) int {
			switch {
			case a.recorded() == b.recorded():
				return 0
			case a.recorded():
				return -1
			}
			return 1
		})
		lives = lives[:maxRows]
	}
	slices.SortFunc(lives, func(a, b HeatLife) int {
		return cmp.Or(cmp.Compare(a.Loaded, b.Loaded), cmp.Compare(a.ID, b.ID))
	})
	g.Lives = lives
}
