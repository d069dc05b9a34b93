package procmaps

import (
	"cmp"
	"slices"
)

// Line is a mapping of code, and its line in a /proc/PID/maps with the newline.
type Line struct {
	Mapping
	Text string
}

// Same reports whether two mappings map an address to the same code.
func (m *Mapping) Same(o *Mapping) bool {
	a, b := m.File, o.File
	if a.Inode == 0 || b.Inode == 0 {
		return a.Path == b.Path && a.Inode == b.Inode
	}
	a.Path, b.Path = "", "" // the file may have been deleted or renamed
	return a == b && m.Start-m.Offset == o.Start-o.Offset
}

func (m *Mapping) overlaps(o *Mapping) bool { return o.Start < m.End && m.Start < o.End }

// Layout is the code that one program has mapped, at one time or at several: no two of its mappings
// overlap. The zero Layout is empty.
type Layout struct {
	whole  []byte // text of a /proc/PID/maps
	copied []Line // lines of code in whole
	lines  []Line
}

// NewLayout returns the code in the text of a /proc/PID/maps, which it keeps.
func NewLayout(maps []byte) Layout {
	l := Layout{whole: maps}
	for m, row := range Code(maps) {
		l.copied = append(l.copied, Line{m, string(row)})
	}
	l.lines = l.copied
	return l
}

// Lines returns the mappings, those of NewLayout first. They must not be changed.
func (l *Layout) Lines() []Line { return l.lines }

// Add adds mappings, and reports whether it did: if one conflicts with another mapping, nothing is
// added. A mapping that grows, as the memory of a run-time compiler does, replaces the smaller one.
func (l *Layout) Add(lines []Line) bool {
	next := l.lines
	for i := range lines {
		more := &lines[i]
		at := slices.IndexFunc(next, func(o Line) bool { return o.overlaps(&more.Mapping) })
		switch {
		case at < 0:
			next = append(slices.Clip(next), *more)
		case !next[at].Same(&more.Mapping):
			return false
		case next[at].Start > more.Start || more.End > next[at].End:
			wide, ok := widened(next, at, more)
			if !ok {
				return false
			}
			next = slices.Clone(next)
			next[at] = wide
		}
	}
	l.lines = next
	return true
}

// widened returns a line that covers lines[i] and more, which map their addresses alike. ok is
// false if another line is between them.
func widened(lines []Line, i int, more *Line) (w Line, ok bool) {
	w = lines[i]
	if more.Start < w.Start {
		w.Start, w.Offset = more.Start, more.Offset
	}
	w.End = max(w.End, more.End)
	w.Text = w.Line()
	for n := range lines {
		if n != i && w.overlaps(&lines[n].Mapping) {
			return w, false
		}
	}
	return w, true
}

// Text returns the text of NewLayout, then the mappings that it does not have, by address: memory
// that a run-time compiler mapped later, or earlier.
func (l *Layout) Text() []byte {
	var further []Line
	for i := range l.lines {
		if i >= len(l.copied) || l.lines[i].Text != l.copied[i].Text {
			further = append(further, l.lines[i])
		}
	}
	slices.SortFunc(further, func(a, b Line) int { return cmp.Compare(a.Start, b.Start) })
	b := slices.Clip(l.whole)
	for i := range further {
		b = append(b, further[i].Text...)
	}
	return b
}
