package symtab

import (
	"cmp"
	"slices"
	"sort"

	"symbolize/ingest/addr"
)

// segmentBuilder computes the segments of a function: for each address the innermost inlined
// call that covers it, and its line. Its memory is reused for all functions.
type segmentBuilder struct {
	ranges []addr.Range // of the function, then of its calls, each clipped to its parent's
	ends   []int32      // where the ranges of the function (0) and of call i (i+1) end
	own    []addr.Range
	depth  []int32 // of call i, from 1
	open   []int32 // calls that are open, outermost first
	todo   []interval
	heap   []interval // the active ones, the visible one on top
	shown  []interval // the visible ones, in order, of all ranges
	segs   []flatSegment
	used   []int32 // calls visible in one range, and their callers
	number []int32 // of a used call in its range; -1
	left   int     // budget of clip
}

// A call that spans many ranges of its caller is split into as many. Real ones are split
// into a few more ranges than they have.
const (
	clipBudgetFactor = 16
	clipBudgetFloor  = 1 << 16
)

// interval is a range of a call. The depth and number of the call are its precedence: the deepest
// is visible, of equally deep ones the last.
type interval struct {
	start, end uint64
	prec       uint64 // depth << 32 | 1 + number of the call; 0 for the function
}

func (v *interval) call() int32 { return int32(uint32(v.prec)) - 1 }

// flatSegment is a range in which call, file, line, and column are the same.
type flatSegment struct {
	start, end   uint64
	call         int32 // -1: none
	file         FileRef
	line, column uint32
}

// start begins a function and reports whether it has any code.
func (p *segmentBuilder) start(ranges []addr.Range) bool {
	p.ranges = addr.AppendUnion(p.ranges[:0], ranges)
	p.ends = append(p.ends[:0], int32(len(p.ranges)))
	p.depth, p.open = p.depth[:0], p.open[:0]
	return len(p.ranges) > 0
}

// numRanges returns the number of ranges of the function.
func (p *segmentBuilder) numRanges() int { return int(p.ends[0]) }

// rangesOf returns the ranges of call i, or of the function for -1.
func (p *segmentBuilder) rangesOf(i int32) []addr.Range {
	from := int32(0)
	if i >= 0 {
		from = p.ends[i]
	}
	return p.ranges[from:p.ends[i+1]]
}

// calls clips the calls and computes their visible intervals: none if they are split into
// too many pieces.
func (p *segmentBuilder) calls(calls []Inline, lost *Losses) (whole bool) {
	p.todo = p.todo[:0]
	for _, r := range p.rangesOf(NoParent) {
		p.todo = append(p.todo, interval{uint64(r.Start), uint64(r.End), 0})
	}
	own := len(p.todo)
	p.left = clipBudgetFloor + clipBudgetFactor*(own+len(calls))
	for i := range calls {
		p.left += clipBudgetFactor * len(calls[i].Ranges)
	}
	for i := range calls {
		c := &calls[i]
		depth := int32(1)
		if p.closeUntil(c.Parent) {
			depth = int32(len(p.open)) + 1
			if depth <= MaxDepth {
				if p.clip(c.Ranges, p.rangesOf(c.Parent)) {
					lost.Outside++
				}
				p.open = append(p.open, int32(i))
			} else {
				lost.Disorder++
			}
		} else {
			lost.Disorder++
		}
		from := p.ends[len(p.ends)-1]
		p.ends = append(p.ends, int32(len(p.ranges)))
		p.depth = append(p.depth, depth)
		for _, r := range p.ranges[from:] {
			prec := uint64(depth)<<32 | uint64(i+1)
			p.todo = append(p.todo, interval{uint64(r.Start), uint64(r.End), prec})
		}
	}
	if whole = p.left >= 0; !whole {
		p.todo = p.todo[:own]
		lost.Large++
	}
	p.sweep()
	return whole
}

// closeUntil closes the calls that are open up to parent, and reports whether it is among them.
func (p *segmentBuilder) closeUntil(parent int32) bool {
	if parent == NoParent {
		p.open = p.open[:0]
		return true
	}
	for n := len(p.open); n > 0; n-- {
		if p.open[n-1] == parent {
			p.open = p.open[:n]
			return true
		}
	}
	return false
}

