package bpfobj

import (
	"cmp"
	"slices"
	"sort"

	"symbolize/ingest/bpf"
	"symbolize/ingest/btf"
	"symbolize/ingest/decode"
)

// maxBTF bounds .BTF and .BTF.ext, bytes; the kernel takes 16 MiB.
const maxBTF = 16 << 20

// readTypes reads .BTF.
func (r *reader) readTypes() {
	s := r.f.Section(".BTF")
	if s == nil {
		return
	}
	b, err := r.f.Data(s, maxBTF)
	if err == nil {
		r.types, err = btf.Parse(r.f.Name+": .BTF", b, nil)
	}
	if err != nil {
		r.fail("%v", err)
		return
	}
	r.readKconfig()
}

// readKconfig lists the variables of the section .kconfig.
func (r *reader) readKconfig() {
	const kindDatasec, kindVar = 15, 14
	for id := btf.ID(1); int64(id) < int64(r.types.Len()); id++ {
		if r.types.Kind(id) != kindDatasec || r.types.Name(id) != ".kconfig" {
			continue
		}
		r.kconfig = make(map[string]bool)
		for _, v := range r.datasec(id) {
			if int64(v) < int64(r.types.Len()) && r.types.Kind(v) == kindVar {
				r.kconfig[r.types.Name(v)] = true
			}
		}
		return
	}
}

// What .BTF.ext has (Documentation/bpf/btf.rst).
const (
	extMagic     = 0xeb9f
	lineInfoSize = 16
	coreRelSize  = 16
	columnBits   = 10
)

// readExt reads the lines and the CO-RE relocations of .BTF.ext.
func (r *reader) readExt() {
	s := r.f.Section(".BTF.ext")
	if s == nil || r.types == nil {
		return
	}
	b, err := r.f.Data(s, maxBTF)
	if err != nil {
		r.fail("section .BTF.ext: %v", err)
		return
	}
	d := decode.New(r.f.Name+": .BTF.ext", b, int64(s.Offset), r.f.BigEndian)
	if magic := d.U16(); d.Err() == nil && magic != extMagic {
		d.Fail("magic %#x", magic)
	}
	d.Skip(2)
	size := d.U32()
	var at, length [3]uint32 // functions, lines, CO-RE relocations
	for i := range at {
		if d.Left() >= 8 && uint64(len(b)-d.Left())+8 <= uint64(size) {
			at[i], length[i] = d.U32(), d.U32()
		}
	}
	if err := d.Err(); err != nil {
		r.fail("%v", err)
		return
	}
	for i, least := range [...]uint32{0, lineInfoSize, coreRelSize} {
		if least == 0 || length[i] == 0 {
			continue
		}
		if from := uint64(size) + uint64(at[i]); from+uint64(length[i]) > uint64(len(b)) {
			r.fail("section .BTF.ext: part %d of %d bytes at %#x is outside", i, length[i], at[i])
		} else {
			r.readInfo(b[from:from+uint64(length[i])], int64(s.Offset)+int64(from), least, i == 1)
		}
	}
	for _, s := range r.sections {
		slices.SortStableFunc(s.lines, func(a, b bpf.Line) int {
			return cmp.Compare(a.Offset, b.Offset)
		})
		slices.Sort(s.core)
	}
	for _, fn := range r.functions {
		fn.takeExt()
	}
}

// readInfo reads a part of .BTF.ext: records by section, of at least these many bytes.
func (r *reader) readInfo(b []byte, base int64, least uint32, lines bool) {
	d := decode.New(r.f.Name+": .BTF.ext", b, base, r.f.BigEndian)
	size := d.U32()
	if d.Err() == nil && size < least {
		d.Fail("records of %d bytes, %d is the least", size, least)
	}
	for d.Err() == nil && d.Left() > 0 {
		name, _ := r.types.StringAt(d.U32())
		n := uint64(d.U32())
		records := d.Bytes(n * uint64(size))
		if d.Err() != nil {
			break
		}
		s := r.named(name)
		if s == nil {
			continue
		}
		x := decode.New(r.f.Name, records, 0, r.f.BigEndian)
		for range n {
			next := x.Left() - int(size)
			if lines {
				s.lines = append(s.lines, r.line(x))
			} else {
				s.core = append(s.core, x.U32())
			}
			x.Skip(uint64(x.Left() - next))
		}
	}
	if err := d.Err(); err != nil {
		r.fail("%v", err)
	}
}

// named returns the section of code with a name.
func (r *reader) named(name string) *sectionData {
	var found *sectionData
	for _, s := range r.sections {
		if s.name == name && (found == nil || s.index < found.index) {
			found = s
		}
	}
	return found
}

// line reads a struct bpf_line_info. Offsets are in bytes here.
func (r *reader) line(d *decode.Reader) bpf.Line {
	l := bpf.Line{Offset: d.U32()}
	l.Insn = l.Offset / insnSize
	l.File, _ = r.types.StringAt(d.U32())
	l.Source, _ = r.types.StringAt(d.U32())
	col := d.U32()
	l.Line, l.Column = col>>columnBits, col&(1<<columnBits-1)
	return l
}

// takeExt gives a function its part of its section's lines and CO-RE relocations.
// Records of line 0 are the compiler's own; of several at one place the last counts.
func (fn *function) takeExt() {
	s := fn.section
	first := sort.Search(len(s.lines), func(i int) bool { return s.lines[i].Offset >= fn.start })
	for _, l := range s.lines[first:] {
		if l.Offset >= fn.end {
			break
		}
		if l.Line == 0 {
			continue
		}
		l.Offset -= fn.start
		l.Insn = l.Offset / insnSize
		if n := len(fn.Lines); n == 0 {
			fn.Line, fn.File = l.Line, l.File
			l.Offset = 0
		} else if fn.Lines[n-1].Offset == l.Offset {
			fn.Lines = fn.Lines[:n-1]
		}
		fn.Lines = append(fn.Lines, l)
	}
	at := sort.Search(len(s.core), func(i int) bool { return s.core[i] >= fn.start })
	if at < len(s.core) && s.core[at] < fn.end && fn.Uncertain == "" {
		fn.Uncertain = uncertainCORE
	}
}
