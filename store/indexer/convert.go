package indexer

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"sync"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/dwarf"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/object/gopclntab"
	"symbolize/store"
	"symbolize/store/symtab"
)

// converter adds the units of a file's debug information to a Builder. Its memory
// serves one unit after another.
type converter struct {
	b    *symtab.Builder
	ctx  context.Context
	base addr.Addr // the origin of addresses; those below it are left out

	u     *dwarf.Unit
	files []symtab.FileRef // of the unit; noRef: not yet read
	subs  []symtab.SubRef
	path  []byte

	seqs  []dwarf.Sequence // of the unit, by address
	cover []addr.Range     // of its functions, by address
	fn    symtab.DebugFunc

	reassigned map[int32]*dwarf.Function // see reassignInlines
	left       int                       // budget of lines
}

// Functions and sequences of a real file hardly overlap (COMDAT copies are in units of
// their own, nested functions are small): each row is used once or twice. A hostile one
// could have each function use all rows.
const (
	lineBudgetFactor = 16
	lineBudgetFloor  = 1 << 16
)

const noRef = 1<<32 - 1

// ctxEvery is after how many functions a unit looks whether the run was ended.
const ctxEvery = 256

// unit adds all that one unit knows, and reports whether that was possible: the lines of
// functions that overlap too often are left out.
func (c *converter) unit(u *dwarf.Unit) bool {
	c.u = u
	c.files = refill(c.files, len(u.Files))
	c.subs = refill(c.subs, len(u.Subs))
	c.seqs = append(c.seqs[:0], u.Sequences...)
	slices.SortStableFunc(c.seqs, func(a, b dwarf.Sequence) int {
		return cmp.Compare(a.Start, b.Start)
	})
	c.left = len(c.seqs) + len(u.Functions)
	for i := range c.seqs {
		c.left += len(c.seqs[i].Rows)
	}
	c.left = lineBudgetFactor*c.left + lineBudgetFloor
	c.cover = c.cover[:0]
	c.reassigned = nil
	if u.Version == 2 {
		c.reassignInlines()
	}
	for i := range u.Functions {
		if i%ctxEvery == 0 && c.ctx.Err() != nil {
			return true // the run ends, and with it the table
		}
		f := &u.Functions[i]
		c.cover = append(c.cover, f.Ranges...)
		c.function(f, c.reassigned[int32(i)])
	}
	c.rest()
	c.u = nil
	return c.left >= 0
}

func refill[T ~uint32](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	for i := range s {
		s[i] = noRef
	}
	return s
}

func (c *converter) file(i uint32) symtab.FileRef {
	if uint64(i) >= uint64(len(c.files)) {
		return 0
	}
	if c.files[i] == noRef {
		c.path = dwarf.AppendPath(c.path[:0], c.u.Files[i])
		c.files[i] = c.b.File(c.path)
	}
	return c.files[i]
}

func (c *converter) sub(i int32) symtab.SubRef {
	if i < 0 || int(i) >= len(c.subs) {
		return 0
	}
	if c.subs[i] == noRef {
		s := &c.u.Subs[i]
		c.subs[i] = c.b.Sub(symtab.Subprogram{
			Linkage: s.Linkage, Name: s.Name, File: c.file(s.DeclFile), Line: s.DeclLine,
		})
	}
	return c.subs[i]
}

// reassignInlines moves inlined calls to the function that contains them. A function of DWARF 2 has
// one range; gcc -gstrict-dwarf makes two functions of one in two parts, and leaves all calls with
// the first. Without this, the second part would have wrong lines and no inlined calls.
func (c *converter) reassignInlines() {
	type part struct {
		addr.Range
		fn int32
	}
	var parts []part
	for i := range c.u.Functions {
		for _, r := range c.u.Functions[i].Ranges {
			parts = append(parts, part{r, int32(i)})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.Start, b.Start) })
	for i := range c.u.Functions {
		f := &c.u.Functions[i]
		for _, in := range f.Inlines {
			for _, r := range in.Ranges {
				k := sort.Search(len(parts), func(k int) bool { return parts[k].End > r.Start })
				if k == len(parts) || parts[k].Start > r.Start || parts[k].fn == int32(i) {
					continue
				}
				if c.reassigned == nil {
					c.reassigned = make(map[int32]*dwarf.Function)
				}
				if c.reassigned[parts[k].fn] == nil {
					c.reassigned[parts[k].fn] = f
				}
			}
		}
	}
}

