package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"symbolize/analyze/table"
)

// differ is the difference of two totals, as a share of the base's, from which values as measured
// and shares lead to different judgements.
const differ = 0.05

// TotalsDiffer reports whether the totals of both sides differ by more than 5 % of the base's.
func (d *Diff) TotalsDiffer() bool {
	return math.Abs(d.New.Total-d.Base.Total) > differ*d.Base.Total
}

// Readings compares a judgement of values as measured with that of shares, the same sides scaled:
// "the totals differ, 1.58s before, 2.83s now: as measured 3 functions grew by more than 10%, as
// shares 1 (--normalize)".
func (d *Diff) Readings(shares *Diff) string {
	return fmt.Sprintf("the totals differ, %s before, %s now: as measured %s grew by more than %g%%, "+
		"as shares %d (--normalize)", d.quantity(d.Base.Total), d.quantity(d.New.Total),
		table.Count(len(d.Failed), "function", "functions"), 100**d.Fail, len(shares.Failed))
}

// judge lists the rows that grew by more than FailAbove and beyond chance. With several profiles
// the test of significance decides. With one a side a growth must exceed the noise of counting:
// the test has one side, as no decline fails, and is corrected for the number of rows as well.
func (d *Diff) judge(tests []twoSides, opts *Options) {
	if opts.FailAbove == nil {
		return
	}
	var counted []float64
	if !d.Tested {
		p := make([]float64, len(tests))
		excess := dispersion(tests, d.New.Total/d.Base.Total, d.Normalized)
		for i := range tests {
			p[i] = countingP(&tests[i], excess)
		}
		counted = holm(p)
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		v := r.Value()
		if v.Delta <= 0 || v.Change != nil && *v.Change <= *opts.FailAbove {
			continue
		}
		if d.Tested && r.Significant || !d.Tested && counted[i] < opts.Alpha {
			d.Failed = append(d.Failed, *r)
		} else {
			d.Noise++
		}
	}
	slices.SortStableFunc(d.Failed, compareRows)
}

// judgeTotal notes a total that grew by more than FailAbove and beyond chance; shares have none.
func (d *Diff) judgeTotal(t *valueTable, rows []twoSides, opts *Options) {
	if opts.FailAbove == nil || d.Normalized || d.Base.Total <= 0 {
		return
	}
	change := d.New.Total/d.Base.Total - 1
	if change <= *opts.FailAbove {
		return
	}
	bases, news := d.Base.totals(), d.New.totals()
	total := newTwoSides(bases, news, t.base.weightOf(bases, sum(t.base.flatSquares)),
		t.sides.weightOf(news, sum(t.sides.flatSquares)))
	grown, v := &Growth{Change: change}, newPair(bases, news)
	if d.Tested {
		n, m := len(bases), len(news)
		p, variances, freedom := pValues(append(slices.Clip(rows), total), n, m)
		if last := len(rows); p[last] < opts.Alpha {
			grown.Interval = changeInterval(&v, variances[last]/float64(n), variances[last]/float64(m), freedom)
			d.TotalFailed = grown
		}
		return
	}
	if countingP(&total, dispersion(rows, d.New.Total/d.Base.Total, false)) < opts.Alpha {
		grown.Interval = changeInterval(&v, v.Base*total.baseWeight, v.New*total.weight, math.Inf(1))
		d.TotalFailed = grown
	}
}

// TotalText describes a total that failed: "the total grew by 134.48% (95% interval 102.11% to
// 180.55%), from 292.93ms to 686.87ms".
func (d *Diff) TotalText() string {
	return fmt.Sprintf("%sthe total grew by %.2f%%%s, from %s to %s", d.newSide(),
		100*d.TotalFailed.Change, intervalText(d.TotalFailed.Interval), d.quantity(d.Base.Total),
		d.quantity(d.New.Total))
}

// newSide names the profiles of the new side before a text: "today.pb.gz (host vm): ".
func (d *Diff) newSide() string {
	p := &d.New.Profiles[len(d.New.Profiles)-1]
	more := ""
	if n := len(d.New.Profiles) - 1; n > 0 {
		more = fmt.Sprintf(" and %s", table.Count(n, "other", "others"))
	}
	return inFile(p.Name+more, p.Host)
}

// inFile begins a message about a profile, which may be one of many lines in a mail.
func inFile(name, host string) string {
	if host != "" {
		name += " (host " + host + ")"
	}
	return name + ": "
}

// countingP returns the probability that two profiles of equal runs show such a growth or a larger
// one, if samples are drawn independently. Of the samples on both sides, the number on the new one
// has a binomial distribution then.
//
// Samples that follow one another are alike, and runs differ: the number of independent samples is
// smaller by excess.
func countingP(t *twoSides, excess float64) float64 {
	if t.delta <= 0 || t.weight == 0 || t.baseWeight == 0 {
		return 1
	}
	sides, base := t.sides/t.weight/excess, t.base/t.baseWeight/excess // numbers of samples
	chance := (1 / t.weight) / (1/t.weight + 1/t.baseWeight)
	return betaCDF(chance, sides, base+1)
}

