package dwarf

// A lineHeader is the header of a line number program, sections 6.2.4 of DWARF 4 and 5. Its slices
// are used again by the next parse.
type lineHeader struct {
	version    uint16
	enc        encoding
	minInst    uint64
	maxOps     uint64
	statement  bool // rows begin as statements
	lineBase   int8
	lineRange  uint8
	opcodeBase uint8
	lengths    [256]uint8 // operands of standard opcodes
	dirs       [][]byte
	files      []fileEntry
	program    uint64 // offset of the first opcode
	end        uint64 // of the table in .debug_line
	forms      []entryForm
}

type fileEntry struct {
	name []byte
	dir  uint32
}

type entryForm struct {
	content uint64
	form    uint16
}

// parse reads the header at off of .debug_line for a unit with addresses of the given size. It
// returns the reason of a failure, or "".
func (h *lineHeader) parse(sec *Sections, off uint64, addrSize uint8) string {
	h.dirs, h.files = h.dirs[:0], h.files[:0]
	r := buf{b: sec.Line, big: sec.BigEndian}
	r.seek(off)
	n, is64 := r.length()
	if r.bad || n > uint64(r.left()) {
		return "line table is longer than the section"
	}
	h.enc = encoding{addrSize: addrSize, is64: is64}
	h.end = uint64(r.off) + n
	r.b = r.b[:h.end]
	h.version = r.u16()
	if h.version < 2 || h.version > 5 {
		return "unknown version of the line table"
	}
	if h.version == 5 {
		h.enc.addrSize = r.u8()
		r.u8() // segment selector size
		if h.enc.addrSize != 4 && h.enc.addrSize != 8 {
			return "unknown size of addresses in the line table"
		}
	}
	headerLen := r.offset(is64)
	if r.bad || headerLen > uint64(r.left()) {
		return "line table header is longer than the table"
	}
	h.program = uint64(r.off) + headerLen
	r.b = r.b[:h.program]
	if reason := h.parameters(&r); reason != "" {
		return reason
	}
	if h.version < 5 {
		return h.tables4(&r)
	}
	if reason := h.table5(&r, sec, h.addDir); reason != "" {
		return reason
	}
	return h.table5(&r, sec, h.addFile)
}

func (h *lineHeader) parameters(r *buf) string {
	h.minInst = uint64(r.u8())
	h.maxOps = 1
	if h.version >= 4 {
		h.maxOps = max(1, uint64(r.u8()))
	}
	h.statement = r.u8() != 0
	h.lineBase = int8(r.u8())
	h.lineRange = r.u8()
	h.opcodeBase = r.u8()
	if r.bad || h.lineRange == 0 || h.opcodeBase == 0 {
		return "line table header has no line range or opcodes"
	}
	for i := 1; i < int(h.opcodeBase); i++ {
		h.lengths[i] = r.u8()
	}
	return ""
}

// tables4 reads the directory and file tables up to DWARF 4. Directory 0 is the unit's own, file 0
// is none.
func (h *lineHeader) tables4(r *buf) string {
	h.dirs = append(h.dirs, nil)
	for {
		dir := r.cstring()
		if r.bad {
			return "directory table does not end"
		}
		if len(dir) == 0 {
			break
		}
		if len(h.dirs) >= maxFiles {
			return "too many directories"
		}
		h.dirs = append(h.dirs, dir)
	}
	h.files = append(h.files, fileEntry{})
	for {
		name := r.cstring()
		if r.bad {
			return "file table does not end"
		}
		if len(name) == 0 {
			return ""
		}
		if len(h.files) >= maxFiles {
			return "too many files"
		}
		h.files = append(h.files, fileEntry{name, uint32(min(r.uleb(), maxFiles))})
		r.skipLEB() // time
		r.skipLEB() // size
	}
}

func (h *lineHeader) addDir(path []byte, _ uint64) { h.dirs = append(h.dirs, path) }

func (h *lineHeader) addFile(path []byte, dir uint64) {
	h.files = append(h.files, fileEntry{path, uint32(min(dir, maxFiles))})
}

// table5 reads a directory or file table of DWARF 5, which begins with the format of its entries.
func (h *lineHeader) table5(r *buf, sec *Sections, add func([]byte, uint64)) string {
	n := int(r.u8())
	if n > maxEntryForms {
		return "too many forms in a file entry"
	}
	h.forms = h.forms[:0]
	for range n {
		h.forms = append(h.forms, entryForm{r.uleb(), uint16(min(r.uleb(), 0xffff))})
	}
	count := r.uleb()
	// Each entry has at least a byte: an empty format with a great count made other readers
	// allocate 4 GiB.
	if r.bad || count > maxFiles || count > uint64(r.left()) {
		return "more files than the line table has bytes for"
	}
	for range count {
		var path []byte
		var dir uint64
		for _, f := range h.forms {
			switch f.content {
			case lnctPath:
				path = linePath(r, sec, f.form, h.enc)
			case lnctDirectoryIndex:
				dir = readForm(r, f.form, h.enc)
			default:
				skipForm(r, f.form, h.enc)
			}
		}
		if r.bad {
			return "file table does not end"
		}
		add(path, dir)
	}
	return ""
}

// linePath reads a path in one of the forms that a file entry may have. A path outside the
// strings is lost alone.
func linePath(r *buf, sec *Sections, form uint16, enc encoding) []byte {
	if form == formString {
		return r.cstring()
	}
	v := readForm(r, form, enc)
	var s []byte
	switch form {
	case formLineStrp:
		s, _ = cstringAt(sec.LineStr, v)
	case formStrp:
		s, _ = cstringAt(sec.Str, v)
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4:
		// Indexes need the base of a unit; the first contribution is the only one
		// wherever these are written.
		base := uint64(8)
		if enc.is64 {
			base = 16
		}
		all := scope{d: &Data{sec: Sections{BigEndian: sec.BigEndian}}}
		if off, ok := all.indexed(sec.StrOffsets, base, v, enc.offsetSize()); ok {
			s, _ = cstringAt(sec.Str, off)
		}
	}
	return s
}

// file puts a file together. comp is the unit's compilation directory, which directory 0 repeats in
// DWARF 5: where both are relative, as in packages built with a prefix map (./csu), it must not
// count twice.
func (h *lineHeader) file(i int, comp []byte) File {
	e := h.files[i]
	f := File{Base: comp, Name: e.name}
	if int(e.dir) < len(h.dirs) {
		f.Dir = h.dirs[e.dir]
	}
	if h.version < 5 || len(h.dirs) == 0 {
		return f
	}
	switch first := h.dirs[0]; {
	case e.dir == 0 && (!isAbs(comp) || string(comp) == string(first)):
		f.Base = nil
	case !isAbs(comp) && (isAbs(first) || len(comp) == 0):
		f.Base = first
	}
	return f
}