// function adds one function, with the inlined calls that were reassigned to it.
func (c *converter) function(f, reassigned *dwarf.Function) {
	c.fn.Ranges = c.moved(c.fn.Ranges[:0], f.Ranges)
	if len(c.fn.Ranges) == 0 || !c.b.NeedsAny(c.fn.Ranges) {
		return
	}
	c.fn.Sub = c.sub(f.Sub)
	c.inlines(f)
	if reassigned != nil {
		c.inlines(reassigned)
	}
	c.fn.Lines = c.fn.Lines[:0]
	for _, r := range f.Ranges {
		c.lines(r)
	}
	isKnown := func(l symtab.Line) bool { return l.File != 0 }
	if c.fn.Sub != 0 || len(f.Inlines) > 0 || slices.ContainsFunc(c.fn.Lines, isKnown) {
		c.b.AddFunction(&c.fn)
	}
	c.fn.Inlines = c.fn.Inlines[:0]
}

// inlines appends the inlined calls of f.
func (c *converter) inlines(f *dwarf.Function) {
	first := len(c.fn.Inlines)
	c.fn.Inlines = slices.Grow(c.fn.Inlines, len(f.Inlines))[:first+len(f.Inlines)]
	for i := range f.Inlines {
		in, to := &f.Inlines[i], &c.fn.Inlines[first+i]
		to.Sub, to.Parent = c.sub(in.Sub), in.Parent
		if in.Parent >= 0 {
			to.Parent += int32(first)
		}
		to.CallFile, to.CallLine, to.CallColumn = c.file(in.CallFile), in.CallLine, in.CallColumn
		to.Ranges = c.moved(to.Ranges[:0], in.Ranges)
	}
	c.widen(f, first)
}

// widen makes calls as large as the calls within them. In strict DWARF 2 a call has one range; of
// one in several pieces gcc records the first, and clang none. Go 1.14 has calls in later versions
// with pieces outside of their callers. Without this, such pieces would lose their callers. The work
// is bounded, since each range may go to as many callers as there are levels.
func (c *converter) widen(f *dwarf.Function, first int) {
	left := 16*len(f.Inlines) + 1024
	for i := len(f.Inlines) - 1; i >= 0; i-- {
		p := f.Inlines[i].Parent
		if p < 0 {
			continue
		}
		to := &c.fn.Inlines[first+int(p)]
		for _, r := range c.fn.Inlines[first+i].Ranges {
			if left > 0 && !isWithin(r, to.Ranges) {
				to.Ranges = append(to.Ranges, r)
				left--
			}
		}
	}
}

// isWithin reports whether a range is known to be within one of others, which are mostly sorted.
func isWithin(r addr.Range, others []addr.Range) bool {
	i := sort.Search(len(others), func(i int) bool { return others[i].End > r.Start })
	return i < len(others) && others[i].Start <= r.Start && r.End <= others[i].End
}

// moved appends ranges moved down by base.
func (c *converter) moved(dst, ranges []addr.Range) []addr.Range {
	for _, r := range ranges {
		if r.Start >= c.base {
			dst = append(dst, addr.Range{Start: r.Start - c.base, End: r.End - c.base})
		}
	}
	return dst
}

// lines appends the rows that cover r.
func (c *converter) lines(r addr.Range) {
	if r.Start < c.base {
		return
	}
	// Sequences are disjoint in correct input; if they overlap, the last that begins at or before r
	// is used, and all that begin within r.
	k := sort.Search(len(c.seqs), func(i int) bool { return c.seqs[i].Start > r.Start })
	known := false
	for k = max(k-1, 0); k < len(c.seqs) && c.seqs[k].Start < r.End && c.left >= 0; k++ {
		c.left--
		s := &c.seqs[k]
		if s.End <= r.Start {
			continue
		}
		if !known && s.Start > r.Start { // the last line of another range ends here
			c.fn.Lines = append(c.fn.Lines, symtab.Line{Addr: r.Start - c.base})
		}
		known = true
		i := sort.Search(len(s.Rows), func(i int) bool { return s.Rows[i].Addr > r.Start })
		for i = max(i-1, 0); i < len(s.Rows) && s.Rows[i].Addr < r.End && c.left >= 0; i++ {
			c.left--
			row := &s.Rows[i]
			c.fn.Lines = append(c.fn.Lines, symtab.Line{
				Addr: max(row.Addr, r.Start) - c.base,
				File: c.file(row.File), Line: row.Line, Column: row.Column,
			})
		}
		if s.End < r.End {
			c.fn.Lines = append(c.fn.Lines, symtab.Line{Addr: s.End - c.base})
		}
	}
	if !known {
		c.fn.Lines = append(c.fn.Lines, symtab.Line{Addr: r.Start - c.base})
	}
}

