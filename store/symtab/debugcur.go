package symtab

import (
	"encoding/binary"
	"math"
	"math/bits"

	"symbolize/ingest/decode"
)

// maxChunkSubs bounds the files and the subprograms that one chunk uses. Builder
// stays below: a chunk is cut at maxChunkSize, an entry takes three bytes and a use.
const maxChunkSubs = 1 << 19

// debugCursor walks the debug information of one unpacked chunk, range by range,
// beside a chunkCursor. Ranges that nobody asks about are skipped, not decoded.
type debugCursor struct {
	names, numFiles uint64 // of the table

	cols  columns
	files []FileID
	subs  []subInfo

	// The range that load decoded.
	fn    uint32 // 1 + its place in subs; 0: none
	calls []call // sub: 1 + place in subs; 0: none
	segs  []segment

	states []lineState
	path   []int32
	skip   struct{ calls, segs, pieces uint64 }
}

// open starts the walk. A chunk without the block is an error in a table that has
// them.
func (d *debugCursor) open(body []byte) error {
	if body == nil {
		return formatError("chunk without debug information")
	}
	d.skip.calls, d.skip.segs, d.skip.pieces = 0, 0, 0
	r := decode.New("debug information", body, 0, false)
	var n [numColumns - 1]uint64
	for i := range n {
		n[i] = r.Uvarint()
	}
	for i := range n {
		d.cols[i] = r.Bytes(n[i])
	}
	d.cols[numColumns-1] = r.Bytes(uint64(r.Left()))
	if err := r.Err(); err != nil {
		return formatError("%v", err)
	}
	return d.openLists()
}

// openLists decodes which files and subprograms the chunk uses.
func (d *debugCursor) openLists() error {
	d.files, d.subs = d.files[:0], d.subs[:0]
	last := int64(0)
	for col := d.cols[colFiles]; len(col) > 0; {
		v, ok := uvarint(&col)
		last += unzigzag(v)
		if !ok || last < 0 || uint64(last) >= d.numFiles || len(d.files) == maxChunkSubs {
			return formatError("file number out of range")
		}
		d.files = append(d.files, FileID(last))
	}
	last = 0
	names, files, lines := d.cols[colSubNames], d.cols[colSubFiles], d.cols[colSubLines]
	for len(names) > 0 {
		v, ok1 := uvarint(&names)
		file, ok2 := uvarint(&files)
		line, ok3 := uvarint(&lines)
		last += unzigzag(v)
		if !ok1 || !ok2 || !ok3 || last < 0 || uint64(last) >= d.names ||
			file > uint64(len(d.files)) || line > math.MaxUint32 || len(d.subs) == maxChunkSubs {
			return formatError("subprogram out of range")
		}
		s := subInfo{name: NameID(last), file: NoFile, line: uint32(line)}
		if file > 0 {
			s.file = d.files[file-1]
		}
		d.subs = append(d.subs, s)
	}
	if len(files)+len(lines) > 0 {
		return formatError("columns of subprograms differ in length")
	}
	return nil
}

// subOf returns a subprogram by 1 + its place.
func (d *debugCursor) subOf(i uint32) subInfo {
	if i == 0 {
		return subInfo{name: NoName, file: NoFile}
	}
	return d.subs[i-1]
}

// skipNumbers cuts n numbers off a column.
func skipNumbers(col *[]byte, n uint64) bool {
	b := *col
	for n >= 8 && len(b) >= 8 {
		// A number ends in a byte with its top bit clear.
		ends := uint64(bits.OnesCount64(^binary.LittleEndian.Uint64(b) & 0x8080808080808080))
		n -= ends
		b = b[8:]
	}
	for n > 0 {
		if len(b) == 0 {
			return false
		}
		if b[0] < 0x80 {
			n--
		}
		b = b[1:]
	}
	*col = b
	return true
}

// pass skips a range. The work is put off until load needs a later one.
func (d *debugCursor) pass() error {
	_, ok1 := uvarint(&d.cols[colPieceSubs])
	calls, ok2 := uvarint(&d.cols[colPieceCalls])
	segs, ok3 := uvarint(&d.cols[colPieceSegs])
	if !ok1 || !ok2 || !ok3 || calls > MaxScopes || segs == 0 || segs > MaxSegments {
		return formatError("debug information ends early")
	}
	d.skip.calls += calls
	d.skip.segs += segs
	d.skip.pieces++
	return nil
}

// catchUp cuts off what was passed.
func (d *debugCursor) catchUp() bool {
	if d.skip.pieces == 0 {
		return true
	}
	ok := true
	for i := colUps; i < numColumns; i++ {
		n := d.skip.segs
		switch {
		case (i == colCallColumns || i == colSegColumns) && len(d.cols[i]) == 0:
			continue
		case i <= colCallColumns:
			n = d.skip.calls
		case i == colLengths:
			n -= d.skip.pieces
		}
		ok = ok && skipNumbers(&d.cols[i], n)
	}
	d.skip.calls, d.skip.segs, d.skip.pieces = 0, 0, 0
	return ok
}

