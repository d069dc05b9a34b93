package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"symbolize/analyze/calltree"
	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// TrendOptions are for NewTrend.
type TrendOptions struct {
	calltree.Options               // of which Event does not count
	Event            string        // of all profiles; "" is the first event of the first profile
	Every            time.Duration // length of a period, which begins at multiples of it in UTC
	Cum              bool          // judge the cumulative value
	MinShare         float64       // leave out rows that have less in all periods, 0 to 1
	Limit            int           // how many changes are printed; 0 for all
	Alpha            float64       // a change with a corrected p-value below it is significant
	// FailAbove is the growth above which a change fails, 0.05 for 5 %; nil judges none.
	FailAbove *float64
}

// Trend is the shares of functions over time, with the changes among them.
type Trend struct {
	Event   string   `json:"event"`
	Unit    string   `json:"unit"`
	By      string   `json:"by"`
	Value   string   `json:"judged"` // "flat" or "cum": the value of the shares
	Filters []string `json:"filters,omitempty"`
	Alpha   float64  `json:"alpha"`
	Periods []Period `json:"periods"`
	// Series are the rows with a share of MinShare in a period, first those with changes.
	Series   []Series `json:"series"`
	MinShare float64  `json:"min_share"`
	Small    int      `json:"rows_below_min_share,omitempty"`
	Fail     *float64 `json:"fail_above,omitempty"`
	// Failed are the changes that grew by more than Fail, and are significant only since the last
	// period is known: a job that runs after each period fails once for each.
	Failed []*Change `json:"failed,omitempty"`

	limit     int
	unmatched []string
}

// Period is a span of time, usually a night, with the profiles that began in it, added up.
type Period struct {
	Start    time.Time `json:"start"`
	Profiles []string  `json:"profiles"`
	Hosts    []string  `json:"hosts,omitempty"` // of the profiles that have one
	Samples  uint64    `json:"samples"`
	Total    uint64    `json:"total"`
}

// Series is a row with its share of each period's total.
type Series struct {
	calltree.Item
	Share []float64 `json:"share"`
	// Noise is the standard deviation of each share that the number of samples alone explains.
	Noise   []float64 `json:"noise"`
	Changes []*Change `json:"changes,omitempty"`

	key, label, suffix string
}

// Change is a change of the level of a Series.
type Change struct {
	Name string `json:"name"`
	// At is the number of the first period of the new level, From and To those of the first period
	// of the level before and of the one after the new level's last.
	At   int `json:"at"`
	From int `json:"from"`
	To   int `json:"to"`
	// Level has the mean shares of both levels.
	Level  Pair    `json:"level"`
	Status string  `json:"status,omitempty"` // "new" or "gone"
	P      float64 `json:"p"`                // corrected for all series and times
	// Interval contains the true change with a probability of 95 %.
	Interval *[2]float64 `json:"change_interval,omitempty"`
	// Recent is set where the change is not significant without the last period.
	Recent bool `json:"recent,omitempty"`
	// Moved has callers, callees, or functions with the same caller that changed at the same time
	// the other way. Rest is the rest of the change, 0 if all of it moved: the cost is the same in
	// another place.
	Moved []string `json:"moved,omitempty"`
	Rest  float64  `json:"rest"`

	series *Series
	since  time.Time
	noise  float64 // the standard error of the difference of the levels
}

// rawSeries is a node of one profile or more, before nodes of different builds are matched.
type rawSeries struct {
	node    calltree.Node
	profile int // the first that has it
	values  []periodValue
}

type periodValue struct {
	period         time.Time
	value, squares float64
}

// rawKey distinguishes nodes that are not one thing, whatever the builds are.
type rawKey struct {
	node calltree.Node
	main bool
}

// TrendBuilder adds up profiles for a Trend, one at a time. It keeps the value of each node in each
// period, and no stacks.
type TrendBuilder struct {
	opts      TrendOptions
	periods   map[time.Time]*Period
	raw       map[rawKey]*rawSeries
	order     []*rawSeries
	profiles  []*ingest.Profile // their objects and main programs
	event     ingest.Event
	unit      string
	filters   []string
	unmatched map[string]int
}

