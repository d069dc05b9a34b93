package sideband

import (
	"math"
	"slices"
)

// Clock converts the times of records and samples to times that order both.
type Clock struct {
	Timed bool // by recorded time; else by position in the file
	// The latest time of the records before each position, for records with time ~0, which
	// take their place in the file.
	pos    []Position
	latest []uint64
}

// NoTime is the time of a record that has none.
const NoTime = math.MaxUint64

// At returns the ordering time of a sample. In a file without times state records before the first
// sample count as 0, so positions are never that.
func (c *Clock) At(recorded uint64, at Position) uint64 {
	switch {
	case !c.Timed:
		return at.order()
	case recorded != NoTime:
		return recorded
	}
	i, _ := slices.BinarySearch(c.pos, at)
	if i == 0 {
		return 0
	}
	return c.latest[i-1]
}

// note enters a state record's time, and returns the one that orders it.
func (c *Clock) note(recorded uint64, at Position, beforeSamples bool) uint64 {
	if !c.Timed {
		if beforeSamples {
			return 0
		}
		return at.order()
	}
	last := uint64(0)
	if n := len(c.latest); n > 0 {
		last = c.latest[n-1]
	}
	if recorded == NoTime {
		recorded = last + 1 // later than the records before it
	}
	if recorded > last {
		c.pos = append(c.pos, at)
		c.latest = append(c.latest, recorded)
	}
	return recorded
}
