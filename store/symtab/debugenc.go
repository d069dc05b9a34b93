package symtab

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"symbolize/ingest/decode"
)

// piece is a range and its candidate.
type piece struct {
	start, end uint64
	c          *candidate
}

// debugEncoder turns bodies into the debug blocks of chunks.
type debugEncoder struct {
	info *debugInfo
	cols columns

	extra, files textWriter // names of functions that are only inlined; files
	nameNo       []uint32   // by subInfo.name: 1 + NameID
	fileNo       []uint32   // by FileRef-1: 1 + FileID
	subs         []subInfo  // by SubRef-1, with the table's numbers
	subKnown     []bool

	chunkFile []uint32 // by FileID: 1 + place among the files of the open chunk
	fileList  []FileID
	chunkSub  []uint32 // by SubRef-1: 1 + place among the subprograms of the chunk
	subList   []SubRef
	lastFile  FileID
	lastName  NameID

	body     flatBody
	calls    []call
	segs     []segment
	states   []lineState
	scopes   uint64
	segments uint64
	lined    uint64

	cutLeft int64 // bytes of bodies that may be unpacked for pieces of them
	leftOut uint64
}

// encodeDebug makes a table with debug information.
func (b *Builder) encodeDebug() *Encoded {
	d := b.info
	sortCandidates(b.cands)
	sortCandidates(d.bare)
	d.rows, d.starts = nil, hashIndex{}
	var named, bare []piece
	collect := func(list *[]piece) func(start, end uint64, c *candidate) {
		return func(start, end uint64, c *candidate) { *list = append(*list, piece{start, end, c}) }
	}
	b.flatten(b.cands, collect(&named))
	b.flatten(d.bare, collect(&bare))
	all := fillGaps(named, bare)
	pieces := all[:0]
	keep := b.limited(collect(&pieces))
	for _, p := range all {
		keep(p.start, p.end, p.c)
	}
	e := &b.enc
	e.debug = b.newDebugEncoder(d)
	// Names of functions are numbered first, so that a name has the same number whether its
	// function first occurs inlined or on its own.
	for i := range pieces {
		if c := pieces[i].c; c.flags&Nameless == 0 {
			e.nameID(c)
		}
	}
	e.debug.extra.first = e.names.count
	e.sumBuf = append(e.sumBuf[:0], debugDomain...)
	for i := range pieces {
		e.piece(pieces[i].start, pieces[i].end, pieces[i].c)
	}
	b.leftOut += e.debug.leftOut
	out := e.finish()
	// Sorted tables accept no additions, and the memory of large tables must not stay
	// with a Builder.
	b.lost, b.info, b.cands, e.ids = d.losses, nil, nil, nil
	return out
}

// fillGaps merges the pieces of named functions with the parts of others between them.
func fillGaps(named, bare []piece) []piece {
	if len(bare) == 0 {
		return named
	}
	out := make([]piece, 0, len(named)+len(bare))
	k := 0
	for _, p := range bare {
		for k < len(named) && named[k].end <= p.start {
			out = append(out, named[k])
			k++
		}
		for p.start < p.end {
			gap := p
			if k < len(named) {
				gap.end = min(gap.end, named[k].start)
			}
			if gap.start < gap.end {
				out = append(out, gap)
			}
			p.start = max(gap.start, gap.end)
			if p.start < p.end { // before a named one
				p.start = max(p.start, named[k].end)
				if named[k].end <= p.end {
					out = append(out, named[k])
					k++
				}
			}
		}
	}
	return append(out, named[k:]...)
}

