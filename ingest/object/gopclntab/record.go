package gopclntab

// shape holds the offsets of fields of a _func struct, in bytes from its start. Absent
// ones are -1.
type shape struct {
	name, pcfile, pcln, npcdata int
	cu, startLine               int
	nfuncdata, end              int
	wide                        bool // nfuncdata is an int32, else a byte
	relative                    bool // funcdata are 4-byte offsets, else pointers
}

// findShape returns the shape of a version. That of Go 1.2 changed with Go 1.12, where an int32
// count became funcID uint8, two bytes of padding and a count uint8; the first function with a
// distinguishing value decides. (Without one they are equal.)
func (t *Table) findShape() shape {
	p := t.ptr
	if t.version >= go118 {
		p = 4 // the entry is an offset
	}
	s := shape{
		name: p, pcfile: p + 16, pcln: p + 20, npcdata: p + 24,
		cu: p + 28, startLine: -1, relative: t.version >= go118,
	}
	switch t.version {
	case go12:
		s.cu, s.nfuncdata, s.end = -1, p+31, p+32
		s.wide = true
		for i := range t.numFuncs {
			at, ok := t.structOf(i)
			n, ok2 := t.u32(t.structs, at+p+28)
			if ok && ok2 && n > 0xff {
				s.wide = false
				break
			}
		}
		if s.wide {
			s.nfuncdata = p + 28
		}
	case go116, go118:
		s.nfuncdata, s.end = p+35, p+36
	default:
		s.startLine, s.nfuncdata, s.end = p+32, p+39, p+40
	}
	return s
}

// structOf returns the offset of the _func struct of a function.
func (t *Table) structOf(i int) (at int, ok bool) {
	var off uint64
	if t.field == 4 {
		v, found := t.u32(t.functab, (2*i+1)*4)
		off, ok = uint64(v), found
	} else {
		off, ok = t.word(t.functab, (2*i+1)*t.ptr)
	}
	return int(min(off, uint64(len(t.structs)))), ok && off < uint64(len(t.structs))
}

// entryOf returns the start of a function; with the number of functions, the end of the
// last one.
func (t *Table) entryOf(i int) (pc uint64, ok bool) {
	if t.version >= go118 {
		v, ok := t.u32(t.functab, 2*i*4)
		return uint64(t.in.Text) + uint64(v), ok
	}
	return t.word(t.functab, 2*i*t.ptr)
}

// record is a decoded _func struct.
type record struct {
	at           int // of the struct
	entry, limit uint64
	name         uint32
	pcfile, pcln uint32
	cu           uint32 // where its unit's files begin in cuFiles
	startLine    uint32
	pcdata       int // where the offsets of its tables are; npcdata of them
	npcdata      uint32
	nfuncdata    uint32
}

// record decodes the struct of a function.
func (t *Table) record(i int) (r record, reason string) {
	var ok [8]bool
	r.entry, ok[0] = t.entryOf(i)
	r.limit, ok[1] = t.entryOf(i + 1)
	r.at, ok[2] = t.structOf(i)
	if !ok[0] || !ok[1] || !ok[2] {
		return r, "function lies outside the table"
	}
	s := &t.shape
	if r.at+s.end > len(t.structs) {
		return r, "function is cut off"
	}
	get := func(off int) uint32 {
		v, _ := t.u32(t.structs, r.at+off)
		return v
	}
	r.name, r.pcfile, r.pcln, r.npcdata = get(s.name), get(s.pcfile), get(s.pcln), get(s.npcdata)
	if s.cu >= 0 {
		r.cu = get(s.cu)
	}
	if s.startLine >= 0 {
		r.startLine = line(int32(get(s.startLine)))
	}
	if r.nfuncdata = uint32(t.structs[r.at+s.nfuncdata]); s.wide {
		r.nfuncdata = get(s.nfuncdata)
	}
	r.pcdata = r.at + s.end
	if r.limit <= r.entry {
		return r, "function ends before it starts"
	}
	return r, ""
}

// pcdataOf returns the offset in pctab of a function's table, 0 for none.
func (t *Table) pcdataOf(r *record, which uint32) uint32 {
	if which >= r.npcdata {
		return 0
	}
	off, _ := t.u32(t.structs, r.pcdata+4*int(which))
	return off
}

// funcdataOf returns a function's pointer, or since Go 1.18 offset into go:func.*.
func (t *Table) funcdataOf(r *record, which uint32) (v uint64, ok bool) {
	if which >= r.nfuncdata || uint64(r.npcdata) > uint64(len(t.structs))/4 {
		return 0, false
	}
	at := r.pcdata + 4*int(r.npcdata)
	if t.shape.relative {
		off, ok := t.u32(t.structs, at+4*int(which))
		return uint64(off), ok && off != ^uint32(0)
	}
	pad := -(int(t.in.Addr) + t.structAt + at) & (t.ptr - 1)
	v, ok = t.word(t.structs, at+pad+t.ptr*int(which))
	return v, ok && v != 0
}

// fileOf returns the number of the file for a value in a function's table.
func (t *Table) fileOf(cu uint32, value int32) uint32 {
	if value < 0 {
		return NoFile
	}
	if t.version == go12 {
		if value == 0 || int(value) >= len(t.files) {
			return NoFile
		}
		return uint32(value)
	}
	if i := uint64(cu) + uint64(value); i < uint64(len(t.cuFiles)) {
		return t.cuFiles[i]
	}
	return NoFile
}

// line returns a line number, 0 for a negative one.
func line(v int32) uint32 { return uint32(max(v, 0)) }
