package symtab

import "symbolize/ingest/addr"

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
// frame no name. A table without debug information gives one frame without file and line. frames is
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

// LookupFrames looks up one address and appends its frames to dst, in the form of
// JoinFrames, which is many times faster for a batch.
func (t *Table) LookupFrames(a addr.Addr, dst []Frame) (hit Hit, frames []Frame, err error) {
	one := [1]addr.Addr{a}
	err = t.JoinFrames(one[:], func(_ int, h Hit, f []Frame) {
		hit = h
		dst = append(dst, f...)
	})
	return hit, dst, err
}
