package gopclntab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// layoutVersion is a layout of the table.
type layoutVersion uint8

// The layouts, named by the first release of Go that wrote them.
const (
	go12 layoutVersion = iota + 1
	go116
	go118
	go120
)

// magics of the layouts. In the wrong byte order none is equal to another.
var magics = [...]uint32{
	go12: 0xfffffffb, go116: 0xfffffffa, go118: 0xfffffff0, go120: 0xfffffff1,
}

// NoFile is the number of an unknown file.
const NoFile uint32 = 1<<32 - 1

// Limits against hostile tables. Real ones stay far below; the comments have the maximum
// seen in cmd/go.
const (
	maxName    = 64 << 10 // bytes of a function's name; 564
	maxInlines = 1 << 17  // inlined calls of one function; 148
	maxDepth   = 1 << 10  // nesting of inlined calls; 6
	maxFiles   = 1 << 22  // 1,106
)

// Input holds the parts of a file that a Table is read from.
type Input struct {
	Name   string // of the file, for messages
	Offset int64  // of Data in the file, for messages
	// Data is the table, from its header on, and may be longer. It must not change.
	Data []byte
	// Addr is the address of Data, in the process as the file has it.
	Addr addr.Addr
	// Text is the address of runtime.text, from which Go 1.18 and later count.
	Text addr.Addr
	// FuncData lists the possible addresses of go:func.*, which holds the inline trees of
	// Go 1.18 and later. The first consistent one is used.
	FuncData []addr.Addr
	// Memory returns the process's memory from an address on as far as the file has it,
	// at most limit bytes. Nil: only Data is available.
	Memory func(at addr.Addr, limit uint64) []byte
}

// A Table is a decoded pclntab. It can be used by several goroutines.
type Table struct {
	in      Input
	version layoutVersion
	big     bool
	ptr     int    // size of a pointer, bytes
	quantum uint64 // instructions are multiples of it
	field   int    // size of an entry of functab, bytes

	numFuncs int
	names    []byte // functions' names, with their NULs
	pctab    []byte // tables of values by address
	functab  []byte
	structs  []byte // base of functab's offsets: _func structs
	structAt int    // of structs in Input.Data
	paths    []byte // files' names, with their NULs
	files    []uint32
	cuFiles  []uint32 // number of a file, by place in cutab

	shape shape
	trees trees
}

// matchHeader reports whether b begins with a table's header. Eight bytes are enough.
func matchHeader(b []byte) bool {
	_, _, ok := magic(b)
	return ok
}

// magic returns the version and byte order of a header.
func magic(b []byte) (v layoutVersion, big, ok bool) {
	if len(b) < 8 || b[4] != 0 || b[5] != 0 || b[6] != 1 && b[6] != 2 && b[6] != 4 ||
		b[7] != 4 && b[7] != 8 {
		return 0, false, false
	}
	if i := slices.Index(magics[:], binary.LittleEndian.Uint32(b)); i > 0 {
		return layoutVersion(i), false, true
	}
	i := slices.Index(magics[:], binary.BigEndian.Uint32(b))
	return layoutVersion(i), true, i > 0
}

// New decodes the header of a table and determines the layout of its inline trees. The error is a
// *decode.Error.
func New(in Input) (*Table, error) {
	t := &Table{in: in}
	v, big, ok := magic(in.Data)
	if !ok {
		return nil, t.fail(0, "unknown header")
	}
	t.version, t.big = v, big
	t.quantum, t.ptr = uint64(in.Data[6]), int(in.Data[7])
	t.field = t.ptr
	if v >= go118 {
		t.field = 4
	}
	var err error
	if v == go12 {
		err = t.header12()
	} else {
		err = t.header116()
	}
	if err != nil {
		return nil, err
	}
	t.shape = t.findShape()
	t.findTrees()
	return t, nil
}

func (t *Table) fail(off int, format string, args ...any) error {
	return &decode.Error{
		Name: t.in.Name, Offset: t.in.Offset + int64(off),
		Reason: ".gopclntab: " + fmt.Sprintf(format, args...),
	}
}

