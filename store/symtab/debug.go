package symtab

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"

	"symbolize/ingest/addr"
)

// Maxima of a function; the comments have the maximum seen. A reader refuses more, Builder leaves
// out the excess.
const (
	MaxDepth    = 1 << 10 // nesting of inlined calls; 47
	MaxScopes   = 1 << 17 // inlined calls of one function; 28,624
	MaxSegments = 1 << 18 // line segments of one function; 18,902
)

// FileRef is a source file added to a Builder. The zero value means no file.
type FileRef uint32

// SubRef is a function's identity added to a Builder. The zero value means no identity.
type SubRef uint32

// NoParent marks an inlined call directly in its function.
const NoParent int32 = -1

// Subprogram is the identity of a function, which all its instances share.
type Subprogram struct {
	Linkage []byte  // DW_AT_linkage_name: the name that the table keeps, if there is one
	Name    []byte  // DW_AT_name: else this one
	File    FileRef // of the declaration
	Line    uint32  // of the declaration, where the function starts; 0 if unknown
}

// DebugFunc is a function as its debug information describes it. All addresses are the object's;
// code that the linker dropped must have been left out.
type DebugFunc struct {
	// Sub is the function's identity. Without one (or one without a name) the lines are kept
	// nevertheless, for addresses that no other function covers: assembly files have lines and no
	// functions.
	Sub     SubRef
	Ranges  []addr.Range // in any order
	Inlines []Inline     // in pre-order
	// Lines are the rows that cover the ranges, in ascending order; those outside are left out. Of
	// rows with one address the last counts.
	Lines []Line
}

// Inline is a call that was inlined.
type Inline struct {
	Sub        SubRef
	Parent     int32 // index into DebugFunc.Inlines, or NoParent
	CallFile   FileRef
	CallLine   uint32 // 0 if unknown
	CallColumn uint32 // 0 if unknown
	Ranges     []addr.Range
}

// Line is the source position of the code from Addr to the next Line. Without a file and
// with line 0 the position is unknown: a sequence ends with it. Line 0 of a file is
// code without a source line.
type Line struct {
	Addr         addr.Addr
	File         FileRef
	Line, Column uint32
}

// Losses counts the parts that Builder left out of a table.
type Losses struct {
	Outside  uint64 // inlined calls, or parts, outside the enclosing call or function
	Disorder uint64 // inlined calls not in pre-order, or nested deeper than MaxDepth
	Large    uint64 // functions of more than MaxScopes or MaxSegments: kept without both
	Copies   uint64 // functions that are there already, from another unit
}

// bodyRef is the position of a function's calls and segments in debugInfo.blocks: 1 + (block<<32 |
// offset), 0 for none.
type bodyRef uint64

// Memory for bodies is allocated in blocks of growing size, in bytes: tables of a single
// function, as BPF programs have them, are made by the hundred.
const (
	firstBodyBlock = 4 << 10
	bodyBlock      = 1 << 20 // the largest
)

// subInfo is a subprogram: with the builder's numbers in debugInfo.subs, with the table's numbers
// elsewhere.
type subInfo struct {
	name NameID
	file FileID
	line uint32
}

// debugInfo is the part of a Builder besides symbols. Functions are stored in a compact
// form immediately, so that a table of two million inlined calls is built in little
// more memory than it has unpacked.
type debugInfo struct {
	paths  []string // by FileRef-1
	files  map[string]FileRef
	names  []string // by subInfo.name
	nameAt hashIndex
	subs   []subInfo // by SubRef-1; file is a FileRef
	subAt  hashIndex

	bare    []candidate // functions without a name
	starts  hashIndex   // of candidates, by start and name: copies of a function, not its aliases
	rows    []uint32    // lines of a candidate, parallel to Builder.cands from base on
	blocks  [][]byte
	body    []byte
	columns bool
	segs    segmentBuilder
	losses  Losses
}

// debug returns the Builder's debug information, nil for tables of names.
func (b *Builder) debug() *debugInfo {
	if b.info == nil {
		b.info = &debugInfo{
			files: make(map[string]FileRef), columns: b.opts.Columns,
		}
	}
	return b.info
}

// Losses returns the losses of the table under construction or, after Encode, of the
// encoded one.
func (b *Builder) Losses() Losses {
	if b.info == nil {
		return b.lost
	}
	return b.info.losses
}

// File adds a source file. The path is kept unchanged: the reader of the debug information joins
// its parts and cleans it. For an empty path, or one longer than MaxName, File returns zero. The
// part after a NUL is cut off.
func (b *Builder) File(path []byte) FileRef {
	path = untilNUL(path)
	if len(path) == 0 || len(path) > MaxName {
		return 0
	}
	d := b.debug()
	if ref, ok := d.files[string(path)]; ok {
		return ref
	}
	if len(d.paths) >= MaxTable {
		return 0
	}
	if !b.reserve(textCost + int64(len(path))) {
		return 0
	}
	s := string(path)
	d.paths = append(d.paths, s)
	d.files[s] = FileRef(len(d.paths))
	return FileRef(len(d.paths))
}

