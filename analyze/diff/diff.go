package diff

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
)

// Options are for New.
type Options struct {
	calltree.Options
	// Normalize scales each profile to the base's total, as pprof's -normalize; otherwise values
	// are compared as measured.
	Normalize bool
	Cum       bool    // sort, test and judge by the cumulative value
	MinShare  float64 // leave out rows with less of their side's total on both sides, 0 to 1
	Limit     int     // how many rows are printed; 0 for all
	Alpha     float64 // a corrected p-value below it is significant
	// FailAbove is the growth above which a function fails if it is beyond chance, 0.05 for 5 %;
	// nil judges none.
	FailAbove *float64
}

// Diff is a comparison of two sides.
type Diff struct {
	Event   string   `json:"event"`
	Unit    string   `json:"unit"`
	By      string   `json:"by"`
	Value   string   `json:"judged"` // "flat" or "cum": the value that is sorted, tested and judged
	Filters []string `json:"filters,omitempty"`
	Base    Side     `json:"base"`
	New     Side     `json:"new"`
	// Normalized is set where the profiles have been scaled to the total that follows.
	Normalized bool    `json:"normalized"`
	Total      float64 `json:"total"`
	// Tested is set where a side has several profiles: P is set then.
	Tested   bool     `json:"tested"`
	Alpha    float64  `json:"alpha,omitempty"`
	Rows     []Row    `json:"rows"`
	Left     int      `json:"rows_left_off,omitempty"` // by Limit
	MinShare float64  `json:"min_share"`
	Small    Sum      `json:"below_min_share"`
	Fail     *float64 `json:"fail_above,omitempty"`
	Failed   []Row    `json:"failed,omitempty"`
	// TotalFailed is set where the total grew by more than Fail and beyond chance, as measured.
	TotalFailed *Growth `json:"total_failed,omitempty"`
	// Noise is how many rows grew by more than Fail, but not beyond chance.
	Noise int `json:"within_noise,omitempty"`

	unmatched  []string
	unevenness float64 // mean of the samples' squares by the square of their mean
}

// Growth is a growth of the total.
type Growth struct {
	Change   float64     `json:"change"` // 0.05 for 5 %
	Interval *[2]float64 `json:"change_interval,omitempty"`
}

// Sum adds up the nodes that are in no row.
type Sum struct {
	Rows int     `json:"rows"`
	Base float64 `json:"base"` // flat
	New  float64 `json:"new"`
}

// Row is a function or other node with its values on both sides, scaled if the profiles are.
type Row struct {
	calltree.Item
	Flat   Pair   `json:"flat"`
	Cum    Pair   `json:"cum"`
	Status string `json:"status,omitempty"` // "new" or "gone"
	// P is the corrected p-value of the side that is judged.
	P           *float64 `json:"p,omitempty"`
	Significant bool     `json:"significant,omitempty"`
	// Interval contains the true change of the value that is judged with a probability of 95 %,
	// as far as repetitions and the number of samples show.
	Interval *[2]float64 `json:"change_interval,omitempty"`

	node          calltree.NodeID
	label, suffix string // as the table shows them
	judged        bool   // by Cum
}

// The values of Status.
const (
	StatusNew  = "new"  // not in the base
	StatusGone = "gone" // not on the new side
)

// Pair is a value on both sides, the medians of their profiles.
type Pair struct {
	Base  float64 `json:"base"`
	New   float64 `json:"new"`
	Delta float64 `json:"delta"`
	// Change is the growth by the base, 0.05 for 5 %; nil where the base is 0.
	Change *float64 `json:"change"`
	// BaseSpread and NewSpread are half the range of the profiles' values by their median.
	BaseSpread float64 `json:"base_spread,omitempty"`
	NewSpread  float64 `json:"new_spread,omitempty"`
}

// Node is the row's node in the stacks of Folded.
func (r *Row) Node() calltree.NodeID { return r.node }

// Value is the pair that is sorted, tested and judged.
func (r *Row) Value() *Pair {
	if r.judged {
		return &r.Cum
	}
	return &r.Flat
}

// New compares two sides of at least one profile each.
func New(base, sides []Input, opts Options) (*Diff, error) {
	f, err := Fold(base, sides, opts.Options)
	if err != nil {
		return nil, err
	}
	return f.Diff(opts), nil
}