func (b *Builder) newDebugEncoder(d *debugInfo) *debugEncoder {
	return &debugEncoder{
		info: d, cols: make(columns, numColumns),
		extra:  textWriter{size: b.opts.StringSize, pack: b.enc.pack, by: b.demangler, sum: sha256.New()},
		files:  textWriter{size: b.opts.StringSize, pack: b.enc.pack, sum: sha256.New()},
		nameNo: make([]uint32, len(d.names)), fileNo: make([]uint32, len(d.paths)),
		subs: make([]subInfo, len(d.subs)), subKnown: make([]bool, len(d.subs)),
		chunkFile: make([]uint32, len(d.paths)), chunkSub: make([]uint32, len(d.subs)),
		cutLeft: d.cutBudget(),
	}
}

// file returns the table's number of a file, a new one if it has none yet.
func (e *debugEncoder) file(ref FileRef) FileID {
	if ref == 0 {
		return NoFile
	}
	n := &e.fileNo[ref-1]
	if *n == 0 {
		*n = uint32(e.files.add(e.info.paths[ref-1])) + 1
	}
	return FileID(*n - 1)
}

// sub returns a subprogram with the table's numbers.
func (e *debugEncoder) sub(ref SubRef) subInfo {
	if ref == 0 {
		return subInfo{name: NoName, file: NoFile}
	}
	i := ref - 1
	if !e.subKnown[i] {
		old := e.info.subs[i]
		n := &e.nameNo[old.name]
		if *n == 0 {
			*n = uint32(e.extra.add(e.info.names[old.name])) + 1
		}
		e.subs[i] = subInfo{name: NameID(*n - 1), file: e.file(FileRef(old.file)), line: old.line}
		e.subKnown[i] = true
	}
	return e.subs[i]
}

// localFile returns 1 + the index of a file in the chunk's list, 0 for no file.
func (e *debugEncoder) localFile(f FileID) uint64 {
	if f == NoFile {
		return 0
	}
	n := &e.chunkFile[f]
	if *n == 0 {
		e.fileList = append(e.fileList, f)
		*n = uint32(len(e.fileList))
		e.cols.put(colFiles, zigzag(int64(f)-int64(e.lastFile)))
		e.lastFile = f
	}
	return uint64(*n)
}

// localSub returns 1 + the index of a subprogram in the chunk's list.
func (e *debugEncoder) localSub(ref SubRef) uint64 {
	if ref == 0 {
		return 0
	}
	n := &e.chunkSub[ref-1]
	if *n == 0 {
		s := e.sub(ref)
		e.subList = append(e.subList, ref)
		*n = uint32(len(e.subList))
		e.cols.put(colSubNames, zigzag(int64(s.name)-int64(e.lastName)))
		e.cols.put(colSubFiles, e.localFile(s.file))
		e.cols.put(colSubLines, uint64(s.line))
		e.lastName = s.name
	}
	return uint64(*n)
}

// cut unpacks the calls and segments of a piece of a range, within the budget; otherwise only the
// name of its function.
func (e *debugEncoder) cut(start, end uint64, c *candidate) {
	f := &e.body
	cost, whole := e.info.unpack(c, f, e.cutLeft)
	if e.cutLeft -= cost; !whole {
		e.leftOut++
	}
	f.clip(start, end)
}

// piece appends the calls and segments of a range, and its digest to sum.
func (e *debugEncoder) piece(start, end uint64, c *candidate, sum []byte) []byte {
	f := &e.body
	if start == c.start && end == c.end {
		e.info.unpack(c, f, math.MaxInt64)
	} else {
		e.cut(start, end, c)
	}
	fn := e.sub(f.sub)
	e.convert(f)
	sum = appendSubDigest(sum, fn)
	sum = binary.AppendUvarint(sum, uint64(len(f.calls)))
	for i := range f.calls {
		sum = appendCallDigest(sum, &e.calls[i], e.sub(f.calls[i].sub))
	}
	sum = appendSegmentsDigest(sum, e.segs)
	e.scopes += uint64(len(e.calls))
	e.segments += uint64(len(e.segs))
	e.cols.put(colPieceSubs, e.localSub(f.sub))
	e.cols.put(colPieceCalls, uint64(len(e.calls)))
	e.cols.put(colPieceSegs, uint64(len(e.segs)))
	e.states = append(e.states[:0], lineState{fn.file, fn.line, fn.line})
	e.putCalls(f)
	e.putSegments()
	return sum
}