// load decodes what the next range, of that many bytes, shows.
func (d *debugCursor) load(size uint64) error {
	if !d.catchUp() {
		return formatError("debug information ends early")
	}
	fn, ok1 := uvarint(&d.cols[colPieceSubs])
	calls, ok2 := uvarint(&d.cols[colPieceCalls])
	segs, ok3 := uvarint(&d.cols[colPieceSegs])
	// Each call and each segment takes a byte at least: nothing is allocated for more.
	if !ok1 || !ok2 || !ok3 || fn > uint64(len(d.subs)) || segs == 0 ||
		calls > min(MaxScopes, uint64(len(d.cols[colCallSubs]))) ||
		segs > min(MaxSegments, uint64(len(d.cols[colSegCalls]))) {
		return formatError("debug information of a range is out of bounds")
	}
	d.fn = uint32(fn)
	s := d.subOf(d.fn)
	d.states = append(d.states[:0], lineState{s.file, s.line, s.line})
	if !d.loadCalls(int(calls)) {
		return formatError("inlined call out of bounds")
	}
	if !d.loadSegments(int(segs), size) {
		return formatError("line segment out of bounds")
	}
	return nil
}

func (d *debugCursor) loadCalls(n int) bool {
	d.calls, d.path = d.calls[:0], d.path[:0]
	ups, subs, files, lines, cols := d.cols[colUps], d.cols[colCallSubs], d.cols[colCallFiles],
		d.cols[colCallLines], d.cols[colCallColumns]
	columns := len(cols) > 0
	open := d.path
	for i := range n {
		up, ok1 := uvarint(&ups)
		sub, ok2 := uvarint(&subs)
		file, ok3 := uvarint(&files)
		line, ok4 := uvarint(&lines)
		col, ok5 := uint64(0), true
		if columns {
			col, ok5 = uvarint(&cols)
		}
		if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || up > uint64(len(open)) ||
			sub > uint64(len(d.subs)) || col > math.MaxUint32 {
			return false
		}
		open = open[:uint64(len(open))-up]
		c := call{parent: -1, sub: uint32(sub), column: uint32(col)}
		if len(open) > 0 {
			c.parent = open[len(open)-1]
		}
		if len(open) == MaxDepth {
			return false
		}
		open = append(open, int32(i))
		parent := &d.states[c.parent+1]
		if c.file, ok1 = d.file(file, parent.file); !ok1 {
			return false
		}
		v := int64(parent.call) + unzigzag(line)
		if v < 0 || v > math.MaxUint32 {
			return false
		}
		c.line = uint32(v)
		parent.call = c.line
		s := d.subOf(c.sub)
		d.states = append(d.states, lineState{s.file, s.line, s.line})
		d.calls = append(d.calls, c)
	}
	d.path = open
	d.cols[colUps], d.cols[colCallSubs], d.cols[colCallFiles] = ups, subs, files
	d.cols[colCallLines], d.cols[colCallColumns] = lines, cols
	return true
}

// file decodes the number of a file, where the last one may be meant.
func (d *debugCursor) file(v uint64, last FileID) (FileID, bool) {
	switch {
	case v == sameFile:
		return last, true
	case v == noFile:
		return NoFile, true
	case v-firstFile >= uint64(len(d.files)):
		return NoFile, false
	}
	return d.files[v-firstFile], true
}

func (d *debugCursor) loadSegments(n int, size uint64) bool {
	d.segs = d.segs[:0]
	lens, calls, files, lines, cols := d.cols[colLengths], d.cols[colSegCalls], d.cols[colSegFiles],
		d.cols[colSegLines], d.cols[colSegColumns]
	columns := len(cols) > 0
	last := int64(-1)
	for i := range n {
		length, ok1 := size, true
		if i+1 < n {
			length, ok1 = uvarint(&lens)
		}
		k, ok2 := uvarint(&calls)
		file, ok3 := uvarint(&files)
		line, ok4 := uvarint(&lines)
		col, ok5 := uint64(0), true
		if columns {
			col, ok5 = uvarint(&cols)
		}
		last += unzigzag(k)
		if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || length == 0 || length > size ||
			last < -1 || last >= int64(len(d.calls)) || col > math.MaxUint32 {
			return false
		}
		size -= length
		st := &d.states[last+1]
		f, ok := d.file(file, st.file)
		if !ok {
			return false
		}
		if file >= firstFile {
			st.file = f
		}
		v := int64(0)
		if line > 0 {
			v = int64(st.line) + unzigzag(line-1)
			if v <= 0 || v > math.MaxUint32 {
				return false
			}
			st.line = uint32(v)
		}
		d.segs = append(d.segs, segment{
			size: length, call: int32(last), file: f, line: uint32(v), column: uint32(col),
		})
	}
	d.cols[colLengths], d.cols[colSegCalls], d.cols[colSegFiles] = lens, calls, files
	d.cols[colSegLines], d.cols[colSegColumns] = lines, cols
	return size == 0
}

// close checks, after the last range, that nothing is left over.
func (d *debugCursor) close() error {
	if !d.catchUp() {
		return formatError("debug information ends early")
	}
	for i := colPieceSubs; i < numColumns; i++ {
		if len(d.cols[i]) > 0 {
			return formatError("debug information is left over")
		}
	}
	return nil
}
