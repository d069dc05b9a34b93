package dwarf

import "symbolize/ingest/addr"

// A Line is a row of a line table as the compiler wrote it: several can have one address, and each ends
// at the next one.
type Line struct {
	Addr      addr.Addr
	File      uint32 // index into Lines.Files, or NoFile
	Line      uint32
	Statement bool // the beginning of a statement: a place for breakpoints
	Body      bool // the prologue of a function ends here
}

// Lines is the line table of a unit.
type Lines struct {
	Files []File
	Rows  []Line // of all sequences, in the order of the table
}

// Lines reads the line table of a unit, for a split unit of its skeleton. Its paths alias the sections.
func (t *Tree) Lines(r *Root) *Lines {
	off, size, ok := r.listed.table()
	if r.c.main != t.d || !ok {
		return new(Lines)
	}
	if t.listsLeft < 0 {
		t.lose(".debug_line", off, "line tables overlap")
		return new(Lines)
	}
	res := new(result)
	l := t.w.rows(res, t.d.scope(r.listed), off, size)
	t.listsLeft -= int64(len(l.Rows) + len(l.Files))
	for _, p := range res.Problems {
		t.lose(p.Name, uint64(p.Offset), p.Reason)
	}
	return l
}

// table returns the position of a unit's line table, and the size of its addresses.
func (u *unit) table() (off uint64, size uint8, ok bool) { return u.line, u.enc.addrSize, u.hasLine }

// rows reads a line table of a unit.
func (w *walker) rows(res *result, c scope, off uint64, size uint8) (l *Lines) {
	l = new(Lines)
	w.res, w.cur = res, c
	w.begin(c.u)
	if reason := w.lines.parse(&c.d.sec, off, size); reason != "" {
		w.lose(".debug_line", off, reason)
		return l
	}
	w.addFiles(&w.lines)
	w.runLines(l.add)
	l.Files = res.Files
	return l
}

func (l *Lines) add(row Line) { l.Rows = append(l.Rows, row) }

// report gives the present state to visit.
func (l *lineRun) report() {
	l.visit(Line{Addr: addr.Addr(l.st.address), File: l.w.fileNumber(l.st.file), Line: uint32(l.st.line),
		Statement: l.st.statement, Body: l.st.body})
	l.st.body, l.st.discriminator = false, 0
}
