package diff

import (
	"cmp"
	"math"
	"slices"

	"symbolize/analyze/calltree"
	"symbolize/ingest"
)

// mostMoments bounds the times of changes at which calls are read again.
const mostMoments = 20

// relations are the calls among functions with changes, by the keys of their series.
type relations struct {
	calls  map[[2]string]bool
	caller map[string]string // the caller with the most of a function
}

// Relate finds the changes that are a cost which moved: the function was renamed, split, inlined,
// or another one does its work now. Such functions change at the same time in opposite ways, and
// one calls the other, or they have the same caller; sums of cumulative values have calls in
// common, so that of them only the caller counts. load returns the profiles of a period again, of
// which the two beside each change are read.
func (b *TrendBuilder) Relate(t *Trend, load func(*Period) ([]Input, error)) error {
	m := newMatcher(b.profiles)
	moments := t.moments()
	for _, at := range moments {
		r := &relations{calls: make(map[[2]string]bool), caller: make(map[string]string)}
		for _, period := range []int{at - 1, at} {
			profiles, err := load(&t.Periods[period])
			if err != nil {
				return err
			}
			for _, in := range profiles {
				if err := b.readCalls(r, t, m, in); err != nil {
					return err
				}
			}
		}
		t.relateAt(at, r, b.opts.Cum)
	}
	t.sort()
	t.judge()
	return nil
}

// moments are the periods with changes in both directions, the last ones.
func (t *Trend) moments() (list []int) {
	grew, fell := make(map[int]bool), make(map[int]bool)
	for _, c := range t.Changes() {
		for at := c.At - 1; at <= c.At+1; at++ {
			grew[at] = grew[at] || c.Level.Delta > 0
			fell[at] = fell[at] || c.Level.Delta < 0
		}
	}
	for _, c := range t.Changes() {
		if grew[c.At] && fell[c.At] && !slices.Contains(list, c.At) {
			list = append(list, c.At)
		}
	}
	slices.Sort(list)
	return list[max(0, len(list)-mostMoments):]
}

// readCalls adds the calls of a profile from and to the functions that have changes.
func (b *TrendBuilder) readCalls(r *relations, t *Trend, m *matcher, in Input) error {
	s, err := b.fold(&in)
	if err != nil {
		return err
	}
	changed := make(map[string]bool)
	for i := range t.Series {
		changed[t.Series[i].key] = len(t.Series[i].Changes) > 0
	}
	profile := slices.IndexFunc(b.profiles, func(p *ingest.Profile) bool {
		return p.Meta.MainProgram == in.Profile.Meta.MainProgram
	})
	key := func(n calltree.Node) string { return m.key(max(0, profile), &n) }
	for _, n := range s.Peek(func(n *calltree.Node) bool { return changed[key(*n)] }) {
		own := key(s.Nodes[n.Node])
		for _, c := range n.Callers {
			r.calls[[2]string{key(s.Nodes[c.Node]), own}] = true
		}
		if len(n.Callers) > 0 && r.caller[own] == "" {
			r.caller[own] = key(s.Nodes[n.Callers[0].Node])
		}
	}
	return nil
}

// relateAt joins the changes at a period that belong together, the largest growth first.
func (t *Trend) relateAt(at int, r *relations, cum bool) {
	var grown, fallen []*Change
	for _, c := range t.Changes() {
		switch {
		case max(c.At-at, at-c.At) > 1:
		case c.Level.Delta > 0:
			grown = append(grown, c)
		default:
			fallen = append(fallen, c)
		}
	}
	for _, g := range grown {
		if g.At != at || len(g.Moved) > 0 {
			continue
		}
		slices.SortStableFunc(fallen, func(a, b *Change) int {
			return cmp.Compare(math.Abs(g.Rest+a.Rest), math.Abs(g.Rest+b.Rest))
		})
		for _, f := range fallen {
			if g.Rest > 0 && f.Rest < 0 && r.related(g.series.key, f.series.key, cum) {
				move(g, f)
			}
		}
	}
}

func (r *relations) related(a, b string, cum bool) bool {
	if !cum && (r.calls[[2]string{a, b}] || r.calls[[2]string{b, a}]) {
		return true
	}
	caller := r.caller[a]
	return caller != "" && caller == r.caller[b]
}

// sameShare is how much of the larger of two changes may remain for the smaller one to be its other
// half.
const sameShare = 0.25

// move subtracts the cost that moved from one change to the other from both. A rest that is smaller
// than chance explains, or a quarter, is 0.
func move(g, f *Change) {
	moved := min(g.Rest, -f.Rest)
	if -f.Rest-moved <= sameShare*-f.Rest || g.Rest-moved <= sameShare*g.Rest {
		g.Moved, f.Moved = append(g.Moved, f.Name), append(f.Moved, g.Name)
		noise := 2 * math.Hypot(g.noise, f.noise)
		for _, c := range []*Change{g, f} {
			rest := math.Abs(c.Rest) - moved
			if rest <= max(noise, sameShare*math.Abs(c.Rest)) {
				rest = 0
			}
			c.Rest = math.Copysign(rest, c.Rest)
		}
	}
}
