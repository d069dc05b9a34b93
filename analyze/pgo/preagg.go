package pgo

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// All makes FormatPreagg have all objects.
const All = -1

// Stats count what a file has, and what was left out.
type Stats struct {
	Samples uint64 // without branch stacks, written
	Traces  uint64 // branches, written
	Others  uint64 // samples and branches of other objects
	// NoAddress counts those with an offset that has no address in the object's file.
	NoAddress uint64
	// NoBranches counts samples without a branch stack in a profile of branches.
	NoBranches uint64
	Bogus      uint64 // impossible code between two branches, in FormatAutoFDO
	NoLine     uint64 // samples and branches without a line or a function, in FormatLLVM and FormatGCOV
	NoSymbol   uint64 // samples and branches outside of functions with a symbol, in FormatFdata
}

// external is an address outside of the written objects, or an unknown one.
var external = place{object: -1}

// trace is a branch and the last instruction before the next one; end is external without that.
type trace struct{ from, to, end place }

// branchCount counts a branch without the end of the code after it, and mispredictions of all.
type branchCount struct{ count, missed uint64 }

// counts are the records of a file.
type counts struct {
	t        *Profile
	object   int // or All
	samples  map[place]uint64
	traces   map[trace]uint64
	branches map[trace]branchCount
	stats    Stats
}

// count reads the counts of one object or of all.
func (t *Profile) count(object int) *counts {
	c := &counts{t: t, object: object, samples: make(map[place]uint64), traces: make(map[trace]uint64),
		branches: make(map[trace]branchCount)}
	var stack []ingest.LocationID
	for s := range t.samples() {
		stack = t.source.Stack(stack[:0], s.Stack)
		part := t.source.Tag(s, ingest.BranchTag)
		switch {
		case part == ingest.BranchTrace && len(stack) == 3:
			c.addBranch(s, stack[2], stack[1], c.place(stack[0]))
		case part == ingest.BranchTaken && len(stack) == 2:
			c.addBranch(s, stack[1], stack[0], external)
		case len(stack) == 0:
			c.stats.Others += s.Count
		default:
			c.addSample(stack[0], s.Count)
		}
	}
	if c.stats.Traces > 0 { // as perf2bolt, which reads either
		c.stats.NoBranches, c.stats.Samples = c.stats.Samples, 0
		clear(c.samples)
	}
	return c
}

// place is the address of a location; external for other objects.
func (c *counts) place(l ingest.LocationID) place {
	if x := c.t.places[l]; x.known && c.includes(x.object) {
		return x
	}
	return external
}

// includes reports whether the file has the counts of an object. Among several it needs a build ID.
func (c *counts) includes(object int) bool {
	if c.object == All {
		return object >= 0 && !c.t.Objects[object].ID.IsZero()
	}
	return object == c.object
}

func (c *counts) addSample(l ingest.LocationID, n uint64) {
	switch x := c.t.places[l]; {
	case !c.includes(x.object):
		c.stats.Others += n
	case !x.known:
		c.stats.NoAddress += n
	default:
		c.stats.Samples += n
		c.samples[x] += n
	}
}

func (c *counts) addBranch(s *ingest.Sample, from, to ingest.LocationID, end place) {
	t := trace{c.place(from), c.place(to), end}
	if t.from == external && t.to == external {
		if places := c.t.places; c.includes(places[from].object) || c.includes(places[to].object) {
			c.stats.NoAddress += s.Count
		} else {
			c.stats.Others += s.Count
		}
		return
	}
	c.stats.Traces += s.Count
	if t.end.object != t.to.object {
		t.end = external // code does not run on in another file
	}
	b := trace{t.from, t.to, external}
	x := c.branches[b]
	if t.end == external {
		x.count += s.Count
	} else {
		c.traces[t] += s.Count
	}
	if c.t.source.Tag(s, ingest.PredictionTag) == ingest.Mispredicted {
		x.missed += s.Count
	}
	if x != (branchCount{}) {
		c.branches[b] = x
	}
}

// preagg writes the pre-aggregated profile of an object, or of All. Lines are sorted by record type and
// address.
func (t *Profile) preagg(w io.Writer, object int) (Stats, error) {
	c := t.count(object)
	if c.stats.Samples+c.stats.Traces == 0 {
		return c.stats, ErrNoCounts
	}
	out := bufio.NewWriter(w)
	if len(c.samples) > 0 {
		fmt.Fprintf(out, "E %s\n", texts.Printable(t.source.Events[t.event].Name))
	}
	for _, x := range sorted(c.samples, comparePlaces) {
		fmt.Fprintf(out, "S %s %d\n", c.text(x), c.samples[x])
	}
	for _, x := range sorted(c.traces, compareTraces) {
		fmt.Fprintf(out, "T %s %s %s %d\n", c.text(x.from), c.text(x.to), c.text(x.end), c.traces[x])
	}
	for _, x := range sorted(c.branches, compareTraces) {
		n := c.branches[x]
		fmt.Fprintf(out, "B %s %s %d %d\n", c.text(x.from), c.text(x.to), n.count, n.missed)
	}
	return c.stats, out.Flush()
}

// text is an address as it is written.
func (c *counts) text(x place) string {
	if x == external {
		return "X:0"
	}
	o := &c.t.Objects[x.object]
	if c.object != All && !o.library || o.ID.IsZero() {
		return fmt.Sprintf("%x", uint64(x.at))
	}
	return fmt.Sprintf("%s:%x", o.ID.Hex(), uint64(x.at))
}

// sorted returns the keys of a map in an order.
func sorted[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(m), compare)
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.at, b.at))
}

func compareTraces(a, b trace) int {
	return cmp.Or(comparePlaces(a.from, b.from), comparePlaces(a.to, b.to), comparePlaces(a.end, b.end))
}
