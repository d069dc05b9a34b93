package jitdump

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// Line is the source line of the code from an address on.
type Line struct {
	Offset uint64 // in the function
	File   string
	Line   uint32
	Column uint32 // 0 if unknown: only V8 has columns, others have discriminators there
}

// elfHeader is the number of bytes by which V8 moves addresses of DEBUG_INFO.
const elfHeader = 64

// checkedFunctions is from how many functions on their lines alone show V8: none of them has a
// line in its first 64 bytes.
const checkedFunctions = 64

// check notes whether the lines of a function begin within its first bytes, and end beyond it.
func (x *indexer) check(l *Load) {
	if x.within > 0 || x.checked >= checkedFunctions {
		return
	}
	list, _ := x.f.entries(l) // the error is the one of Lines
	for i, e := range list {
		if i == 0 {
			x.checked++
		}
		switch off := e.Offset; {
		case off < elfHeader:
			x.within++
			return
		case off >= l.Size:
			x.beyond++
		}
	}
}

// shift returns by how much the addresses of lines are moved.
func (x *indexer) shift() uint64 {
	if x.within == 0 && (x.beyond > 0 || x.checked >= checkedFunctions) {
		return elfHeader
	}
	return 0
}

// Lines returns the lines of a function by offset, ascending; none if it has no record of them.
// The error is of an invalid record with unusable lines.
func (f *File) Lines(l *Load) ([]Line, error) {
	list, err := f.entries(l)
	kept := list[:0]
	for _, e := range list {
		if f.shift == 0 {
			e.Column = 0
		}
		if e.Offset -= f.shift; e.Offset < l.Size {
			kept = append(kept, e)
		}
	}
	slices.SortStableFunc(kept, func(a, b Line) int { return cmp.Compare(a.Offset, b.Offset) })
	return kept, err
}

// entries returns the entries of a function's DEBUG_INFO record, unmoved.
func (f *File) entries(l *Load) ([]Line, error) {
	if l.length == 0 {
		return nil, nil
	}
	if l.length > maxRecord {
		return nil, f.fail(l.debug, "DEBUG_INFO record of %d bytes", l.length)
	}
	b, err := f.read(l.debug, int(l.length))
	if err != nil {
		return nil, err
	}
	r := decode.New(f.Name, b, l.debug, f.BigEndian)
	r.Skip(recordSize + 8)
	n := r.U64()
	if r.Err() != nil || n > uint64(r.Left())/(entrySize+1) {
		return nil, f.fail(l.debug, "DEBUG_INFO record of %d entries in %d bytes", n, l.length)
	}
	list, ok := namedEntries(r, l, n)
	if !ok {
		r.Seek(debugSize)
		list, ok = strideEntries(r, l, n)
	}
	if !ok {
		return nil, f.fail(l.debug, "DEBUG_INFO record is longer than its entries")
	}
	return list, nil
}

// entry reads the fixed part of an entry.
func entry(r *decode.Reader, l *Load) Line {
	return Line{Offset: r.U64() - uint64(l.Addr), Line: r.U32(), Column: r.U32()}
}

// plausible reports whether an entry is of code of the function.
func (e *Line) plausible(l *Load) bool { return e.Offset <= l.Size+elfHeader && e.Line < 1<<28 }

// namedEntries reads entries as the specification has them; ok is false if they are none.
func namedEntries(r *decode.Reader, l *Load, n uint64) (list []Line, ok bool) {
	file := ""
	for ; n > 0; n-- {
		e := entry(r, l)
		name := r.CString()
		switch {
		case r.Err() != nil || !e.plausible(l):
			return nil, false
		case name == "\xff": // the file before
		case len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
			return nil, false
		default:
			file = name
		}
		e.File = file
		list = append(list, e)
	}
	return list, r.Left() < 8 // padding
}

// strideEntries reads entries with invalid files. V8 of Node.js 18 to 22 writes them from
// memory that it has freed: as many bytes as the name has, but others. Where all entries have the
// same file its length is known, and the function's own name, "JS:*work /srv/app.js:1:13", may
// have it.
func strideEntries(r *decode.Reader, l *Load, n uint64) (list []Line, ok bool) {
	size := uint64(r.Left())
	if n == 0 || size%n != 0 || size/n <= entrySize {
		return nil, false
	}
	length := size/n - entrySize
	file := ""
	if _, text, found := strings.Cut(l.Name, " "); found {
		for range 2 { // line and column
			text = text[:max(strings.LastIndexByte(text, ':'), 0)]
		}
		if uint64(len(text))+1 == length {
			file = text
		}
	}
	for ; n > 0; n-- {
		e := entry(r, l)
		e.File = file
		if name := r.Bytes(length); r.Err() != nil || name[length-1] != 0 || !e.plausible(l) {
			return nil, false
		}
		if k := len(list); k > 0 && list[k-1].Offset > e.Offset {
			return nil, false
		}
		list = append(list, e)
	}
	return list, true
}

// At returns the function with code at an offset of the file, nil for none.
func (f *File) At(off addr.Offset) *Load {
	n := sort.Search(len(f.Loads), func(i int) bool { // ascending by Code, as the file is
		return f.Loads[i].Code+addr.Offset(f.Loads[i].Size) > off
	})
	if n < len(f.Loads) && f.Loads[n].Code <= off {
		return &f.Loads[n]
	}
	return nil
}

// Reused returns the addresses at which several functions were placed, one after another: ascending
// ranges.
func (f *File) Reused() (list []addr.Range) {
	placed := slices.Clone(f.Placed)
	slices.SortStableFunc(placed, func(a, b Placement) int { return cmp.Compare(a.Addr, b.Addr) })
	end := addr.PC(0)
	for i := range placed {
		p := &placed[i]
		till := p.Addr + addr.PC(f.Loads[p.Load].Size)
		if again := i > 0 && placed[i-1].Addr == p.Addr && placed[i-1].Load == p.Load; p.Addr < end && !again {
			r := addr.Range{Start: addr.Addr(p.Addr), End: addr.Addr(min(end, till))}
			if n := len(list); n > 0 && r.Start <= list[n-1].End {
				list[n-1].End = max(list[n-1].End, r.End)
			} else if r.Start < r.End {
				list = append(list, r)
			}
		}
		end = max(end, till)
	}
	return list
}

// Overlaps returns the number of functions at addresses that other functions had before or have
// later.
func (f *File) Overlaps() (n int) {
	order := make([]int, len(f.Placed))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(f.Placed[a].Addr, f.Placed[b].Addr), cmp.Compare(a, b))
	})
	end := addr.PC(0)
	for _, i := range order {
		p := &f.Placed[i]
		if p.Addr < end {
			n++
		}
		end = max(end, p.Addr+addr.PC(f.Loads[p.Load].Size))
	}
	return n
}