// convert changes the body to the table's numbers. They are numbered by first use, and so must not
// depend on the division into chunks.
func (e *debugEncoder) convert(f *flatBody) {
	e.calls, e.segs = e.calls[:0], e.segs[:0]
	for i := range f.calls {
		c := &f.calls[i]
		e.sub(c.sub)
		e.calls = append(e.calls, call{
			parent: c.parent, file: e.file(c.file), line: c.line, column: c.column,
		})
	}
	for i := range f.segs {
		s := &f.segs[i]
		e.segs = append(e.segs, segment{
			size: s.end - s.start, call: s.call, file: e.file(s.file), line: s.line,
			column: s.column,
		})
		if s.file != 0 && s.line != 0 {
			e.lined += s.end - s.start
		}
	}
}

func (e *debugEncoder) putCalls(f *flatBody) {
	last := int32(0) // depth of the call before
	for i := range e.calls {
		c := &e.calls[i]
		depth := f.calls[i].depth
		parent := &e.states[c.parent+1]
		sub := e.sub(f.calls[i].sub)
		e.cols.put(colUps, uint64(last+1-depth))
		e.cols.put(colCallSubs, e.localSub(f.calls[i].sub))
		if c.file == parent.file {
			e.cols.put(colCallFiles, sameFile)
		} else {
			e.cols.put(colCallFiles, noFile+e.localFile(c.file))
		}
		e.cols.put(colCallLines, zigzag(int64(c.line)-int64(parent.call)))
		parent.call = c.line
		e.cols.put(colCallColumns, uint64(c.column))
		last = depth
		e.states = append(e.states, lineState{sub.file, sub.line, sub.line})
	}
}

func (e *debugEncoder) putSegments() {
	last := int32(-1)
	for i := range e.segs {
		s := &e.segs[i]
		if i+1 < len(e.segs) {
			e.cols.put(colLengths, s.size)
		}
		e.cols.put(colSegCalls, zigzag(int64(s.call)-int64(last)))
		last = s.call
		st := &e.states[s.call+1]
		switch {
		case s.file == NoFile:
			e.cols.put(colSegFiles, noFile)
		case s.file == st.file:
			e.cols.put(colSegFiles, sameFile)
		default:
			e.cols.put(colSegFiles, firstFile-1+e.localFile(s.file))
			st.file = s.file
		}
		if s.line == 0 {
			e.cols.put(colSegLines, 0)
		} else {
			e.cols.put(colSegLines, 1+zigzag(int64(s.line)-int64(st.line)))
			st.line = s.line
		}
		e.cols.put(colSegColumns, uint64(s.column))
	}
}

// appendTo appends the block of the open chunk and begins the next.
func (e *debugEncoder) appendTo(raw []byte) []byte {
	for _, i := range [...]int{colCallColumns, colSegColumns} {
		if !slices.ContainsFunc(e.cols[i], func(b byte) bool { return b != 0 }) {
			e.cols[i] = e.cols[i][:0]
		}
	}
	raw = e.cols.appendTagged(raw, tagDebug)
	e.cols.reset()
	for _, f := range e.fileList {
		e.chunkFile[f] = 0
	}
	for _, s := range e.subList {
		e.chunkSub[s-1] = 0
	}
	e.fileList, e.subList = e.fileList[:0], e.subList[:0]
	e.lastFile, e.lastName = 0, 0
	return raw
}

// The content of a table with debug information enters its digest with the table's numbers: they
// follow from the content. Their strings come last.
func appendSubDigest(b []byte, s subInfo) []byte {
	b = binary.AppendUvarint(b, uint64(s.name+1))
	b = binary.AppendUvarint(b, uint64(s.file+1))
	return binary.AppendUvarint(b, uint64(s.line))
}

