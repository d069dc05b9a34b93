package btf

import (
	"fmt"
	"strconv"
)

// definition prints a structure, union or enumeration with its content. bits is its offset in the
// enclosing structure.
func (p *cPrinter) definition(id ID, level int, bits uint64) {
	if p.depth++; p.depth > maxNesting {
		p.fail(errNested)
	}
	if p.err == nil {
		p.add(p.tag(id) + " {")
		switch p.t.Kind(id) {
		case KindStruct, KindUnion:
			p.body(id, level, bits)
		default:
			p.enumerators(id, level)
		}
	}
	p.depth--
}

// holes counts the members and holes of a structure.
type holes struct {
	members, bytes, bits int // holes of whole bytes, and of bits
	bytesSum, bitsSum    uint64
}

// body prints the members, and the comment on the whole structure.
func (p *cPrinter) body(id ID, level int, bits uint64) {
	size, _ := p.t.Size(id)
	union := p.t.Kind(id) == KindUnion
	packed := p.layouts.of(id).packed
	c := cursor{layouts: &p.layouts, packed: packed}
	var h holes
	for _, m := range p.t.Members(id) {
		if p.err != nil {
			return
		}
		h.members++
		if union {
			c.at = 0
		}
		p.hole(&c, m, level+1, &h)
		p.boundary(bits+uint64(m.BitOffset), level+1)
		p.line(level + 1)
		start := len(p.b)
		p.declare(m.Type, p.local(m.Name), level+1, bits+uint64(m.BitOffset))
		if m.BitSize > 0 {
			p.add(": " + strconv.Itoa(int(m.BitSize)))
		}
		p.add(";")
		own, _ := p.t.Size(m.Type)
		p.place(start, level+1, bits+uint64(m.BitOffset), m.BitSize, own)
		c.take(m)
	}
	if union {
		c.at = 8 * p.t.longest(id)
	}
	tail := p.tail(&c, id, size, level+1)
	p.total(size, &h, tail, level+1)
	p.line(level)
	p.add("}")
	if packed {
		p.add(" __attribute__((packed))")
	}
}

// hole pads to a member where the compiler would not, and comments on all free bits before it.
func (p *cPrinter) hole(c *cursor, m Member, level int, h *holes) {
	want := uint64(m.BitOffset)
	if want <= c.at {
		return
	}
	free := want - c.at
	if c.next(m) != want {
		p.pad(c.at, want, level)
	}
	wholeBytes, rest := free/8, free%8
	if wholeBytes > 0 {
		h.bytes, h.bytesSum = h.bytes+1, h.bytesSum+wholeBytes
	}
	if rest > 0 {
		h.bits, h.bitsSum = h.bits+1, h.bitsSum+rest
	}
	if p.plain {
		return
	}
	p.line(level)
	p.note("XXX %s hole", amount(free))
}

// amount formats a number of free bits.
func amount(bits uint64) string {
	count := func(n uint64, unit string) string {
		if n != 1 {
			unit += "s"
		}
		return strconv.FormatUint(n, 10) + " " + unit
	}
	switch {
	case bits%8 == 0:
		return count(bits/8, "byte")
	case bits < 8:
		return count(bits, "bit")
	}
	return count(bits/8, "byte") + " " + count(bits%8, "bit")
}

// maxPads bounds the unnamed bit fields that fill a hole; a longer one is an array.
const maxPads = 16

// pad declares filler for the bits between two offsets. Unnamed bit fields change no alignment,
// and their content is never read.
func (p *cPrinter) pad(from, to uint64, level int) {
	if to-from > maxPads*64 {
		end := to &^ 7
		from = (from + 7) &^ 7
		p.line(level)
		p.add(fmt.Sprintf("unsigned char __hole_at_%d[%d];", from/8, (end-from)/8))
		from = end
	}
	for from < to && p.err == nil {
		word, n := "char", min(8-from%8, to-from)
		for _, w := range []struct {
			name string
			bits uint64
		}{{"long long", 64}, {"int", 32}, {"short", 16}} {
			if from%w.bits == 0 && to-from >= w.bits {
				word, n = w.name, w.bits
				break
			}
		}
		p.line(level)
		p.add(fmt.Sprintf("%s: %d;", word, n))
		from += n
	}
}

// tail pads the end of a structure and returns its free bits.
func (p *cPrinter) tail(c *cursor, id ID, size uint64, level int) uint64 {
	end := 8 * size
	if end <= c.at {
		return 0
	}
	if c.end(p.layouts.align(id)) != end {
		if p.t.Kind(id) == KindUnion {
			p.line(level)
			p.add(fmt.Sprintf("unsigned char __all[%d];", size))
		} else {
			p.pad(c.at, end, level)
		}
	}
	return end - c.at
}

// total prints pahole's summary at the end of a structure.
func (p *cPrinter) total(size uint64, h *holes, tail uint64, level int) {
	if p.plain {
		return
	}
	p.add("\n")
	note := func(format string, args ...any) {
		p.line(level)
		p.note(format, args...)
	}
	lines := ""
	if level == 1 {
		lines = fmt.Sprintf("cachelines: %d, ", (size+cacheLine-1)/cacheLine)
	}
	note("size: %d, %smembers: %d", size, lines, h.members)
	if h.bytes > 0 {
		note("holes: %d, sum holes: %d", h.bytes, h.bytesSum)
	}
	if h.bits > 0 {
		note("bit holes: %d, sum bit holes: %d bits", h.bits, h.bitsSum)
	}
	if tail > 0 {
		note("padding: %s", amount(tail))
	}
	if last := size % cacheLine; last > 0 && level == 1 {
		note("last cacheline: %d bytes", last)
	}
}

// cacheLine is the size of cache lines in bytes, as pahole assumes it.
const cacheLine = 64

// boundary comments on the start of a cache line at or before a member, which starts at an offset of
// the outermost structure.
func (p *cPrinter) boundary(bits uint64, level int) {
	at := bits / 8
	if level == 1 && at < cacheLine {
		p.cacheLine = 0
	}
	n := at / cacheLine
	if p.plain || n <= p.cacheLine {
		return
	}
	p.cacheLine = n
	p.line(level)
	if ago := at % cacheLine; ago > 0 {
		p.note("--- cacheline %d boundary (%d bytes) was %d bytes ago ---", n, n*cacheLine, ago)
	} else {
		p.note("--- cacheline %d boundary (%d bytes) ---", n, n*cacheLine)
	}
}

// placeColumn is the column of comments on offsets, tabs counted as 8.
const placeColumn = 48

// place appends the comment on a member's offset: bytes, of bit fields bytes:bits.
func (p *cPrinter) place(start, level int, bits uint64, bitSize uint8, size uint64) {
	if p.plain {
		return
	}
	width := 8 * level
	for _, c := range p.b[min(start, len(p.b)):] {
		width++
		if c == '\n' {
			width = 0
		} else if c == '\t' {
			width += 7
		}
	}
	p.add(fmt.Sprintf("%*s", max(placeColumn-width, 1), ""))
	if bitSize > 0 {
		p.note("%5d:%2d %3d", bits/8, bits%8, size)
	} else {
		p.note("%5d %6d", bits/8, size)
	}
}
