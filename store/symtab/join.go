package symtab

import (
	"cmp"
	"fmt"
	"slices"

	"symbolize/ingest/addr"
)

// Join looks up addrs, which must be sorted, and sets hits[i] for addrs[i]; hits must have the same
// length. Each chunk with an address is read once, in order. A chunk that cannot be read leaves its
// addresses without hits; the others are looked up and the first error is returned. Lines without a
// function are no hits.
func (t *Table) Join(addrs []addr.Addr, hits []Hit) error {
	if len(hits) != len(addrs) {
		return fmt.Errorf("symtab: %d addresses, %d hits", len(addrs), len(hits))
	}
	clear(hits)
	return t.each(addrs, func(chunk, lo, hi int) error {
		return t.joinChunk(chunk, addrs[lo:hi], hits[lo:hi])
	})
}

// each calls do for each chunk with some of the sorted addrs, and their range addrs[lo:hi]. The
// next chunk is unpacked meanwhile. each continues after errors and returns the first.
func (t *Table) each(addrs []addr.Addr, do func(chunk, lo, hi int) error) error {
	var first error
	chunk, lo, hi := t.span(addrs, 0, 0)
	for lo < hi {
		next, nextLo, nextHi := t.span(addrs, chunk, hi)
		if nextLo < nextHi {
			err := t.prepare(chunk)
			t.ahead.start(t, next)
			if err != nil {
				first = cmp.Or(first, err)
				chunk, lo, hi = next, nextLo, nextHi
				continue
			}
		}
		first = cmp.Or(first, do(chunk, lo, hi))
		chunk, lo, hi = next, nextLo, nextHi
	}
	return first
}

// span finds the first chunk from i on with some of addrs[lo:].
func (t *Table) span(addrs []addr.Addr, i, lo int) (chunk, from, to int) {
	for lo < len(addrs) {
		i = t.seek(i, uint64(addrs[lo]))
		if i == len(t.h.chunks) {
			break
		}
		e := &t.h.chunks[i]
		lo += countBelow(addrs[lo:], e.start)
		if n := countBelow(addrs[lo:], e.start+e.span); n > 0 {
			return i, lo, lo + n
		}
	}
	return i, lo, lo
}

// seek returns the first chunk from i on that ends after a.
func (t *Table) seek(i int, a uint64) int {
	n, _ := slices.BinarySearchFunc(t.h.chunks[i:], a, func(c chunkEntry, a uint64) int {
		if c.start+c.span > a {
			return 1
		}
		return -1
	})
	return i + n
}

// countBelow returns the number of sorted addrs below limit.
func countBelow(addrs []addr.Addr, limit uint64) int {
	n, _ := slices.BinarySearch(addrs, addr.Addr(limit))
	return n
}

// joinChunk looks up the addresses in one chunk.
func (t *Table) joinChunk(i int, addrs []addr.Addr, hits []Hit) error {
	if err := t.openChunk(i, nil); err != nil {
		return err
	}
	c := &t.cur
	for k := 0; k < len(addrs); {
		if !c.next() {
			return c.close()
		}
		if uint64(addrs[k]) >= c.end {
			continue
		}
		for k < len(addrs) && uint64(addrs[k]) < c.start {
			k++
		}
		for k < len(addrs) && uint64(addrs[k]) < c.end {
			if c.flags&Nameless == 0 {
				hits[k] = c.hit()
			}
			k++
		}
	}
	return nil
}

// hit returns the Hit of an address in the current range.
func (c *chunkCursor) hit() Hit {
	return Hit{
		Start: addr.Addr(c.funcStart), Size: c.funcSize, Func: c.number,
		Name: NameID(c.name), Flags: c.flags, OK: true,
	}
}

// Frame is one activation at an address: an inlined call, or the physical function.
type Frame struct {
	Name NameID // NoName if it has none
	File FileID // of the code, or of the call in it; NoFile if unknown
	Line uint32 // 0: no line, or unknown

	Column   uint32 // 0: unknown; see Options.Columns
	DeclFile FileID // where the function is declared; NoFile if unknown
	DeclLine uint32 // the line on which it starts; 0 if unknown
}

// JoinFrames looks up addrs, which must be sorted, and calls visit for each one in the table, in
// order: with its index in addrs, the physical function, and the frames, innermost first, the last
// one being the function's own. For lines without a function hit has the flag Nameless and the one
// frame no name. A table without debug information has one frame without file and line. frames is
// valid until visit returns; it may be changed. Each chunk with an address is read once, in order.
// A chunk that cannot be read leaves out its addresses; the others are visited and the first error
// is returned.
func (t *Table) JoinFrames(addrs []addr.Addr, visit func(i int, hit Hit, frames []Frame)) error {
	return t.each(addrs, func(chunk, lo, hi int) error {
		return t.framesInChunk(chunk, addrs[lo:hi], lo, visit)
	})
}