// rest adds the lines of code that is in no function: assembly, and code that compilers
// do not describe with -g1.
func (c *converter) rest() {
	if !slices.IsSortedFunc(c.cover, compareStart) {
		slices.SortFunc(c.cover, compareStart)
	}
	k := 0
	for i := 0; i < len(c.seqs) && c.left >= 0; i++ {
		s := &c.seqs[i]
		for k > 0 && c.cover[k-1].End > s.Start {
			k-- // sequences may overlap
			c.left--
		}
		at := s.Start
		for ; k < len(c.cover) && c.cover[k].Start < s.End && c.left >= 0; k++ {
			c.left--
			c.gap(s, addr.Range{Start: at, End: c.cover[k].Start})
			at = max(at, c.cover[k].End)
		}
		c.gap(s, addr.Range{Start: at, End: s.End})
	}
}

func compareStart(a, b addr.Range) int { return cmp.Compare(a.Start, b.Start) }

// maxBare is the maximum of rows in one function without a name. Nothing else divides code without
// a description.
const maxBare = 256

// gap adds the part of a sequence that is between functions, from the first row that
// begins there: bytes before are the padding after a function, which inherits the
// function's last row.
func (c *converter) gap(s *dwarf.Sequence, r addr.Range) {
	if r.End <= r.Start {
		return
	}
	i := sort.Search(len(s.Rows), func(i int) bool { return s.Rows[i].Addr >= r.Start })
	for i < len(s.Rows) && s.Rows[i].Addr < r.End && c.left >= 0 {
		part := addr.Range{Start: s.Rows[i].Addr, End: r.End}
		if i += maxBare; i < len(s.Rows) {
			part.End = min(part.End, s.Rows[i].Addr)
		}
		c.fn.Sub = 0
		c.fn.Ranges = c.moved(c.fn.Ranges[:0], []addr.Range{part})
		if !c.b.NeedsAny(c.fn.Ranges) {
			continue
		}
		c.fn.Lines = c.fn.Lines[:0]
		c.lines(part)
		c.b.AddFunction(&c.fn)
	}
}

// pclntab adds the data of a Go program without debug information for its stack traces: functions,
// inlined calls and lines.
func (s *sources) pclntab(f *elf.File) {
	table, err := s.goTable(f)
	if err != nil {
		s.fail(incompleteError(err.Error()))
	}
	if table == nil {
		return
	}
	s.add(store.Pclntab, func(b *symtab.Builder) error {
		c := goConverter{b: b, table: table, files: make(map[uint32]symtab.FileRef)}
		needs := func(r addr.Range) bool { return b.NeedsAny([]addr.Range{r}) }
		lost, err := table.FunctionsIn(needs, func(f *gopclntab.Function) bool {
			c.function(f)
			return true
		})
		s.count(b.Losses())
		return lostEntries(lost, err)
	})
}

// goTable returns Go's own table of the file, nil without one. It is read once.
func (s *sources) goTable(f *elf.File) (*gopclntab.Table, error) {
	if s.findGo == nil {
		s.findGo = sync.OnceValues(func() (*gopclntab.Table, error) { return gopclntab.Find(f) })
	}
	return s.findGo()
}

// goConverter adds functions of a Go table to a Builder.
type goConverter struct {
	b     *symtab.Builder
	table *gopclntab.Table
	files map[uint32]symtab.FileRef
	fn    symtab.DebugFunc
}

func (c *goConverter) file(n uint32) symtab.FileRef {
	ref, ok := c.files[n]
	if !ok {
		ref = c.b.File(c.table.File(n))
		c.files[n] = ref
	}
	return ref
}

func (c *goConverter) function(f *gopclntab.Function) {
	c.fn.Sub = c.b.Sub(symtab.Subprogram{Name: f.Name, File: c.file(f.File), Line: f.StartLine})
	c.fn.Ranges = append(c.fn.Ranges[:0], f.Range)
	c.fn.Inlines = c.fn.Inlines[:0]
	for i := range f.Inlines {
		in := &f.Inlines[i]
		c.fn.Inlines = append(c.fn.Inlines, symtab.Inline{
			Sub: c.b.Sub(symtab.Subprogram{
				Name: in.Name, File: c.file(in.File), Line: in.StartLine,
			}),
			Parent: in.Parent, CallFile: c.file(in.CallFile), CallLine: in.CallLine,
			Ranges: in.Ranges,
		})
	}
	c.fn.Lines = c.fn.Lines[:0]
	for _, l := range f.Lines {
		c.fn.Lines = append(c.fn.Lines,
			symtab.Line{Addr: l.Addr, File: c.file(l.File), Line: l.Line})
	}
	c.b.AddFunction(&c.fn)
}
