package btf

import (
	"cmp"

	"symbolize/ingest/decode"
)

// Sizes of the records of .BTF.ext (Documentation/bpf/btf.rst), bytes: files may have longer
// ones.
const (
	funcInfoSize = 8
	lineInfoSize = 16
	coreRelSize  = 16
	columnBits   = 10

	extHeaderSize = 24 // before CO-RE relocations came
)

// maxExtSections bounds the sections of code of an object file.
const maxExtSections = 1 << 16

// Ext is the content of .BTF.ext, which describes the code of an object file.
type Ext struct {
	Sections []ExtSection // ordered by first occurrence
}

// ExtSection describes one section of code. Positions of instructions are bytes from the
// beginning of the section, each list in the order of the file.
type ExtSection struct {
	Name  string
	Funcs []FuncInfo
	Lines []LineInfo
	Cores []CoreRelocation
}

// FuncInfo is the start of a function.
type FuncInfo struct {
	Offset uint32
	Type   ID // a FUNC
}

// LineInfo is the line of the instructions from Offset on.
type LineInfo struct {
	Offset       uint32
	Line, Column uint32
	File, Source string // the name of the file, the text of the line
}

// CoreRelocation is an instruction that the loader changes to fit the running kernel.
type CoreRelocation struct {
	Offset uint32
	Type   ID
	Access string // "0:1:2", see bpf_core_relo of the kernel
	Kind   uint32
}

// parseExt reads .BTF.ext, called name, which begins at base of its file, with the strings of t.
// With an error, a *decode.Error, it returns the valid part before it.
func parseExt(name string, raw []byte, base int64, t *Types) (*Ext, error) {
	x := &extReader{name: name, t: t, out: &Ext{}, at: make(map[string]int)}
	r := decode.New(name, raw, base, t.big)
	if m := r.U16(); r.Err() == nil && m != magic {
		r.Fail("magic %#x is not BTF's", m)
	}
	r.Skip(2)
	size := uint64(r.U32())
	if r.Err() == nil && size < extHeaderSize {
		r.Fail("a header of %d bytes; %d is the least", size, extHeaderSize)
	}
	var parts [3]struct{ at, length uint64 } // functions, lines, CO-RE relocations
	for i := range parts {
		if uint64(len(raw)-r.Left())+8 <= size || r.Err() != nil {
			parts[i].at, parts[i].length = uint64(r.U32()), uint64(r.U32())
		}
	}
	if r.Err() != nil {
		return x.out, r.Err()
	}
	for i, p := range parts {
		if p.length == 0 {
			continue
		}
		r.Seek(size + p.at)
		at := r.Offset()
		b := r.Bytes(p.length)
		if r.Err() != nil {
			return x.out, r.Err()
		}
		part := decode.New(name, b, at, t.big)
		x.part(part, [...]extRecord{
			{funcInfoSize, x.function}, {lineInfoSize, x.line}, {coreRelSize, x.core},
		}[i])
		if x.err = cmp.Or(x.err, part.Err()); x.err != nil {
			return x.out, x.err
		}
	}
	return x.out, nil
}

type extReader struct {
	name string
	t    *Types
	out  *Ext
	at   map[string]int // indexes into out.Sections
	err  error          // of a record
}

// extRecord is the minimum size of records of a part, and their decoder.
type extRecord struct {
	least uint32
	read  func(r *decode.Reader, s *ExtSection)
}

// part reads the records of a part, which are grouped by section.
func (x *extReader) part(r *decode.Reader, rec extRecord) {
	size := r.U32()
	if r.Err() == nil && size < rec.least {
		r.Fail("records of %d bytes; %d is the least", size, rec.least)
	}
	for r.Err() == nil && r.Left() > 0 {
		off := r.U32()
		name, ok := x.t.StringAt(off)
		if r.Err() == nil && !ok {
			r.Fail("a section's name at %#x, behind all strings", off)
		}
		n := uint64(r.U32())
		records := r.Bytes(n * uint64(size))
		if r.Err() != nil {
			return
		}
		s := x.section(name)
		if s == nil {
			r.Fail("more than %d sections", maxExtSections)
			return
		}
		one := decode.New(x.name, records, r.Offset()-int64(len(records)), x.t.big)
		for range n {
			next := one.Left() - int(size)
			rec.read(one, s)
			if x.err = one.Err(); x.err != nil {
				return
			}
			one.Skip(uint64(one.Left() - next))
		}
	}
}

// section returns the section with a name, added if new; nil if there are too many.
func (x *extReader) section(name string) *ExtSection {
	i, ok := x.at[name]
	if !ok {
		if i = len(x.out.Sections); i == maxExtSections {
			return nil
		}
		x.at[name] = i
		x.out.Sections = append(x.out.Sections, ExtSection{Name: name})
	}
	return &x.out.Sections[i]
}

// id reads the number of a type.
func (x *extReader) id(r *decode.Reader) ID {
	id := r.U32()
	if r.Err() == nil && int64(id) >= int64(x.t.Len()) {
		r.Fail("type %d of %d", id, x.t.Len())
	}
	return ID(id)
}

// text reads the offset of a string, and returns the string.
func (x *extReader) text(r *decode.Reader) string {
	off := r.U32()
	s, ok := x.t.StringAt(off)
	if r.Err() == nil && !ok {
		r.Fail("a string at %#x, behind all strings", off)
	}
	return s
}

func (x *extReader) function(r *decode.Reader, s *ExtSection) {
	f := FuncInfo{Offset: r.U32(), Type: x.id(r)}
	if r.Err() == nil {
		s.Funcs = append(s.Funcs, f)
	}
}

func (x *extReader) line(r *decode.Reader, s *ExtSection) {
	l := LineInfo{Offset: r.U32(), File: x.text(r), Source: x.text(r)}
	col := r.U32()
	l.Line, l.Column = col>>columnBits, col&(1<<columnBits-1)
	if r.Err() == nil {
		s.Lines = append(s.Lines, l)
	}
}

func (x *extReader) core(r *decode.Reader, s *ExtSection) {
	c := CoreRelocation{Offset: r.U32(), Type: x.id(r), Access: x.text(r), Kind: r.U32()}
	if r.Err() == nil {
		s.Cores = append(s.Cores, c)
	}
}
