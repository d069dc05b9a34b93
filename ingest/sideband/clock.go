package sideband

import (
	"math"
	"slices"
)

// clock turns the times of records and samples into the one that orders both.
type Clock struct {
	Timed bool // by recorded time; else by position in the file
	// For records whose time is ~0, which are delivered in file order: the latest
	// time that a record before a position had.
	pos    []int64
	latest []uint64
}

// noTime is the time of a record that has none.
const NoTime = math.MaxUint64

// at returns the ordering time of a sample. In a file without times state
// records before the first sample count as 0, so positions are never that.
func (c *Clock) At(recorded uint64, offset int64) uint64 {
	switch {
	case !c.Timed:
		return uint64(offset)
	case recorded != NoTime:
		return recorded
	}
	i, _ := slices.BinarySearch(c.pos, offset)
	if i == 0 {
		return 0
	}
	return c.latest[i-1]
}

// note enters a state record's time, and returns the one that orders it.
func (c *Clock) note(recorded uint64, offset int64, beforeSamples bool) uint64 {
	if !c.Timed {
		if beforeSamples {
			return 0
		}
		return uint64(offset)
	}
	last := uint64(0)
	if n := len(c.latest); n > 0 {
		last = c.latest[n-1]
	}
	if recorded == NoTime {
		recorded = last + 1 // later than what lies before it, and not seen from there
	}
	if recorded > last {
		c.pos = append(c.pos, offset)
		c.latest = append(c.latest, recorded)
	}
	return recorded
}
