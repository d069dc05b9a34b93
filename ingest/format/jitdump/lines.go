package jitdump

import (
	"bytes"
	"cmp"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// Line is the source line of the code from an address on.
type Line struct {
	Offset uint64 // in the function
	File   string
	Line   uint32
	Column uint32 // 0 if not known: V8 alone has columns, others have discriminators there
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
	for i, e := range x.f.entries(l) {
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

// Lines returns the lines of a function by offset, ascending as the file has them; none if it has
// no record of them, or a damaged one.
func (f *File) Lines(l *Load) []Line {
	list := f.entries(l)
	kept := list[:0]
	for _, e := range list {
		if f.shift == 0 {
			e.Column = 0
		}
		if e.Offset -= f.shift; e.Offset < l.Size {
			kept = append(kept, e)
		}
	}
	return kept
}

// entries returns the entries of a function's DEBUG_INFO record, unmoved.
func (f *File) entries(l *Load) (list []Line) {
	if l.length < debugSize || l.length > maxRecord {
		return nil
	}
	b, err := f.read(l.debug, int(l.length))
	if err != nil {
		return nil
	}
	r := decode.New(f.Name, b, l.debug, f.BigEndian)
	r.Skip(recordSize + 8)
	n := r.U64()
	file := ""
	for ; n > 0 && r.Left() > entrySize; n-- {
		e := Line{Offset: r.U64() - uint64(l.Addr), Line: r.U32(), Column: r.U32()}
		pos := int(r.Offset() - l.debug)
		end := bytes.IndexByte(b[pos:], 0)
		if end < 0 {
			break
		}
		switch name := r.Bytes(uint64(end) + 1)[:end]; {
		case string(name) == "\xff": // the file before
		case len(name) <= maxName:
			file = string(name)
		}
		e.File = file
		list = append(list, e)
	}
	return list
}

// At returns the function whose code lies at an offset of the file; nil if there is none.
func (f *File) At(off addr.Offset) *Load {
	lo, hi := 0, len(f.Loads) // ascending by Code, as the file is
	for lo < hi {
		if m := (lo + hi) / 2; f.Loads[m].Code+addr.Offset(f.Loads[m].Size) > off {
			hi = m
		} else {
			lo = m + 1
		}
	}
	if lo < len(f.Loads) && f.Loads[lo].Code <= off {
		return &f.Loads[lo]
	}
	return nil
}

// Overlaps returns how many functions were placed where others lay before or lie later.
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