// NewTrend returns a builder without profiles.
func NewTrend(opts TrendOptions) *TrendBuilder {
	if opts.Demangler == nil {
		opts.Demangler = demangle.New(demangle.Simple)
	}
	opts.Squares = true
	return &TrendBuilder{opts: opts, periods: make(map[time.Time]*Period),
		raw: make(map[rawKey]*rawSeries), unmatched: make(map[string]int)}
}

// PeriodOf returns the start of the period of a time.
func (b *TrendBuilder) PeriodOf(t time.Time) time.Time { return t.UTC().Truncate(b.opts.Every) }

// fold folds the event of a profile that the trend is of, and removes the main program of several.
func (b *TrendBuilder) fold(in *Input) (*calltree.Stacks, error) {
	p, o := in.Profile, b.opts.Options
	wanted := cmp.Or(b.event.Name, b.opts.Event)
	if at := ingest.EventNamed(eventNames(p), wanted); at >= 0 {
		wanted = p.Events[at].Name
	}
	if b.event.Name != "" {
		o.Event = ingest.MatchEvent(p.Events, &b.event)
	} else {
		o.Event = slices.IndexFunc(p.Events, func(e ingest.Event) bool { return wanted == "" || e.Name == wanted })
	}
	if o.Event < 0 {
		return nil, &ingest.EventError{Capture: in.Name, Event: wanted, Has: eventNames(p)}
	}
	if b.event.Name == "" {
		b.event = p.Events[o.Event]
	}
	in.Profile = ofOneProgram(p, o.Event)
	return calltree.Fold(p, &o), nil
}

// Add adds a profile that began at a time. One that lacks the event is an error, and is not added.
func (b *TrendBuilder) Add(in Input, began time.Time) error {
	s, err := b.fold(&in)
	if err != nil {
		return err
	}
	start := b.PeriodOf(began)
	period := b.periods[start]
	if period == nil {
		period = &Period{Start: start}
		b.periods[start] = period
	}
	period.Profiles = append(period.Profiles, texts.Printable(in.Name))
	if host := texts.Printable(in.Profile.Meta.Host); host != "" && !slices.Contains(period.Hosts, host) {
		period.Hosts = append(period.Hosts, host)
	}
	period.Samples += s.Samples
	period.Total += s.Total
	b.unit, b.filters = s.Unit, b.opts.Filter.Active()
	for _, name := range s.Unmatched {
		b.unmatched[name]++
	}
	b.addNodes(s, in.Profile, start)
	return nil
}

func (b *TrendBuilder) addNodes(s *calltree.Stacks, p *ingest.Profile, start time.Time) {
	objects := make([]ingest.Object, len(p.Objects))
	for i := range p.Objects {
		objects[i].File = p.Objects[i].File
	}
	b.profiles = append(b.profiles, &ingest.Profile{Meta: p.Meta, Objects: objects})
	values, cum := s.Sums()
	squares, cumSquares := s.Squares()
	if b.opts.Cum {
		values, squares = cum, cumSquares
	}
	main := texts.Printable(p.Meta.MainProgram)
	for n, v := range values {
		if v == 0 {
			continue
		}
		k := rawKey{node: s.Nodes[n], main: s.Nodes[n].Object == main}
		k.node.BuildID = "" // most builds change nothing
		raw := b.raw[k]
		if raw == nil {
			raw = &rawSeries{node: s.Nodes[n], profile: len(b.profiles) - 1}
			b.raw[k] = raw
			b.order = append(b.order, raw)
		}
		raw.values = append(raw.values, periodValue{start, float64(v), squares[n]})
	}
}