// Diff compares the sides; options about stacks do not count.
func (f *Folded) Diff(opts Options) *Diff {
	d := &Diff{Event: f.New[0].Event, Unit: f.New[0].Unit, By: byText(opts.By),
		Value: "flat", Filters: opts.Filter.Active(), MinShare: opts.MinShare, Fail: opts.FailAbove,
		Rows: []Row{}, unmatched: f.Unmatched()}
	d.Base, d.New = f.Sides()
	if opts.Cum {
		d.Value = "cum"
	}
	d.Tested = len(f.base) > 1 || len(f.sides) > 1
	if d.Tested {
		d.Alpha = opts.Alpha
	}
	t := d.newTable(f, &opts)
	d.addRows(t, &opts)
	return d
}

func byText(by []calltree.By) string {
	words := make([]string, len(by))
	for i, b := range by {
		words[i] = b.String()
	}
	return cmp.Or(strings.Join(words, ","), calltree.Function.String())
}

// side holds the scaled values of a side by node, of each of its profiles.
type side struct {
	flat, cum [][]float64 // by profile and node
	weight    float64     // of a sample, scaled, mean over the profiles
	// flatSquares and cumSquares are the sums of the squares of the samples' scaled values by
	// node, over all profiles.
	flatSquares, cumSquares []float64
}

// weightOf returns the value of a sample of a node, from the values of the node and the sum of
// its samples' squares: the one that equal samples would have which scatter as these do.
func (s *side) weightOf(values []float64, squares float64) float64 {
	if total := sum(values); total > 0 {
		return squares / total
	}
	return s.weight
}

// valueTable holds both sides.
type valueTable struct {
	full        *demangle.Demangler
	nodes       []calltree.Node
	base, sides side
}

// newTable reads the values of all profiles. To normalize them, it scales each to the base's
// total, as pprof does.
func (d *Diff) newTable(f *Folded, opts *Options) *valueTable {
	d.Total = d.Base.Total
	normalize := opts.Normalize
	if d.Total == 0 { // nothing to scale to
		d.Total, normalize = d.New.Total, false
	}
	for _, s := range slices.Concat(f.New, f.Base) {
		d.Normalized = d.Normalized || normalize && float64(s.Total) != d.Total
	}
	t := &valueTable{nodes: f.New[0].Nodes, full: demangle.New(demangle.Full)}
	t.base, t.sides = d.scale(f.Base), d.scale(f.New)
	return t
}

func (d *Diff) scale(list []*calltree.Stacks) (s side) {
	for _, stacks := range list {
		factor := 1.0
		if d.Normalized && stacks.Total > 0 {
			factor = d.Total / float64(stacks.Total)
		}
		flat, cum := stacks.Sums()
		s.flat, s.cum = append(s.flat, scaled(flat, factor)), append(s.cum, scaled(cum, factor))
		flatSquares, cumSquares := stacks.Squares()
		s.flatSquares = addScaled(s.flatSquares, flatSquares, factor*factor)
		s.cumSquares = addScaled(s.cumSquares, cumSquares, factor*factor)
		if total := float64(stacks.Total); total > 0 {
			mean := total / float64(stacks.Samples)
			d.unevenness = max(d.unevenness, sum(flatSquares)/(total*mean))
		}
		if stacks.Samples > 0 {
			s.weight += float64(stacks.Total) * factor / float64(stacks.Samples) /
				float64(len(list))
		}
	}
	return s
}

func scaled(values []uint64, factor float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v) * factor
	}
	return out
}

// addScaled adds scaled values to sums, which is empty at first.
func addScaled(sums, values []float64, factor float64) []float64 {
	if sums == nil {
		sums = make([]float64, len(values))
	}
	for i, v := range values {
		sums[i] += v * factor
	}
	return sums
}

// of returns the values of a node in all profiles.
func of(values [][]float64, node int) []float64 {
	list := make([]float64, len(values))
	for i := range values {
		list[i] = values[i][node]
	}
	return list
}

// label names the rows as the table shows them.
func (d *Diff) label(t *valueTable) {
	nodes := make([]calltree.NodeID, len(d.Rows))
	for i := range d.Rows {
		nodes[i] = d.Rows[i].node
	}
	shown := calltree.LookAlikes(t.nodes, nodes, t.full)
	for i := range d.Rows {
		r := &d.Rows[i]
		r.label = cmp.Or(shown[r.node], r.Name)
	}
}

