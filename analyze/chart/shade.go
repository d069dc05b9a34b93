package chart

import (
	"math"
	"math/big"
	"sort"
)

// scaleEnd returns where the shades of a grid end: at its largest count, but not below what chance
// allows of a sum that is spread evenly over its cells with counts, so that one or two in each do not
// look like a peak. That is more than four standard deviations above their mean.
func (g *grid) scaleEnd() uint64 {
	var sum, cells uint64
	for i := range g.columns {
		for _, n := range g.columns[i].Counts {
			sum, cells = addSaturating(sum, n), cells+min(n, 1)
		}
	}
	mean := sum / max(cells, 1)
	return max(g.most, addSaturating(mean, 4*uint64(math.Ceil(math.Sqrt(float64(mean))))+3))
}

// shades divides the counts from 1 to the end of a scale into levels of equal ratio, so
// that few among many are seen. It holds the first count of each level.
type shades struct {
	first []uint64
	most  uint64 // of all counts
	used  int    // levels of counts up to most
}

// newShades makes at most n levels for counts up to end, of which most is the largest. Levels begin at
// end^(k/n), rounded up; levels without a whole number are left out. It is computed with integers:
// floating point differs between machines, except square roots.
func newShades(most, end uint64, n int) shades {
	s := shades{most: most}
	target, root := new(big.Int), new(big.Int)
	base, exp := new(big.Int).SetUint64(end), big.NewInt(int64(n))
	for k := range n {
		if end == 0 {
			break
		}
		target.Exp(base, big.NewInt(int64(k)), nil)
		// The smallest root with root^n ≥ end^k; it is not more than end.
		low, high := uint64(1), end
		for low < high {
			mid := low + (high-low)/2
			if root.Exp(root.SetUint64(mid), exp, nil).Cmp(target) >= 0 {
				high = mid
			} else {
				low = mid + 1
			}
		}
		if len(s.first) == 0 || low > s.first[len(s.first)-1] {
			s.first = append(s.first, low)
		}
	}
	s.used = s.level(most)
	return s
}

// level returns the level of a count: 0 for none, 1 for the fewest.
func (s shades) level(n uint64) int {
	return sort.Search(len(s.first), func(i int) bool { return s.first[i] > n })
}

// colour returns which of n colours a level has, counted from 0; the highest level has
// the last one.
func (s shades) colour(level, n int) int {
	if len(s.first) == 1 {
		return n - 1
	}
	return (level - 1) * (n - 1) / (len(s.first) - 1)
}

// bounds returns the fewest and most counts of a level.
func (s shades) bounds(level int) (low, high uint64) {
	if level == s.used {
		return s.first[level-1], s.most
	}
	return s.first[level-1], s.first[level] - 1
}