// Trend matches the nodes of all profiles and finds the changes. Periods without samples are left
// out; without any, there is nothing to write.
func (b *TrendBuilder) Trend() *Trend {
	t := &Trend{Event: texts.Printable(b.event.Name), Unit: b.unit, By: byText(b.opts.By),
		Value: "flat", Filters: b.filters, Alpha: b.opts.Alpha, MinShare: b.opts.MinShare,
		Fail: b.opts.FailAbove, Series: []Series{}, limit: b.opts.Limit}
	if b.opts.Cum {
		t.Value = "cum"
	}
	for name, n := range b.unmatched {
		if n == len(b.profiles) {
			t.unmatched = append(t.unmatched, name)
		}
	}
	slices.Sort(t.unmatched)
	number := make(map[time.Time]int)
	for _, p := range b.periods {
		if p.Total > 0 { // no samples have no shares
			t.Periods = append(t.Periods, *p)
		}
	}
	if len(t.Periods) == 0 {
		return t
	}
	slices.SortFunc(t.Periods, func(a, b Period) int { return a.Start.Compare(b.Start) })
	for i := range t.Periods {
		slices.Sort(t.Periods[i].Profiles)
		number[t.Periods[i].Start] = i
	}
	nodes, values, squares, keys := b.match(number)
	list := t.addSeries(nodes, values, squares, keys)
	t.addChanges(list, b.opts.Alpha)
	t.sort()
	t.judge()
	return t
}

// match joins the nodes that are the same in different builds: the first one describes them.
func (b *TrendBuilder) match(number map[time.Time]int) (nodes []calltree.Node, values,
	squares [][]float64, keys []string) {
	m := newMatcher(b.profiles)
	index := make(map[string]int)
	for _, raw := range b.order {
		node := raw.node
		key := m.key(raw.profile, &node)
		i, ok := index[key]
		if !ok {
			i = len(nodes)
			index[key] = i
			nodes, keys = append(nodes, node), append(keys, key)
			values = append(values, make([]float64, len(number)))
			squares = append(squares, make([]float64, len(number)))
		}
		for _, v := range raw.values {
			values[i][number[v.period]] += v.value
			squares[i][number[v.period]] += v.squares
		}
	}
	return nodes, values, squares, keys
}

// addSeries makes a series of each node that has enough.
func (t *Trend) addSeries(nodes []calltree.Node, values, squares [][]float64,
	keys []string) (list []*series) {
	full := demangle.New(demangle.Full)
	var shown []calltree.NodeID
	for n := range nodes {
		s := t.shares(values[n], squares[n])
		if slices.Max(s.share) < t.MinShare || slices.Max(s.share) == 0 {
			t.Small++
			continue
		}
		noise := make([]float64, len(s.chance))
		for i, c := range s.chance {
			noise[i] = math.Sqrt(c)
		}
		shown = append(shown, calltree.NodeID(n))
		list = append(list, s)
		t.Series = append(t.Series, Series{Item: calltree.NewItem(&nodes[n], full), Share: s.share,
			Noise: noise, key: keys[n], suffix: calltree.ObjectSuffix(&nodes[n])})
	}
	labels := calltree.LookAlikes(nodes, shown, full)
	for i, n := range shown {
		t.Series[i].label = cmp.Or(labels[n], t.Series[i].Name)
	}
	return list
}

// shares divides values by the totals of their periods. The variance of sampling is that of the
// mean share: of a share without samples it would be nothing.
func (t *Trend) shares(values, squares []float64) *series {
	s := &series{share: make([]float64, len(values)), chance: make([]float64, len(values))}
	sum, total := 0.0, 0.0
	for i := range values {
		sum += values[i]
		total += float64(t.Periods[i].Total)
	}
	level := sum / max(1, total)
	for i, v := range values {
		p := &t.Periods[i]
		sample := 1 / float64(max(1, p.Samples)) // share of one
		if v > 0 {
			sample = squares[i] / v / float64(p.Total)
		}
		s.share[i], s.chance[i] = v/float64(p.Total), level*sample
	}
	return s
}

// addChanges finds the changes, and which of them the last period brought.
func (t *Trend) addChanges(list []*series, alpha float64) {
	findChanges(list, alpha)
	known := make([]*series, len(list))
	for i, s := range list {
		n := len(s.share) - 1
		known[i] = &series{share: s.share[:n], chance: s.chance[:n]}
	}
	findChanges(known, alpha)
	for i, s := range list {
		for k := range s.changes {
			c := t.change(&t.Series[i], s, k)
			c.Recent = !slices.ContainsFunc(known[i].changes, func(f change) bool {
				return max(f.at-c.At, c.At-f.at) <= leastPeriods
			})
			t.Series[i].Changes = append(t.Series[i].Changes, c)
		}
	}
}

