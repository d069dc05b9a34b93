package chart

import (
	"math/big"
	"sort"
)

// shades divides the counts from 1 to the largest one into levels of equal ratio, so
// that few among many are seen. It holds the first count of each level.
type shades struct {
	first []uint64
	most  uint64
}

// newShades makes at most n levels for counts up to most. Levels begin at most^(k/n), rounded up;
// levels without a whole number are left out. It is computed with integers: floating point differs
// between machines.
func newShades(most uint64, n int) shades {
	s := shades{most: most}
	target, root := new(big.Int), new(big.Int)
	base, exp := new(big.Int).SetUint64(most), big.NewInt(int64(n))
	for k := range n {
		if most == 0 {
			break
		}
		target.Exp(base, big.NewInt(int64(k)), nil)
		// The smallest root with root^n ≥ most^k; it is not more than most.
		low, high := uint64(1), most
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
	if level == len(s.first) {
		return s.first[level-1], s.most
	}
	return s.first[level-1], s.first[level] - 1
}
