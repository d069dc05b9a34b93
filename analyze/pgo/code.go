package pgo

import (
	"cmp"
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
)

// A frame is a function on the way from a function with code to an inlined call in it: its name, and
// the place in the function around it where it is called.
type frame struct {
	name string
	// call is the line of the call, counted from the line of the function around it; zero for the
	// outermost.
	call line
}

// line is a line of a function, counted from the line of its declaration, with a discriminator as the
// line table has it.
type line struct {
	offset        uint32
	discriminator uint32
}

// site is a place in the source: the functions around it, outermost first, and its line in the last.
type site struct {
	frames []frame
	line   line
}

// piece is code of one site.
type piece struct {
	addr.Range
	site site
}

// unitCode makes the pieces of the functions of one unit.
type unitCode struct {
	u    *dwarf.Unit
	rows []dwarf.Row // of all sequences, by address
	ends []addr.Addr // of the sequence of each
}

func newUnitCode(u *dwarf.Unit) *unitCode {
	c := &unitCode{u: u}
	for i := range u.Sequences {
		s := &u.Sequences[i]
		for _, r := range s.Rows {
			c.rows, c.ends = append(c.rows, r), append(c.ends, s.End)
		}
	}
	if !slices.IsSortedFunc(c.rows, compareRows) {
		order := make([]int, len(c.rows))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int { return compareRows(c.rows[i], c.rows[j]) })
		rows, ends := make([]dwarf.Row, len(order)), make([]addr.Addr, len(order))
		for n, i := range order {
			rows[n], ends[n] = c.rows[i], c.ends[i]
		}
		c.rows, c.ends = rows, ends
	}
	return c
}

func compareRows(a, b dwarf.Row) int { return cmp.Compare(a.Addr, b.Addr) }

// name is the symbol of a function; "" if it has none, or one that no line of a profile can have, as a
// function of C++ without a linkage name.
func (c *unitCode) name(sub int32) string {
	if sub == dwarf.NoSub {
		return ""
	}
	s := &c.u.Subs[sub]
	name := string(s.Linkage)
	if name == "" {
		name = string(s.Name)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' || r == 0x7f }) {
		return ""
	}
	return name
}

// declared is the line of a function's declaration.
func (c *unitCode) declared(sub int32) uint32 {
	if sub == dwarf.NoSub {
		return 0
	}
	return c.u.Subs[sub].DeclLine
}

// inlineRange is a range of an inlined call.
type inlineRange struct {
	addr.Range
	inline int32
}

// pieces returns the code of a function by site, in order of address. Code without a line is left out.
func (c *unitCode) pieces(f *dwarf.Function) []piece {
	var inlines []inlineRange
	for i := range f.Inlines {
		for _, r := range f.Inlines[i].Ranges {
			inlines = append(inlines, inlineRange{r, int32(i)})
		}
	}
	slices.SortStableFunc(inlines, func(a, b inlineRange) int { return cmp.Compare(a.Start, b.Start) })
	ranges := slices.Clone(f.Ranges)
	slices.SortFunc(ranges, func(a, b addr.Range) int { return cmp.Compare(a.Start, b.Start) })
	var list []piece
	calls := &activeCalls{inlines: inlines}
	for _, r := range ranges {
		list = c.inRange(list, f, r, calls)
	}
	return list
}

// activeCalls are the inlined calls at an address that ascends.
type activeCalls struct {
	inlines []inlineRange // by address
	next    int           // the first that was not reached
	active  []inlineRange
}

// maxActive bounds the inlined calls at one address, which only a damaged file exceeds.
const maxActive = 1 << 10

// at moves to an address.
func (a *activeCalls) at(x addr.Addr) []inlineRange {
	for ; a.next < len(a.inlines) && a.inlines[a.next].Start <= x; a.next++ {
		if len(a.active) < maxActive {
			a.active = append(a.active, a.inlines[a.next])
		}
	}
	a.active = slices.DeleteFunc(a.active, func(in inlineRange) bool { return in.End <= x })
	return a.active
}

// bounds appends where calls begin and end, from the present address to another.
func (a *activeCalls) bounds(list []addr.Addr, end addr.Addr) []addr.Addr {
	for _, in := range a.active {
		list = append(list, in.End)
	}
	for _, in := range a.inlines[a.next:] {
		if in.Start >= end {
			break
		}
		list = append(list, in.Start, in.End)
	}
	return list
}

// inRange appends the pieces of one range of a function.
func (c *unitCode) inRange(list []piece, f *dwarf.Function, r addr.Range, calls *activeCalls) []piece {
	first, _ := slices.BinarySearchFunc(c.rows, r.Start, func(row dwarf.Row, a addr.Addr) int {
		return cmp.Compare(row.Addr, a)
	})
	if first > 0 && (first == len(c.rows) || c.rows[first].Addr > r.Start) {
		first--
	}
	bounds := []addr.Addr{r.Start, r.End}
	for i := first; i < len(c.rows) && c.rows[i].Addr < r.End; i++ {
		bounds = append(bounds, c.rows[i].Addr, c.ends[i])
	}
	calls.at(r.Start)
	bounds = calls.bounds(bounds, r.End)
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	row := first
	for i, at := range bounds[:len(bounds)-1] {
		if at < r.Start || at >= r.End {
			continue
		}
		active := calls.at(at)
		for row+1 < len(c.rows) && c.rows[row+1].Addr <= at {
			row++
		}
		if row >= len(c.rows) || c.rows[row].Addr > at || c.ends[row] <= at || c.rows[row].Line == 0 {
			continue
		}
		s, ok := c.site(f, deepest(f, active), &c.rows[row])
		if ok {
			list = append(list, piece{addr.Range{Start: at, End: min(bounds[i+1], r.End)}, s})
		}
	}
	return list
}

// deepest returns the innermost of inlined calls, −1 without any.
func deepest(f *dwarf.Function, active []inlineRange) int32 {
	best := int32(-1)
	for _, in := range active {
		if best < 0 || f.Inlines[in.inline].Depth > f.Inlines[best].Depth {
			best = in.inline
		}
	}
	return best
}

// site returns the place of a row in an inlined call; false if a function has no name.
func (c *unitCode) site(f *dwarf.Function, inline int32, row *dwarf.Row) (site, bool) {
	var s site
	leaf := f.Sub
	for i := inline; i >= 0; i = f.Inlines[i].Parent {
		in := &f.Inlines[i]
		around := f.Sub
		if in.Parent >= 0 {
			around = f.Inlines[in.Parent].Sub
		}
		if i == inline {
			leaf = in.Sub
		}
		s.frames = append(s.frames, frame{c.name(in.Sub),
			line{in.CallLine - c.declared(around), in.CallDiscriminator}})
	}
	s.frames = append(s.frames, frame{name: c.name(f.Sub)})
	slices.Reverse(s.frames)
	s.line = line{row.Line - c.declared(leaf), row.Discriminator}
	return s, !slices.ContainsFunc(s.frames, func(f frame) bool { return f.name == "" })
}