// addRows makes a row of each node that has enough on either side, tests them, and judges.
func (d *Diff) addRows(t *valueTable, opts *Options) {
	least, baseLeast := opts.MinShare*d.Total, opts.MinShare*d.Total
	if !d.Normalized {
		least = opts.MinShare * d.New.Total
	}
	var tests []twoSides
	for n := range t.nodes {
		r := Row{Flat: newPair(of(t.base.flat, n), of(t.sides.flat, n)),
			Cum:    newPair(of(t.base.cum, n), of(t.sides.cum, n)),
			judged: opts.Cum, node: calltree.NodeID(n)}
		bases, news := of(t.base.cum, n), of(t.sides.cum, n)
		if slices.Max(bases) == 0 && slices.Max(news) == 0 {
			continue
		}
		v := r.Value()
		if v.Base < baseLeast && v.New < least {
			d.Small.Rows++
			d.Small.Base += r.Flat.Base
			d.Small.New += r.Flat.New
			continue
		}
		switch {
		case slices.Max(bases) == 0:
			r.Status = StatusNew
		case slices.Max(news) == 0:
			r.Status = StatusGone
		}
		node := &t.nodes[n]
		r.Item, r.suffix = calltree.NewItem(node, t.full), calltree.ObjectSuffix(node)
		tests = append(tests, t.sidesOf(n, opts.Cum))
		d.Rows = append(d.Rows, r)
	}
	d.label(t)
	d.test(tests, len(t.base.flat), len(t.sides.flat), opts)
	d.judge(tests, opts)
	d.judgeTotal(t, tests, opts)
	d.sort(opts)
}

// sidesOf returns the input of the tests for a node.
func (t *valueTable) sidesOf(n int, cum bool) twoSides {
	base, sides := of(t.base.flat, n), of(t.sides.flat, n)
	baseSquares, squares := t.base.flatSquares[n], t.sides.flatSquares[n]
	if cum {
		base, sides = of(t.base.cum, n), of(t.sides.cum, n)
		baseSquares, squares = t.base.cumSquares[n], t.sides.cumSquares[n]
	}
	return newTwoSides(base, sides, t.base.weightOf(base, baseSquares),
		t.sides.weightOf(sides, squares))
}

// test sets the interval of each row's change and, where a side has several profiles, its p. n
// and m are the numbers of profiles.
func (d *Diff) test(tests []twoSides, n, m int, opts *Options) {
	if !d.Tested {
		for i := range d.Rows {
			r, t := &d.Rows[i], &tests[i]
			v := r.Value()
			r.Interval = changeInterval(v, v.Base*t.baseWeight, v.New*t.weight, math.Inf(1))
		}
		return
	}
	p, variances, freedom := pValues(tests, n, m)
	for i, corrected := range holm(p) {
		r := &d.Rows[i]
		r.P, r.Significant = &corrected, corrected < opts.Alpha
		r.Interval = changeInterval(r.Value(), variances[i]/float64(n), variances[i]/float64(m),
			freedom)
	}
}

func newPair(base, sides []float64) Pair {
	p := Pair{Base: median(base), New: median(sides), BaseSpread: spread(base),
		NewSpread: spread(sides)}
	p.Delta = p.New - p.Base
	if p.Base > 0 {
		change := p.Delta / p.Base
		p.Change = &change
	}
	return p
}

// sort orders the rows by the size of their change and cuts their list.
func (d *Diff) sort(opts *Options) {
	slices.SortStableFunc(d.Rows, compareRows)
	if opts.Limit > 0 && len(d.Rows) > opts.Limit {
		d.Left = len(d.Rows) - opts.Limit
		d.Rows = d.Rows[:opts.Limit]
	}
}

func compareRows(a, b Row) int {
	x, y := a.Value(), b.Value()
	return cmp.Or(cmp.Compare(math.Abs(y.Delta), math.Abs(x.Delta)),
		cmp.Compare(y.New, x.New), cmp.Compare(math.Abs(b.Cum.Delta), math.Abs(a.Cum.Delta)),
		strings.Compare(a.Name, b.Name), strings.Compare(a.SystemName, b.SystemName),
		strings.Compare(a.Object, b.Object))
}

// Unmatched returns the names of the filters that match nothing on either side.
func (d *Diff) Unmatched() []string { return d.unmatched }
