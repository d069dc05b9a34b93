package diff

import (
	"cmp"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// median returns the middle of values, 0 of none. It keeps their order.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// spread returns half the range of values as a share of their median: "±" in tables.
func spread(values []float64) float64 {
	m := median(values)
	if len(values) < 2 || m == 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / 2 / m
}

// twoSides is the input of the tests for one function.
type twoSides struct {
	base, sides float64 // means
	delta       float64 // their difference
	mean        float64 // over both sides
	own         float64 // variance of the values around the mean of their side
	chance      float64 // variance that a draw of that many samples has by itself
	// baseWeight and weight are the values of a sample on both sides.
	baseWeight, weight float64
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

func mean(values []float64) float64 { return sum(values) / float64(len(values)) }

// newTwoSides sums up the values of a function, with the weights of its samples.
func newTwoSides(base, sides []float64, baseWeight, weight float64) twoSides {
	b, s := mean(base), mean(sides)
	squares := 0.0
	for _, v := range base {
		squares += (v - b) * (v - b)
	}
	for _, v := range sides {
		squares += (v - s) * (v - s)
	}
	n, m := float64(len(base)), float64(len(sides))
	t := twoSides{base: b, sides: s, delta: s - b, own: squares / max(1, n+m-2), baseWeight: baseWeight,
		weight: weight}
	if baseWeight > 0 && weight > 0 { // the side with more samples knows the mean better
		t.mean = (b*n/baseWeight + s*m/weight) / (n/baseWeight + m/weight)
	}
	t.chance = t.mean * (baseWeight/n + weight/m) / (1/n + 1/m)
	return t
}

// pValues returns for each function the probability that its sides differ as they do, or more, if
// nothing changed: by a t-test with moderated variances (G. K. Smyth, "Linear models and empirical
// Bayes methods", 2004). A few profiles estimate the variance of one function badly, and the
// variance of all functions together well. So each variance is moved towards the others, the more
// the more alike they are, and is never smaller than the variance of random sampling. n and m are
// the numbers of profiles, three or more together. The result has the variances, too, and their
// degrees of freedom.
func pValues(list []twoSides, n, m int) (p, variances []float64, freedom float64) {
	degrees := float64(n + m - 2)
	prior := priorVariances(list)
	var ratios []float64
	for i, t := range list {
		if prior[i] > 0 && t.enough() {
			ratios = append(ratios, t.own/prior[i])
		}
	}
	scale, more := fitVariances(ratios, degrees)
	// All rows together have no more degrees of freedom than this.
	freedom = min(more+degrees, degrees*float64(max(1, len(ratios))))
	p, variances = make([]float64, len(list)), make([]float64, len(list))
	for i, t := range list {
		if prior[i] == 0 {
			p[i] = 1
			continue
		}
		variances[i] = max(prior[i]*moderate(t.own/prior[i], scale, degrees, more), t.chance)
		score := math.Abs(t.delta) / math.Sqrt(variances[i]*(1/float64(n)+1/float64(m)))
		p[i] = 2 * (1 - stats.TDist{V: freedom}.CDF(score))
	}
	return p, variances, freedom
}

// fewSamples is how many samples a function has on average in a profile at least, for its
// variance to count for others.
const fewSamples = 20

// enough reports whether the variance of a function counts for others.
func (t *twoSides) enough() bool {
	return t.mean > 0 && t.mean*t.mean >= fewSamples*t.chance
}

// moderate moves a variance, relative to its prior, towards the scale of all, which has more
// degrees of freedom.
func moderate(own, scale, degrees, more float64) float64 {
	if math.IsInf(more, 1) {
		return scale
	}
	return (more*scale + degrees*own) / (more + degrees)
}

// priorVariances returns the variance that the mean of each function makes probable: the one of
// sampling, and one of runs, which is the same share of the mean for all.
func priorVariances(list []twoSides) []float64 {
	runs := excess(list)
	prior := make([]float64, len(list))
	for i, t := range list {
		prior[i] = t.chance + runs*t.mean*t.mean
	}
	return prior
}

// excess is the variance beyond the one of sampling by the square of the mean: the median of all
// functions.
func excess(list []twoSides) float64 {
	var shares []float64
	for _, t := range list {
		if t.enough() {
			shares = append(shares, max(0, t.own-t.chance)/(t.mean*t.mean))
		}
	}
	return median(shares)
}

// leastRatios is the number of functions needed to fit the distribution of variances.
const leastRatios = 4

// fitVariances fits a scaled inverse chi-square distribution to variances that are relative to
// their prior, by the moments of their logarithms. It returns the scale of the prior and its
// degrees of freedom: infinite if the variances differ no more than chance has it.
func fitVariances(ratios []float64, degrees float64) (scale, freedom float64) {
	if len(ratios) < leastRatios {
		return 1, 0
	}
	const least = 1e-6
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		logs[i] = math.Log(max(r, least)) - digamma(degrees/2) + math.Log(degrees/2)
	}
	center, squares := mean(logs), 0.0
	for _, l := range logs {
		squares += (l - center) * (l - center)
	}
	rest := squares/float64(len(logs)-1) - trigamma(degrees/2)
	if rest <= 0 {
		return math.Exp(center), math.Inf(1)
	}
	half := trigammaInverse(rest)
	return math.Exp(center + digamma(half) - math.Log(half)), 2 * half
}

// digamma is the derivative of the logarithm of the gamma function, for x > 0: by recurrence
// up to 10, then by its asymptotic series (Abramowitz and Stegun, 6.3.5 and 6.3.18).
func digamma(x float64) float64 {
	sum := 0.0
	for ; x < 10; x++ {
		sum -= 1 / x
	}
	y := 1 / (x * x)
	return sum + math.Log(x) - 0.5/x - y*(1.0/12-y*(1.0/120-y/252))
}

// trigamma is the derivative of digamma, likewise (6.4.6 and 6.4.12).
func trigamma(x float64) float64 {
	sum := 0.0
	for ; x < 10; x++ {
		sum += 1 / (x * x)
	}
	y := 1 / (x * x)
	return sum + 1/x + y/2 + y/x*(1.0/6-y*(1.0/30-y/42))
}

// trigammaInverse returns the x of a value of trigamma, which falls steadily.
func trigammaInverse(value float64) float64 {
	low, high := 1e-3, 1e6
	for range 100 {
		middle := math.Sqrt(low * high)
		if trigamma(middle) > value {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(low * high)
}

// holm corrects the p-values of several tests, so that the probability of any false alarm
// among them all is the one that a corrected value is compared with.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p[a], p[b]), cmp.Compare(a, b))
	})
	out := make([]float64, len(p))
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, p[i]*float64(len(p)-rank)))
		out[i] = least
	}
	return out
}