// header12 reads the header of Go 1.2: the number of functions, functab, and the place of the file
// table. All offsets count from the header.
func (t *Table) header12() error {
	d := t.in.Data
	n, ok := t.word(d, 8)
	head := 8 + t.ptr
	if !ok || n > uint64(len(d)-head)/uint64(2*t.ptr) {
		return t.fail(8, "%d functions do not fit into %d bytes", n, len(d))
	}
	t.numFuncs = int(n)
	t.names, t.pctab, t.paths, t.structs, t.functab = d, d, d, d, d[head:]
	at := head + (2*t.numFuncs+1)*t.ptr
	off, ok1 := t.u32(d, at)
	count, ok2 := t.u32(d, int(off))
	if !ok1 || !ok2 {
		return t.fail(at, "file table lies outside")
	}
	if count > maxFiles || uint64(count) > uint64(len(d)-int(off))/4 {
		return t.fail(int(off), "%d files do not fit", count)
	}
	t.files = make([]uint32, count)
	for i := 1; i < len(t.files); i++ {
		t.files[i], _ = t.u32(d, int(off)+4*i)
	}
	if count > 0 {
		t.files[0] = NoFile // numbers begin with 1
	}
	return nil
}

// header116 reads the header of Go 1.16 and later: two counts, since Go 1.18 the start of the text,
// and the offsets of five parts.
func (t *Table) header116() error {
	d := t.in.Data
	words := make([]uint64, 8)
	count := 7
	if t.version >= go118 {
		count = 8
	}
	for i := range count {
		w, ok := t.word(d, 8+i*t.ptr)
		if !ok {
			return t.fail(len(d), "header is cut off")
		}
		words[i] = w
	}
	numFuncs, numFiles, parts := words[0], words[1], words[count-5:count]
	last := uint64(8 + count*t.ptr)
	for i, p := range parts {
		if p < last || p > uint64(len(d)) {
			return t.fail(8+(count-5+i)*t.ptr,
				"part %d at %#x lies outside or before another", i, p)
		}
		last = p
	}
	t.names = d[parts[0]:parts[1]]
	cutab := d[parts[1]:parts[2]]
	t.paths = d[parts[2]:parts[3]]
	t.pctab = d[parts[3]:parts[4]]
	t.structAt = int(parts[4])
	t.structs = d[t.structAt:]
	t.functab = t.structs
	if numFuncs > uint64(len(t.functab))/uint64(2*t.field) {
		return t.fail(8, "%d functions do not fit into %d bytes", numFuncs, len(t.functab))
	}
	t.numFuncs = int(numFuncs)
	if numFiles > min(maxFiles, uint64(len(t.paths))) {
		return t.fail(8+t.ptr, "%d files do not fit into %d bytes", numFiles, len(t.paths))
	}
	t.files = make([]uint32, 0, numFiles)
	for at := 0; uint64(len(t.files)) < numFiles; {
		n := bytes.IndexByte(t.paths[at:], 0)
		if n < 0 {
			break
		}
		t.files = append(t.files, uint32(at))
		at += n + 1
	}
	t.numberFiles(cutab)
	return nil
}

// numberFiles turns cutab, which lists the files of each compilation unit by their
// offsets, into numbers of files.
func (t *Table) numberFiles(cutab []byte) {
	t.cuFiles = make([]uint32, len(cutab)/4)
	for i := range t.cuFiles {
		off, _ := t.u32(cutab, 4*i)
		n, ok := slices.BinarySearch(t.files, off)
		t.cuFiles[i] = NoFile // such an offset is the linker's mark of an unused file
		if ok {
			t.cuFiles[i] = uint32(n)
		}
	}
}

// File returns the path of a file as the linker wrote it, a part of Input.Data; nil for NoFile and
// numbers without a name.
func (t *Table) File(number uint32) []byte {
	if uint64(number) >= uint64(len(t.files)) || t.files[number] == NoFile {
		return nil
	}
	return cString(t.paths, t.files[number])
}

// cString returns the string at off, without its NUL. It is cut at maxName and where b ends.
func cString(b []byte, off uint32) []byte {
	if uint64(off) >= uint64(len(b)) {
		return nil
	}
	b = b[off:]
	b = b[:min(len(b), maxName)]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i:i]
	}
	return b
}

// u32 reads a number at an offset. Ok is false outside b.
func (t *Table) u32(b []byte, off int) (v uint32, ok bool) {
	if off < 0 || off > len(b)-4 {
		return 0, false
	}
	return decode.U32(b[off:], t.big), true
}

// word reads a number of the size of a pointer.
func (t *Table) word(b []byte, off int) (v uint64, ok bool) {
	if t.ptr == 4 {
		v, ok := t.u32(b, off)
		return uint64(v), ok
	}
	if off < 0 || off > len(b)-8 {
		return 0, false
	}
	return decode.U64(b[off:], t.big), true
}