// The rows that dispersion needs: with a mean of so many samples, and so many of them.
const (
	dispersionSamples = 5
	dispersionRows    = 8
)

// medianSquare is the median of the square of a standard normal variable, and medianError, by the
// square root of their number, the relative standard error of the median of several.
const (
	medianSquare = 0.4549
	medianError  = 2.33
)

// dispersion returns the ratio of the variance of the differences to the variance of counting, at
// least 1, by the median of all rows less its standard error: few rows have changed
// (quasi-Poisson). Shares are compared, because an equal change of all rows is no noise: ratio is
// the ratio of the totals, unless values are scaled.
func dispersion(tests []twoSides, ratio float64, scaled bool) float64 {
	if scaled {
		ratio = 1
	}
	var squares []float64
	for _, t := range tests {
		base, sides, weight := t.base, t.sides/ratio, t.weight/ratio
		mean := (base/t.baseWeight + sides/weight) / (1/t.baseWeight + 1/weight)
		variance := mean * (t.baseWeight + weight)
		if mean*mean < dispersionSamples*variance/2 {
			continue
		}
		squares = append(squares, (sides-base)*(sides-base)/variance)
	}
	if len(squares) < dispersionRows {
		return 1
	}
	return max(1, median(squares)/medianSquare/(1+medianError/math.Sqrt(float64(len(squares)))))
}

// betaCDF approximates the distribution function of a beta distribution, for parameters of any
// size: the cube root of its F distribution is nearly normal (E. Paulson, "An approximate
// normalization of the analysis of variance distribution", 1942). Above 1e-5 it is at most a third
// larger than the true value, and less than 1 % smaller.
func betaCDF(x, a, b float64) float64 {
	f := math.Cbrt(b * x / (a * (1 - x)))
	u, v := 1/(9*a), 1/(9*b)
	return stats.StdNormal.CDF(((1-v)*f - (1 - u)) / math.Sqrt(u+v*f*f))
}

// interval is the probability with which the true change is within Row.Interval.
const interval = 0.95

// changeInterval returns the bounds of a change, from the variances of the means of both sides, by
// the logarithm of their ratio; nil if one side has nothing. freedom is the degrees of freedom of
// the variances, infinite where they are known.
func changeInterval(v *Pair, baseVariance, variance, freedom float64) *[2]float64 {
	if v.Base <= 0 || v.New <= 0 {
		return nil
	}
	quantile := stats.InvCDF(stats.StdNormal)
	if !math.IsInf(freedom, 1) {
		quantile = stats.InvCDF(stats.TDist{V: freedom})
	}
	width := quantile((1+interval)/2) *
		math.Sqrt(baseVariance/(v.Base*v.Base)+variance/(v.New*v.New))
	ratio := v.New / v.Base
	return &[2]float64{ratio*math.Exp(-width) - 1, ratio*math.Exp(width) - 1}
}

// FailedText describes a row that failed, with the values that were measured: "today.pb.gz (host vm):
// f grew by 12.00% (95% interval 8.02% to 16.13%), from 1.00s of 4.00s to 1.12s of 4.12s".
func (d *Diff) FailedText(r *Row) string {
	v := r.Value()
	to := d.measured(v.New, d.New.Total)
	if v.Change == nil {
		return fmt.Sprintf("%s%s is new, with %s", d.newSide(), r.label, to)
	}
	subject := d.newSide() + r.label
	if d.Normalized {
		subject += ": its share"
	}
	return fmt.Sprintf("%s grew by %.2f%%%s, from %s to %s", subject, 100**v.Change,
		intervalText(r.Interval),
		d.measured(v.Base, d.Base.Total), to)
}

// intervalText prints the bounds of a change in brackets, after a space; nothing for nil.
func intervalText(i *[2]float64) string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf(" (95%% interval %.2f%% to %.2f%%)", 100*i[0], 100*i[1])
}

// measured prints a value of a side with the side's total, both as measured: a scaled value is
// its share of the total.
func (d *Diff) measured(v, total float64) string {
	if !d.Normalized {
		return d.quantity(v) + " of " + d.quantity(total)
	}
	share := v / d.Total
	return fmt.Sprintf("%s (%.2f%% of %s)", d.quantity(share*total), 100*share, d.quantity(total))
}

// uneven is how much larger the mean of the samples' squares is than the square of their mean,
// where their values differ widely.
const uneven = 1.5

// Uneven reports whether samples differ widely in value, as times of waiting do, and no
// repetitions show how runs differ: then noise is larger than the number of samples shows, as
// samples of one stack are only known by their sum.
func (d *Diff) Uneven() bool { return !d.Tested && d.unevenness > uneven }

// NoiseText counts the functions that grew by more than FailAbove, but not beyond chance, or is
// empty.
func (d *Diff) NoiseText() string {
	if d.Noise == 0 {
		return ""
	}
	chance := "the noise of counting samples"
	if d.Tested {
		chance = "what repetitions and chance explain"
	}
	return fmt.Sprintf("%s grew by more than %g%%, but not beyond %s",
		table.Count(d.Noise, "function", "functions"), 100**d.Fail, chance)
}
