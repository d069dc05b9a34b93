package symtab

import (
	"slices"

	"symbolize/ingest/addr"
)

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