func (t *Trend) change(of *Series, s *series, k int) *Change {
	at := s.changes[k].at
	from, _ := s.level(k)
	_, to := s.level(k + 1)
	before, w := s.mean(from, at)
	after, v := s.mean(at, to)
	c := &Change{Name: of.label, At: at, From: from, To: to, P: s.changes[k].p, series: of,
		Level: newPair([]float64{before}, []float64{after}), since: t.Periods[at].Start,
		noise: math.Sqrt(s.scale * (1/w + 1/v))}
	c.Rest = c.Level.Delta
	c.Interval = changeInterval(&c.Level, s.scale/w, s.scale/v, math.Inf(1))
	switch {
	case slices.Max(of.Share[from:at]) == 0:
		c.Status = StatusNew
	case slices.Max(of.Share[at:to]) == 0:
		c.Status = StatusGone
	}
	return c
}

// judge lists the changes that fail.
func (t *Trend) judge() {
	t.Failed = nil
	if t.Fail == nil {
		return
	}
	for _, c := range t.Changes() {
		if !c.Recent || c.Rest <= 0 || c.Level.Base > 0 && c.Rest/c.Level.Base <= *t.Fail {
			continue
		}
		t.Failed = append(t.Failed, c)
	}
}

// Changes returns the changes of all series, the largest first; those that only moved a cost are
// the last.
func (t *Trend) Changes() (list []*Change) {
	for i := range t.Series {
		list = append(list, t.Series[i].Changes...)
	}
	slices.SortStableFunc(list, func(a, b *Change) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Rest), math.Abs(a.Rest)),
			cmp.Compare(math.Abs(b.Level.Delta), math.Abs(a.Level.Delta)), cmp.Compare(a.At, b.At))
	})
	return list
}

// sort orders the series: by their largest change that moved nowhere, by their largest change, then
// by their largest share.
func (t *Trend) sort() {
	largest := func(s *Series, of func(*Change) float64) (most float64) {
		for _, c := range s.Changes {
			most = max(most, math.Abs(of(c)))
		}
		return most
	}
	rest := func(c *Change) float64 { return c.Rest }
	delta := func(c *Change) float64 { return c.Level.Delta }
	slices.SortStableFunc(t.Series, func(a, b Series) int {
		return cmp.Or(cmp.Compare(largest(&b, rest), largest(&a, rest)),
			cmp.Compare(largest(&b, delta), largest(&a, delta)),
			cmp.Compare(slices.Max(b.Share), slices.Max(a.Share)), strings.Compare(a.Name, b.Name),
			strings.Compare(a.SystemName, b.SystemName), strings.Compare(a.Object, b.Object))
	})
	for i := range t.Series {
		for _, c := range t.Series[i].Changes {
			c.series = &t.Series[i]
		}
	}
}

// Unmatched returns the names of the filters that match nothing in any profile.
func (t *Trend) Unmatched() []string { return t.unmatched }

// FailedText describes a change that failed: "2026-11-03/web.pb.gz (host vm): f grew by 12.00% (95% interval 8.02% to 16.13%),
// from 1.00% to 1.12% of the total, since 2026-11-02".
func (t *Trend) FailedText(c *Change) string {
	since := " of the total, since " + t.PeriodText(c.At)
	last := &t.Periods[len(t.Periods)-1]
	in := inFile(last.Profiles[len(last.Profiles)-1], strings.Join(last.Hosts, ", "))
	if c.Status == StatusNew {
		return fmt.Sprintf("%s%s is new, with %s%s", in, c.Name, percent(c.Level.New), since)
	}
	return fmt.Sprintf("%s%s grew by %.2f%%%s, from %s to %s%s", in, c.Name, 100**c.Level.Change,
		intervalText(c.Interval),
		percent(c.Level.Base), percent(c.Level.New), since)
}

func percent(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) }
