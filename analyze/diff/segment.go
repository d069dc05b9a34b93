package diff

import (
	"cmp"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// series holds the shares of one row by period, in time order.
type series struct {
	share []float64
	// chance is, by period, the variance of share that random sampling has by itself.
	chance []float64

	prior    []float64 // chance, and the variance between periods that is usual for such a share
	weights  []float64 // sums of the inverses of prior before each period
	weighted []float64 // sums of share by prior before each period
	scale    float64   // variance relative to prior
	changes  []change
}

// change is where the level of a series changes.
type change struct {
	at    int     // the first period of the new level
	p     float64 // corrected for all tests that were made
	score float64
}

// leastPeriods is how many periods a level has at least: one that differs alone is no change.
const leastPeriods = 2

// span is the periods from and before to.
type span struct{ from, to int }

// seededSpans returns the spans of n periods in which changes are searched: all periods, and for
// each length, halved again and again, spans that overlap by half, so that each change is far from
// other changes in one of them (Kovács, Bühlmann, Li, Munk, "Seeded binary segmentation", 2023).
// tests is how many splits they have together.
func seededSpans(n int) (spans []span, tests int) {
	for length := float64(n); length >= 2*leastPeriods; length /= 2 {
		count := max(1, 2*int(math.Ceil(float64(n)/length))-1)
		step := 0.0
		if count > 1 {
			step = (float64(n) - length) / float64(count-1)
		}
		for i := range count {
			from := int(math.Floor(float64(i) * step))
			to := min(n, int(math.Ceil(float64(i)*step+length)))
			spans = append(spans, span{from: from, to: to})
			tests += to - from - 2*leastPeriods + 1
		}
	}
	return spans, tests
}

// medianDegrees is how many degrees of freedom the median of the squares of differences has for each
// that the variance around the mean has.
const medianDegrees = 1.0 / 3

// findChanges finds the changes in all series and sets them. A change is significant if p of its
// t-test is below alpha after a correction for all series and splits (Bonferroni), with variances
// as in pValues: a series has few periods, all together know how periods differ. Shares that are
// alike in successive periods count as fewer periods.
func findChanges(list []*series, alpha float64) {
	if len(list) == 0 || len(list[0].share) < 2*leastPeriods {
		return
	}
	n := len(list[0].share)
	spans, tests := seededSpans(n)
	// The first estimate of the variances is by differences of successive periods, which changes
	// hardly alter; the second is around the levels that were found with the first.
	for round := range 2 {
		own, degrees, reliable := make([]float64, len(list)), 0.0, 1.0
		for i, s := range list {
			own[i] = s.variance(round == 0)
			degrees += float64(n - 1 - len(s.changes))
		}
		degrees /= float64(len(list))
		if round == 0 {
			reliable = medianDegrees
		}
		more, most := setVariances(list, own, degrees*reliable)
		freedom := min(more+degrees, degrees*float64(max(1, most)))
		alike := successive(list, round == 0)
		for _, s := range list {
			s.search(spans, alpha, freedom, alike, tests*len(list))
		}
	}
}

// mean is the weighted mean of the periods from and before to; weight is the sum of their weights.
func (s *series) mean(from, to int) (mean, weight float64) {
	weight = s.weights[to] - s.weights[from]
	if weight == 0 {
		return 0, 0
	}
	return (s.weighted[to] - s.weighted[from]) / weight, weight
}

// level returns the bounds of the level that has the change.
func (s *series) level(i int) (from, to int) {
	from, to = 0, len(s.share)
	if i > 0 {
		from = s.changes[i-1].at
	}
	if i < len(s.changes) {
		to = s.changes[i].at
	}
	return from, to
}

// variance is the variance of the shares, by differences of successive periods or around levels.
// Of the squares of differences it is the median, which a change of the level does not alter.
func (s *series) variance(byDifferences bool) float64 {
	n := len(s.share)
	if byDifferences {
		squares := make([]float64, n-1)
		for i := range squares {
			d := s.share[i+1] - s.share[i]
			squares[i] = d * d
		}
		return median(squares) / medianSquare / 2
	}
	sum := 0.0
	for i := range len(s.changes) + 1 {
		from, to := s.level(i)
		m := mean(s.share[from:to])
		for _, v := range s.share[from:to] {
			sum += (v - m) * (v - m)
		}
	}
	return sum / float64(max(1, n-1-len(s.changes)))
}

// setVariances sets the prior variances of all series and their scales, from the variances that
// they have, which have these degrees of freedom. It returns how many more all series together give
// to each, and how many series these are.
func setVariances(list []*series, own []float64, degrees float64) (more float64, of int) {
	sides := make([]twoSides, len(list))
	for i, s := range list {
		sides[i] = s.sides(own[i])
	}
	runs := excess(sides)
	var ratios []float64
	relative, floor := make([]float64, len(list)), make([]float64, len(list))
	for i, s := range list {
		s.setPrior(runs * sides[i].mean * sides[i].mean)
		if prior := mean(s.prior); prior > 0 {
			relative[i], floor[i] = own[i]/prior, sides[i].chance/prior
			if sides[i].enough() {
				ratios = append(ratios, relative[i])
			}
		}
	}
	scale, more := fitVariances(ratios, degrees)
	for i, s := range list {
		s.scale = max(moderate(relative[i], scale, degrees, more), floor[i])
	}
	return more, len(ratios)
}

// sides is the input of pValues for a series of this variance: one side.
func (s *series) sides(own float64) twoSides {
	return twoSides{mean: mean(s.share), own: own, chance: mean(s.chance)}
}

// setPrior adds the variance between periods to that of sampling.
func (s *series) setPrior(between float64) {
	n := len(s.share)
	s.prior, s.weights, s.weighted = make([]float64, n), make([]float64, n+1), make([]float64, n+1)
	for i := range n {
		s.prior[i] = s.chance[i] + between
		w := 0.0
		if s.prior[i] > 0 {
			w = 1 / s.prior[i]
		}
		s.weights[i+1], s.weighted[i+1] = s.weights[i]+w, s.weighted[i]+w*s.share[i]
	}
}

// successive returns the factor by which variances of means grow because successive periods are
// alike: (1+r)/(1-r) with the median r of all series, at least 1. It needs levels: without, it is
// 1.
func successive(list []*series, first bool) float64 {
	var all []float64
	for _, s := range list {
		if side := s.sides(0); first || !side.enough() {
			continue
		}
		product, squares, n := 0.0, 0.0, len(s.share)
		for i := range len(s.changes) + 1 {
			from, to := s.level(i)
			m, _ := s.mean(from, to)
			for k := from; k < to; k++ {
				squares += (s.share[k] - m) * (s.share[k] - m)
				if k+1 < to {
					product += (s.share[k] - m) * (s.share[k+1] - m)
				}
			}
		}
		// Profiles that are copies have squares of nothing. The mean is -1/n without any likeness.
		if expected := s.scale * sum(s.prior); expected > 0 {
			all = append(all, (product+squares/float64(n))/max(squares, expected))
		}
	}
	r := min(0.8, median(all))
	if r <= 0 || len(all) < leastRatios {
		return 1
	}
	return (1 + r) / (1 - r)
}

// test compares the levels before and after a split.
func (s *series) test(from, at, to int, alike float64) (score float64) {
	before, w := s.mean(from, at)
	after, v := s.mean(at, to)
	if w == 0 || v == 0 || s.scale == 0 {
		return 0
	}
	return math.Abs(after-before) / math.Sqrt(alike*s.scale*(1/w+1/v))
}

// best returns the split of periods with the greatest score.
func (s *series) best(from, to int, alike float64) (at int, score float64) {
	for k := from + leastPeriods; k <= to-leastPeriods; k++ {
		if v := s.test(from, k, to, alike); v > score {
			at, score = k, v
		}
	}
	return at, score
}

// search finds the changes: the spans with a significant split, the greatest score first, without
// spans that contain one already.
func (s *series) search(spans []span, alpha, freedom, alike float64, tests int) {
	type candidate struct {
		change
		span
	}
	var all []candidate
	for _, sp := range spans {
		at, score := s.best(sp.from, sp.to, alike)
		if score == 0 {
			continue
		}
		p := min(1, float64(tests)*2*(1-stats.TDist{V: freedom}.CDF(score)))
		if p < alpha {
			all = append(all, candidate{change{at, p, score}, sp})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	s.changes = nil
	for _, c := range all {
		if !slices.ContainsFunc(s.changes, func(f change) bool {
			return f.at > c.from && f.at < c.to || max(f.at-c.at, c.at-f.at) < leastPeriods
		}) {
			s.changes = append(s.changes, c.change)
		}
	}
	slices.SortFunc(s.changes, func(a, b change) int { return a.at - b.at })
	for i := range s.changes { // where they fit best between their neighbours
		from, _ := s.level(i)
		_, to := s.level(i + 1)
		if at, _ := s.best(from, to, alike); at > 0 {
			s.changes[i].at = at
		}
	}
}