// clip appends the parts of ranges within outer, and reports whether any part is
// outside.
func (p *segmentBuilder) clip(ranges, outer []addr.Range) (lost bool) {
	p.own = addr.AppendUnion(p.own[:0], ranges)
	if len(p.own) == 0 {
		return false
	}
	left := uint64(0)
	first := p.own[0].Start
	k := sort.Search(len(outer), func(k int) bool { return outer[k].End > first })
	for _, r := range p.own {
		left += uint64(r.End - r.Start)
		for k < len(outer) && outer[k].End <= r.Start {
			k++
		}
		for j := k; j < len(outer) && outer[j].Start < r.End && p.left >= 0; j++ {
			p.left--
			in := addr.Range{Start: max(r.Start, outer[j].Start), End: min(r.End, outer[j].End)}
			left -= uint64(in.End - in.Start)
			p.ranges = append(p.ranges, in)
		}
	}
	return left > 0
}

// sweep walks the intervals by address and records the visible ones.
func (p *segmentBuilder) sweep() {
	slices.SortFunc(p.todo, func(a, b interval) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.prec, b.prec))
	})
	p.heap, p.shown = p.heap[:0], p.shown[:0]
	at := uint64(0)
	for i := 0; ; {
		for len(p.heap) > 0 && p.heap[0].end <= at {
			p.pop()
		}
		if len(p.heap) == 0 {
			if i == len(p.todo) {
				return
			}
			at = p.todo[i].start
		}
		for i < len(p.todo) && p.todo[i].start <= at {
			p.push(p.todo[i])
			i++
		}
		top := p.heap[0]
		limit := top.end
		if i < len(p.todo) {
			limit = min(limit, p.todo[i].start)
		}
		p.show(at, limit, top.prec)
		at = limit
	}
}

func (p *segmentBuilder) show(start, end, prec uint64) {
	if n := len(p.shown); n > 0 && p.shown[n-1].end == start && p.shown[n-1].prec == prec {
		p.shown[n-1].end = end
		return
	}
	p.shown = append(p.shown, interval{start, end, prec})
}

// push and pop keep the heap ordered by prec, the greatest on top.
func (p *segmentBuilder) push(v interval) {
	h := append(p.heap, v)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2].prec < v.prec {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = v
	p.heap = h
}

func (p *segmentBuilder) pop() {
	n := len(p.heap) - 1
	v := p.heap[n]
	h := p.heap[:n]
	p.heap = h
	if n == 0 {
		return
	}
	i := 0
	for {
		k := 2*i + 1
		if k+1 < n && h[k+1].prec > h[k].prec {
			k++
		}
		if k >= n || h[k].prec <= v.prec {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = v
}

// segments divides the visible intervals at the lines, which are sorted.
func (p *segmentBuilder) segments(lines []Line, columns bool) {
	p.segs = p.segs[:0]
	k := 0 // lines[:k] begin at or before the present address
	for _, v := range p.shown {
		if k < len(lines) && uint64(lines[k].Addr) < v.start {
			k += sort.Search(len(lines)-k, func(i int) bool {
				return uint64(lines[k+i].Addr) >= v.start
			})
		}
		for at := v.start; at < v.end; {
			for k < len(lines) && uint64(lines[k].Addr) <= at {
				k++
			}
			s := flatSegment{start: at, end: v.end, call: v.call()}
			if k < len(lines) {
				s.end = min(v.end, uint64(lines[k].Addr))
			}
			if k > 0 {
				l := &lines[k-1]
				s.file, s.line = l.File, l.Line
				if columns {
					s.column = l.Column
				}
			}
			p.addSegment(s)
			at = s.end
		}
	}
}

func (p *segmentBuilder) addSegment(s flatSegment) {
	if n := len(p.segs); n > 0 {
		last := &p.segs[n-1]
		if last.end == s.start && last.call == s.call && last.file == s.file &&
			last.line == s.line && last.column == s.column {
			last.end = s.end
			return
		}
	}
	p.segs = append(p.segs, s)
}

// visible collects the calls of segs, with their callers, in order, and numbers them from 0. clear
// must be called when the numbers have been used.
func (p *segmentBuilder) visible(segs []flatSegment, calls []Inline) {
	p.used = p.used[:0]
	for len(p.number) < len(calls) {
		p.number = append(p.number, -1)
	}
	for i := range segs {
		for c := segs[i].call; c >= 0 && p.number[c] < 0; c = calls[c].Parent {
			p.number[c] = 0
			p.used = append(p.used, c)
		}
	}
	slices.Sort(p.used)
	for n, c := range p.used {
		p.number[c] = int32(n)
	}
}

func (p *segmentBuilder) clear() {
	for _, c := range p.used {
		p.number[c] = -1
	}
}
