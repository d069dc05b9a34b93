package symtab

import (
	"encoding/binary"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// A body holds the calls and segments of a function's range, in a compact form of LEB128
// numbers that lives as long as its Builder:
//
//	SubRef | calls | segments |
//	per call:    depth | SubRef | call FileRef | call line | call column
//	per segment: length | 1 + call or 0 | FileRef | line | column

// bodyNumbers is the count of numbers of a call or a segment, each at least a byte.
const bodyNumbers = 5

// flatCall is a call in a body.
type flatCall struct {
	parent       int32 // -1: none
	depth        int32 // from 1
	sub          SubRef
	file         FileRef
	line, column uint32
}

// flatBody is an unpacked body.
type flatBody struct {
	sub   SubRef
	calls []flatCall
	segs  []flatSegment
	open  []int32
	keep  []int32 // of clip
}

// keep packs the segmentBuilder's result for a range.
func (d *debugInfo) keep(f *DebugFunc, r addr.Range) bodyRef {
	p := &d.segs
	segs := p.segmentsIn(r)
	p.visible(segs, f.Inlines)
	defer p.clear()
	used := p.used
	if len(used) > MaxScopes || len(segs) > MaxSegments {
		d.losses.Large++
		used, segs = nil, nil
	}
	b := d.body[:0]
	for _, v := range [...]uint64{uint64(f.Sub), uint64(len(used)), uint64(len(segs))} {
		b = binary.AppendUvarint(b, v)
	}
	for _, i := range used {
		c := &f.Inlines[i]
		b = binary.AppendUvarint(b, uint64(p.depth[i]))
		b = binary.AppendUvarint(b, uint64(c.Sub))
		b = binary.AppendUvarint(b, uint64(c.CallFile))
		b = binary.AppendUvarint(b, uint64(c.CallLine))
		column := c.CallColumn
		if !d.columns {
			column = 0
		}
		b = binary.AppendUvarint(b, uint64(column))
	}
	for i := range segs {
		s := &segs[i]
		call := uint64(0)
		if s.call >= 0 {
			call = 1 + uint64(p.number[s.call])
		}
		b = binary.AppendUvarint(b, s.end-s.start)
		b = binary.AppendUvarint(b, call)
		b = binary.AppendUvarint(b, uint64(s.file))
		b = binary.AppendUvarint(b, uint64(s.line))
		b = binary.AppendUvarint(b, uint64(s.column))
	}
	d.body = b
	return d.store(b)
}

// store copies a body to permanent memory.
func (d *debugInfo) store(b []byte) bodyRef {
	n := len(d.blocks)
	if n == 0 || cap(d.blocks[n-1])-len(d.blocks[n-1]) < len(b) {
		size := min(firstBodyBlock<<(2*min(n, 8)), bodyBlock)
		d.blocks = append(d.blocks, make([]byte, 0, max(size, len(b))))
		n++
	}
	block := &d.blocks[n-1]
	at := len(*block)
	*block = append(*block, b...)
	return bodyRef(1 + (uint64(n-1)<<32 | uint64(at)))
}

// segmentsIn returns the computed segments of a range of the function.
func (p *segmentBuilder) segmentsIn(r addr.Range) []flatSegment {
	lo, hi := 0, len(p.segs)
	if p.numRanges() > 1 {
		at := func(a addr.Addr) int {
			return sort.Search(len(p.segs), func(i int) bool { return p.segs[i].start >= uint64(a) })
		}
		lo, hi = at(r.Start), at(r.End)
	}
	return p.segs[lo:hi]
}

// unpack decodes the body of a candidate. One without a body has one segment with nothing
// known.
//
// cost is the number of bytes of the body. most bounds it: of a larger one only the function is
// decoded.
func (d *debugInfo) unpack(c *candidate, f *flatBody, most int64) (cost int64, whole bool) {
	f.sub, f.calls, f.segs, f.open = 0, f.calls[:0], f.segs[:0], f.open[:0]
	whole = true
	if c.body != 0 {
		at := uint64(c.body - 1)
		cost, whole = f.decode(d.blocks[at>>32][uint32(at):], c.start, most)
	}
	if len(f.segs) == 0 {
		f.segs = append(f.segs, flatSegment{start: c.start, end: c.end, call: -1})
	}
	return cost, whole
}

func (f *flatBody) decode(b []byte, at uint64, most int64) (cost int64, whole bool) {
	all := len(b)
	next := func() uint64 {
		v, _ := decode.CutUvarint(&b)
		return v
	}
	f.sub = SubRef(next())
	calls, segs := next(), next()
	if bodyNumbers*int64(calls+segs) > most {
		return 0, false
	}
	for i := range calls {
		c := flatCall{
			parent: -1, depth: int32(next()), sub: SubRef(next()), file: FileRef(next()),
			line: uint32(next()), column: uint32(next()),
		}
		f.open = append(f.open[:c.depth-1], int32(i))
		if c.depth > 1 {
			c.parent = f.open[c.depth-2]
		}
		f.calls = append(f.calls, c)
	}
	for range segs {
		s := flatSegment{start: at, end: at + next()}
		s.call = int32(next()) - 1
		s.file, s.line, s.column = FileRef(next()), uint32(next()), uint32(next())
		f.segs = append(f.segs, s)
		at = s.end
	}
	return int64(all - len(b)), true
}

// clip keeps the part of a body within a piece of its function: segments within it, and their
// calls.
func (f *flatBody) clip(start, end uint64) {
	segs := f.segs[:0]
	for _, s := range f.segs {
		s.start, s.end = max(s.start, start), min(s.end, end)
		if s.start < s.end {
			segs = append(segs, s)
		}
	}
	f.segs = segs
	keep := append(f.keep[:0], make([]int32, len(f.calls))...)
	for i := range segs {
		for c := segs[i].call; c >= 0 && keep[c] == 0; c = f.calls[c].parent {
			keep[c] = 1
		}
	}
	n := int32(0)
	for i := range f.calls {
		if keep[i] == 0 {
			continue
		}
		c := f.calls[i]
		if c.parent >= 0 {
			c.parent = keep[c.parent]
		}
		f.calls[n] = c
		keep[i] = n
		n++
	}
	f.calls = f.calls[:n]
	for i := range segs {
		if c := segs[i].call; c >= 0 {
			segs[i].call = keep[c]
		}
	}
	f.keep = keep
}