// Sub adds a function's identity. Without a name, or with a name longer than MaxName, it returns
// zero.
func (b *Builder) Sub(s Subprogram) SubRef {
	name := s.Linkage
	if len(name) == 0 {
		name = s.Name
	}
	if len(name) == 0 || len(name) > MaxName {
		return 0
	}
	d := b.debug()
	nameHash := maphash.Bytes(hashSeed, name)
	hash := mix(nameHash ^ uint64(s.File)<<32 ^ uint64(s.Line))
	known := d.subAt.find(hash, func(n uint32) bool {
		k := &d.subs[n-1]
		return k.line == s.Line && k.file == FileID(s.File) && d.names[k.name] == string(name)
	})
	if known != 0 {
		return SubRef(known)
	}
	if bytes.IndexByte(name, 0) >= 0 { // no such name is known
		s.Linkage, s.Name = untilNUL(s.Linkage), untilNUL(s.Name)
		return b.Sub(s)
	}
	id := d.nameAt.find(nameHash, func(n uint32) bool { return d.names[n-1] == string(name) })
	if id == 0 {
		if len(d.names) >= MaxTable || !b.reserve(textCost+int64(len(name))) {
			return 0
		}
		d.names = append(d.names, string(name))
		id = uint32(len(d.names))
		d.nameAt.add(nameHash, id)
	}
	d.subs = append(d.subs, subInfo{name: NameID(id - 1), file: FileID(s.File), line: s.Line})
	d.subAt.add(hash, uint32(len(d.subs)))
	return SubRef(len(d.subs))
}

var nul = []byte{0}

func untilNUL(b []byte) []byte {
	b, _, _ = bytes.Cut(b, nul)
	return b
}

// AddFunction adds a function with its inlined calls and lines. Each of its ranges becomes a
// physical function of its own, as symbols have it too (foo, foo.cold). The same function may come
// from several units, as in C++: of copies with the same start and name the one with the most lines
// stays, of equal ones the first. f is not retained.
func (b *Builder) AddFunction(f *DebugFunc) {
	d := b.debug()
	p := &d.segs
	if !p.start(f.Ranges) || len(b.cands)+len(d.bare)+p.numRanges() >= MaxTable/2 ||
		!b.reserve(rangeCost*int64(p.numRanges())) {
		return
	}
	lines := f.Lines
	if !slices.IsSortedFunc(lines, compareLines) {
		lines = slices.Clone(lines)
		slices.SortStableFunc(lines, compareLines)
	}
	if b.allKnown(f.Sub, lines) {
		d.losses.Copies++
		return
	}
	if !p.calls(f.Inlines, &d.losses) {
		b.leftOut++
	}
	p.segments(lines, d.columns)
	for i := range p.numRanges() {
		b.addRange(f, p.ranges[i], lines)
		b.held += int64(len(d.body))
	}
}

func compareLines(a, b Line) int { return cmp.Compare(a.Addr, b.Addr) }

// rowsIn returns the number of lines that begin in a range.
func rowsIn(lines []Line, r addr.Range) uint32 {
	find := func(a addr.Addr) int {
		n, _ := slices.BinarySearchFunc(lines, a, func(l Line, a addr.Addr) int {
			return cmp.Compare(l.Addr, a)
		})
		return n
	}
	return uint32(find(r.End) - find(r.Start))
}

// copyOf returns 1 + the index of the candidate with a start and a name, 0 if there is none.
func (b *Builder) copyOf(hash, start uint64, name NameID) uint32 {
	return b.info.starts.find(hash, func(n uint32) bool {
		c := &b.cands[n-1]
		return c.start == start && c.nameRef == uint32(name)+1
	})
}

// hashStart is the hash of debugInfo.starts.
func hashStart(start uint64, name NameID) uint64 { return mix(start ^ mix(uint64(name)^hashKey)) }

// allKnown reports whether a function is a copy in all its ranges, none with more
// lines.
func (b *Builder) allKnown(sub SubRef, lines []Line) bool {
	if sub == 0 {
		return false
	}
	d := b.info
	name := d.subs[sub-1].name
	for _, r := range d.segs.ranges[:d.segs.numRanges()] {
		start := uint64(r.Start)
		n := b.copyOf(hashStart(start, name), start, name)
		if n == 0 || d.rows[n-1] < rowsIn(lines, r) {
			return false
		}
	}
	return true
}

// addRange adds one range of the current function.
func (b *Builder) addRange(f *DebugFunc, r addr.Range, lines []Line) {
	d := b.info
	rows := rowsIn(lines, r)
	c := candidate{
		start: uint64(r.Start), end: uint64(r.End), size: uint64(r.End - r.Start),
	}
	if f.Sub == 0 {
		c.seq = uint32(len(d.bare))
		c.body = d.keep(f, r)
		c.flags = Nameless
		d.bare = append(d.bare, c)
		return
	}
	id := d.subs[f.Sub-1].name
	hash := hashStart(c.start, id)
	c.name, c.nameRef = d.names[id], uint32(id)+1
	c.underscores = underscores(c.name)
	if n := b.copyOf(hash, c.start, id); n != 0 {
		d.losses.Copies++
		old := &b.cands[n-1]
		if rows > d.rows[n-1] {
			c.seq, c.body = old.seq, d.keep(f, r)
			*old, d.rows[n-1] = c, rows
		}
		return
	}
	c.seq = uint32(len(b.cands))
	c.body = d.keep(f, r)
	d.starts.add(hash, c.seq+1)
	for len(d.rows) < len(b.cands) {
		d.rows = append(d.rows, 0)
	}
	d.rows = append(d.rows, rows)
	b.cands = append(b.cands, c)
}
