package dwarfvar

import (
	"slices"
	"strings"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
)

// A SourceLine is a line of a source file. File is its path, or the end of its path.
type SourceLine struct {
	File string
	Line uint32
}

// files reports for each file of a table whether it is the file of l.
func (l *SourceLine) files(t *dwarf.Lines) []bool {
	is := make([]bool, len(t.Files))
	var path []byte
	for i, f := range t.Files {
		path = dwarf.AppendPath(path[:0], f)
		is[i] = SamePath(string(path), l.File)
	}
	return is
}

// SamePath reports whether a path is another one, or ends with it.
func SamePath(path, end string) bool {
	rest, ok := strings.CutSuffix(path, strings.TrimPrefix(end, "./"))
	return ok && path != "" && (rest == "" || rest[len(rest)-1] == '/' || end[0] == '/')
}

// filesOf returns the files of a table that are those of Options.Lines, by their number; nil if it has none.
func (r *reader) filesOf(t *dwarf.Lines) (list [][]bool) {
	some := false
	for i, l := range r.opts.Lines {
		if i > 0 && l.File == r.opts.Lines[i-1].File {
			list = append(list, list[i-1])
			continue
		}
		list = append(list, l.files(t))
		some = some || slices.Contains(list[i], true)
	}
	if !some {
		return nil
	}
	return list
}

// lineFiles returns filesOf the line table of a unit.
func (r *reader) lineFiles(root *dwarf.Root) [][]bool {
	if len(r.opts.Lines) == 0 {
		return nil
	}
	return r.filesOf(r.tree.Lines(root))
}

// lineCall is an inlined call in a line.
type lineCall struct {
	line SourceLine
	at   addr.Addr
}

func (x *Info) addPlace(l SourceLine, a addr.Addr) {
	x.places, x.byLine[l] = append(x.places, a), append(x.byLine[l], a)
}

func (x *Info) sortPlaces() {
	slices.Sort(x.places)
	x.places = slices.Compact(x.places)
}

// findLines finds the rows of Options.Lines, and returns the units that have their files.
func (x *Info) findLines(roots []*dwarf.Root) (in []*dwarf.Root) {
	for _, root := range roots {
		t := x.tree().Lines(root)
		files := x.r.filesOf(t)
		if files == nil {
			continue
		}
		in = append(in, root)
		for i, l := range x.r.opts.Lines {
			for _, row := range t.Rows {
				if row.Statement && row.Line == l.Line && row.File < uint32(len(files[i])) && files[i][row.File] {
					x.addPlace(l, row.Addr)
				}
			}
		}
	}
	x.sortPlaces()
	return in
}

// Places returns the addresses of a line of Options.Lines where statements begin, sorted: those of the line tables, and
// the entries of calls in the line that were inlined.
func (x *Info) Places(l SourceLine) []addr.Addr {
	list := slices.Clone(x.byLine[l])
	slices.Sort(list)
	return slices.Compact(list)
}

func (x *Info) tree() *dwarf.Tree { return x.r.tree }

// lineTable is the line table of a unit.
type lineTable struct {
	root *dwarf.Root
	*dwarf.Lines
}

// lines returns the line table of a function's unit, which is kept for the next one.
func (x *Info) lines(f *Function) *dwarf.Lines {
	if x.table.root != f.pos.Root {
		x.table = lineTable{f.pos.Root, x.tree().Lines(f.pos.Root)}
	}
	return x.table.Lines
}

// Decl returns where the function of a scope of f, which is 0 or a call inlined, is declared; line 0 if that is not
// known.
func (x *Info) Decl(f *Function, scope int32) (at SourceLine) {
	at, _ = x.decl(f, scope)
	return at
}

func (x *Info) decl(f *Function, scope int32) (at SourceLine, file uint64) {
	t := x.tree()
	_ = t.Guard(func() {
		e := t.Entry()
		defer t.Release(e)
		if !t.Read(f.Scopes[scope].pos, e) {
			return
		}
		described(t, e, func(d *dwarf.Entry) bool {
			n, _, _ := d.Const(atDeclLine)
			if n == 0 || n > 1<<32-1 || d.Root != f.pos.Root {
				return false
			}
			file, _, _ = d.Const(atDeclFile)
			at.Line = uint32(n)
			if files := x.lines(f).Files; file < uint64(len(files)) {
				at.File = string(dwarf.AppendPath(nil, files[file]))
			}
			return true
		})
	})
	return at, file
}

// LinesFrom returns the addresses in a scope, which is 0 or a call inlined, where statements of the line n behind its
// declaration begin, sorted, and where calls in that line are inlined.
func (x *Info) LinesFrom(f *Function, scope int32, n uint32) (list []addr.Addr) {
	at, file := x.decl(f, scope)
	if at.Line == 0 {
		return nil
	}
	t := x.tree()
	_ = t.Guard(func() {
		for _, row := range x.lines(f).Rows {
			if row.Statement && row.Line == at.Line+n && uint64(row.File) == file && f.Holds(scope, row.Addr) {
				list = append(list, row.Addr)
			}
		}
		e := t.Entry()
		defer t.Release(e)
		for i := range f.Scopes {
			s := &f.Scopes[i]
			if s.Inline == "" || int32(i) == scope || !f.Within(int32(i), scope) || !t.Read(s.pos, e) {
				continue
			}
			if in, line := callOf(e); line == at.Line+n && in == file {
				list = append(list, s.Entry)
			}
		}
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// Within reports whether a scope is another one, or in it.
func (f *Function) Within(scope, outer int32) bool {
	for scope > outer {
		scope = f.Scopes[scope].Parent
	}
	return scope == outer
}

// Body returns where the prologue of a function ends that a compiler wrote without optimization: there its parameters
// are in their places. ok is false for other functions.
func (x *Info) Body(f *Function) (a addr.Addr, ok bool) {
	_ = x.tree().Guard(func() {
		if x.r.unit(f.pos.Root).lists {
			return
		}
		rows := x.lines(f).Rows
		first := slices.IndexFunc(rows, func(l dwarf.Line) bool { return l.Addr == f.Entry })
		if first < 0 {
			return
		}
		for i := first + 1; i < len(rows) && f.Holds(0, rows[i].Addr); i++ {
			a, ok = rows[i].Addr, true
			if rows[i].Addr > f.Entry {
				break
			}
		}
		for _, row := range rows[first:] { // as clang marks it
			if row.Body && f.Holds(0, row.Addr) {
				a, ok = row.Addr, true
				return
			}
		}
	})
	return a, ok && a != f.Entry
}

// callOf returns the file and line of a call that was inlined.
func callOf(e *dwarf.Entry) (file uint64, line uint32) {
	file, _, _ = e.Const(atCallFile)
	n, _, _ := e.Const(atCallLine)
	return file, uint32(min(n, 1<<32-1))
}

// entryOf returns the entry of an instance of a function.
func entryOf(t *dwarf.Tree, e *dwarf.Entry) (a addr.Addr, ok bool) {
	if v, ok := t.Address(e, atEntryPC); ok {
		return addr.Addr(v), true
	}
	if rs := t.Ranges(e); len(rs) > 0 {
		return rs[0].Start, true
	}
	return 0, false
}