func appendCallDigest(b []byte, c *call, s subInfo) []byte {
	b = binary.AppendUvarint(b, uint64(c.parent+1))
	b = appendSubDigest(b, s)
	b = binary.AppendUvarint(b, uint64(c.file+1))
	b = binary.AppendUvarint(b, uint64(c.line))
	return binary.AppendUvarint(b, uint64(c.column))
}

func appendSegmentsDigest(b []byte, segs []segment) []byte {
	b = binary.AppendUvarint(b, uint64(len(segs)))
	for i := range segs {
		s := &segs[i]
		for _, v := range [...]uint64{
			s.size, uint64(s.call + 1), uint64(s.file + 1), uint64(s.line), uint64(s.column),
		} {
			b = binary.AppendUvarint(b, v)
		}
	}
	return b
}

// Columns of a chunk's ranges, in the order of the format.
const (
	colGaps = iota
	colSizes
	colKinds
	colExtras // not per range
	numRangeColumns
)

// Columns of a chunk's debug block, in the order of the format.
const (
	colFiles       = iota // per file that the chunk uses
	colSubNames           // per subprogram that the chunk uses
	colSubFiles           //
	colSubLines           //
	colPieceSubs          // per range
	colPieceCalls         //
	colPieceSegs          //
	colUps                // per call
	colCallSubs           //
	colCallFiles          //
	colCallLines          //
	colCallColumns        // … or none at all
	colLengths            // per segment but the last of its range
	colSegCalls           // per segment
	colSegFiles           //
	colSegLines           //
	colSegColumns         // … or none at all
	numColumns
)

// columns are the columns of one block.
type columns [][]byte

func (c columns) put(i int, v uint64) { c[i] = binary.AppendUvarint(c[i], v) }

func (c columns) reset() {
	for i := range c {
		c[i] = c[i][:0]
	}
}

func (c columns) len() int {
	n := 0
	for i := range c {
		n += len(c[i])
	}
	return n
}

// append appends the block in encoded form: the lengths of all columns but the last,
// then the columns.
func (c columns) append(b []byte) []byte {
	for i := range c[:len(c)-1] {
		b = binary.AppendUvarint(b, uint64(len(c[i])))
	}
	for i := range c {
		b = append(b, c[i]...)
	}
	return b
}

// appendTagged appends the block in encoded form, tagged.
func (c columns) appendTagged(b []byte, tag uint64) []byte {
	size := c.len()
	for i := range c[:len(c)-1] {
		size += uvarintLen(len(c[i]))
	}
	b = binary.AppendUvarint(b, tag)
	return c.append(binary.AppendUvarint(b, uint64(size)))
}

// read decodes all of r into c.
func (c columns) read(r *decode.Reader) {
	var lengths [numColumns]uint64
	last := len(c) - 1
	for i := range c[:last] {
		lengths[i] = r.Uvarint()
	}
	for i := range c[:last] {
		c[i] = r.Bytes(lengths[i])
	}
	c[last] = r.Bytes(uint64(r.Left()))
}

func zigzag(d int64) uint64   { return uint64(d<<1) ^ uint64(d>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// call is an inlined call of a range, with the table's numbers.
type call struct {
	parent       int32 // call that it is in; -1: none
	sub          uint32
	file         FileID
	line, column uint32
}

// segment is a part of a range in which call, file, line, and column are the same.
type segment struct {
	size         uint64
	call         int32 // the innermost one; -1: none
	file         FileID
	line, column uint32
}

// Values of colSegFiles before file numbers.
const (
	sameFile  = 0 // as the last segment of that call; at first the file of its declaration
	noFile    = 1
	firstFile = 2
)

// lineState is the base of the next line number of a call or function.
type lineState struct {
	file FileID
	line uint32 // of segments
	call uint32 // of calls in it
}