// framesInChunk visits the addresses in one chunk; base is the caller's index of the first.
func (t *Table) framesInChunk(i int, addrs []addr.Addr, base int,
	visit func(int, Hit, []Frame)) error {
	if err := t.openChunk(i, t.debugCursor()); err != nil {
		return err
	}
	c := &t.cur
	for k := 0; k < len(addrs); {
		if !c.next() {
			return c.close()
		}
		for k < len(addrs) && uint64(addrs[k]) < c.start {
			k++
		}
		n := k
		for n < len(addrs) && uint64(addrs[n]) < c.end {
			n++
		}
		switch {
		case !t.h.debug:
			for ; k < n; k++ {
				t.frames = append(t.frames[:0],
					Frame{Name: NameID(c.name), File: NoFile, DeclFile: NoFile})
				visit(base+k, c.hit(), t.frames)
			}
		case k == n:
			if err := t.debug.pass(); err != nil {
				return err
			}
		case t.keepStarts:
			if err := t.visitWithStarts(addrs[k:n], base+k, visit); err != nil {
				return err
			}
			k = n
		default:
			if err := t.debug.load(c.start, c.end-c.start, addrs[k:n]); err != nil {
				return err
			}
			hit := c.hit()
			for i := range t.debug.segs {
				// The visit may have changed the frames of the address before.
				t.frames = t.debug.appendFrames(t.frames[:0], &t.debug.segs[i], hit.Name)
				visit(base+k+i, hit, t.frames)
			}
			k = n
		}
	}
	return nil
}

// appendFrames appends the frames of a segment, innermost first. A frame's line is the line of the
// code, or of the call, in it.
func (d *debugCursor) appendFrames(dst []Frame, s *segment, name NameID) []Frame {
	f := Frame{File: s.file, Line: s.line, Column: s.column}
	for k := s.call; k >= 0; {
		c := &d.calls[k]
		sub := d.subOf(c.sub)
		f.Name, f.DeclFile, f.DeclLine = sub.name, sub.file, sub.line
		dst = append(dst, f)
		f = Frame{File: c.file, Line: c.line, Column: c.column}
		k = c.parent
	}
	fn := d.subOf(d.fn)
	f.Name, f.DeclFile, f.DeclLine = name, fn.file, fn.line
	return append(dst, f)
}

// CallStart is the start of an inlined call's code, if known.
type CallStart struct {
	Addr addr.Addr
	OK   bool
}

// KeepStarts makes JoinFrames compute the starts of inlined calls, for Starts. It costs
// the decoding of whole functions.
func (t *Table) KeepStarts() { t.keepStarts = true }

// Starts returns the start of each frame's code during a visit of JoinFrames: for inlined calls in
// one piece, and for the function. For a call in several pieces debug information has no start. It
// is nil without KeepStarts or debug information, and valid until the visit returns.
func (t *Table) Starts() []CallStart { return t.starts }

// extent is the range of a call's code, including calls within it.
type extent struct {
	start, end uint64
	pieces     uint32
}

// extents computes the extent of each call of the range that load decoded, with all its
// segments: the range begins at start.
func (d *debugCursor) extents(dst []extent, start uint64) []extent {
	dst = slices.Grow(dst[:0], len(d.calls))[:len(d.calls)]
	clear(dst)
	for i := range d.segs {
		s := &d.segs[i]
		for k := s.call; k >= 0; k = d.calls[k].parent {
			e := &dst[k]
			if e.pieces == 0 {
				e.start = start
			}
			if e.pieces == 0 || e.end != start {
				e.pieces++
			}
			e.end = start + s.size
		}
		start += s.size
	}
	return dst
}

// visitWithStarts visits addrs, which are within the range of c, as framesInChunk does.
func (t *Table) visitWithStarts(addrs []addr.Addr, base int,
	visit func(int, Hit, []Frame)) error {
	c, d := &t.cur, &t.debug
	if err := d.load(c.start, c.end-c.start, nil); err != nil {
		return err
	}
	t.extents = d.extents(t.extents, c.start)
	hit := c.hit()
	end := c.start
	for i := range d.segs {
		s := &d.segs[i]
		end += s.size
		for ; len(addrs) > 0 && uint64(addrs[0]) < end; addrs = addrs[1:] {
			t.frames = d.appendFrames(t.frames[:0], s, hit.Name)
			t.starts = t.starts[:0]
			for k := s.call; k >= 0; k = d.calls[k].parent {
				e := &t.extents[k]
				t.starts = append(t.starts, CallStart{addr.Addr(e.start), e.pieces == 1})
			}
			t.starts = append(t.starts, CallStart{hit.Start, hit.Flags&Nameless == 0})
			visit(base, hit, t.frames)
			base++
		}
	}
	return nil
}
