package symtab

import (
	"encoding/binary"
	"math"
	"math/bits"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// maxChunkSubs bounds the files and the subprograms that one chunk uses. Builder stays below: a
// chunk is cut at maxChunkSize, an entry needs three bytes and a use.
const maxChunkSubs = 1 << 19

// debugCursor walks the debug information of one unpacked chunk, range by range, beside a
// chunkCursor. Unused ranges are skipped, not decoded.
type debugCursor struct {
	names, numFiles uint64 // of the table

	cols  [numColumns][]byte
	none  [numColumns]bool // columns that the chunk does not have: all zeros
	files []FileID
	subs  []subInfo

	// The range that load decoded.
	fn    uint32    // 1 + its place in subs; 0: none
	calls []call    // sub: 1 + place in subs; 0: none
	segs  []segment // see load; size is set if all were asked for

	states  []lineState
	path    []int32
	scratch [5][]uint64
	lengths []uint64 // of all segments but the last
	last    uint64   // length of that one
	found   []int32  // segments that addresses fall into
	skip    struct{ calls, segs, pieces uint64 }
}

// open starts the walk. A chunk without the block is an error in a table that has them.
func (d *debugCursor) open(body []byte) error {
	if body == nil {
		return formatError("chunk without debug information")
	}
	d.skip.calls, d.skip.segs, d.skip.pieces = 0, 0, 0
	r := decode.New("debug information", body, 0, false)
	columns(d.cols[:]).read(r)
	if err := readError(r); err != nil {
		return err
	}
	for _, i := range [...]int{colCallColumns, colSegColumns} {
		d.none[i] = len(d.cols[i]) == 0
	}
	return d.openLists()
}

// openLists decodes the files and subprograms of the chunk.
func (d *debugCursor) openLists() error {
	d.files, d.subs = d.files[:0], d.subs[:0]
	last := int64(0)
	for col := d.cols[colFiles]; len(col) > 0; {
		v, ok := decode.CutUvarint(&col)
		last += unzigzag(v)
		if !ok || last < 0 || uint64(last) >= d.numFiles || len(d.files) == maxChunkSubs {
			return formatError("file number out of range")
		}
		d.files = append(d.files, FileID(last))
	}
	last = 0
	names, files, lines := d.cols[colSubNames], d.cols[colSubFiles], d.cols[colSubLines]
	for len(names) > 0 {
		v, ok1 := decode.CutUvarint(&names)
		file, ok2 := decode.CutUvarint(&files)
		line, ok3 := decode.CutUvarint(&lines)
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

// pass skips a range. The work is deferred until load needs a later one.
func (d *debugCursor) pass() error {
	_, ok1 := decode.CutUvarint(&d.cols[colPieceSubs])
	calls, ok2 := decode.CutUvarint(&d.cols[colPieceCalls])
	segs, ok3 := decode.CutUvarint(&d.cols[colPieceSegs])
	if !ok1 || !ok2 || !ok3 || calls > MaxScopes || segs == 0 || segs > MaxSegments {
		return formatError("debug information ends early")
	}
	d.skip.calls += calls
	d.skip.segs += segs
	d.skip.pieces++
	return nil
}

// catchUp removes the skipped ranges from the columns.
func (d *debugCursor) catchUp() bool {
	if d.skip.pieces == 0 {
		return true
	}
	ok := true
	for i := colUps; i < numColumns; i++ {
		n := d.skip.segs
		switch {
		case d.none[i]:
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

// load decodes the calls and segments of the next range. Its segments are the segments of the
// sorted addrs, one for each, which must be within the range; or all segments if addrs is nil.
func (d *debugCursor) load(start, size uint64, addrs []addr.Addr) error {
	if !d.catchUp() {
		return formatError("debug information ends early")
	}
	fn, ok1 := decode.CutUvarint(&d.cols[colPieceSubs])
	calls, ok2 := decode.CutUvarint(&d.cols[colPieceCalls])
	segs, ok3 := decode.CutUvarint(&d.cols[colPieceSegs])
	// Each call and each segment has a byte at least: nothing is allocated for more.
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
	if !d.loadSegments(int(segs), start, size, addrs) {
		return formatError("line segment out of bounds")
	}
	return nil
}

// numbers decodes the first n of total numbers of a column into scratch k, and removes all
// of them. It returns nil if there are fewer.
func (d *debugCursor) numbers(i, k, n, total int) []uint64 {
	dst := d.scratch[k]
	if len(dst) < n+8 {
		dst = make([]uint64, n+n/2+8)
		d.scratch[k] = dst
	}
	if d.none[i] {
		clear(dst[:n])
		return dst[:n]
	}
	b := d.cols[i]
	at := 0
	for j := 0; j < n; {
		if len(b)-at >= 8 {
			// Most numbers have one byte: eight bytes are decoded as eight numbers, and
			// those from the first longer one on are overwritten.
			w := binary.LittleEndian.Uint64(b[at:])
			o := dst[j : j+8 : j+8]
			o[0], o[1], o[2], o[3] = w&0x7f, w>>8&0x7f, w>>16&0x7f, w>>24&0x7f
			o[4], o[5], o[6], o[7] = w>>32&0x7f, w>>40&0x7f, w>>48&0x7f, w>>56
			short := min(bits.TrailingZeros64(w&0x8080808080808080)>>3, n-j)
			at += short
			j += short
			if short == 8 || j == n {
				continue
			}
		}
		v, size := binary.Uvarint(b[at:])
		if size <= 0 {
			return nil
		}
		dst[j] = v
		at += size
		j++
	}
	dst = dst[:n]
	b = b[at:]
	if !skipNumbers(&b, uint64(total-n)) {
		return nil
	}
	d.cols[i] = b
	return dst
}

func (d *debugCursor) loadCalls(n int) bool {
	d.calls = d.calls[:0]
	if n == 0 {
		return true
	}
	ups, subs := d.numbers(colUps, 0, n, n), d.numbers(colCallSubs, 1, n, n)
	files, lines := d.numbers(colCallFiles, 2, n, n), d.numbers(colCallLines, 3, n, n)
	cols := d.numbers(colCallColumns, 4, n, n)
	if ups == nil || subs == nil || files == nil || lines == nil || cols == nil {
		return false
	}
	path := d.path[:0]
	for i, up := range ups {
		sub := subs[i]
		if up > uint64(len(path)) || sub > uint64(len(d.subs)) || cols[i] > math.MaxUint32 {
			return false
		}
		path = path[:uint64(len(path))-up]
		c := call{parent: -1, sub: uint32(sub), column: uint32(cols[i])}
		if len(path) > 0 {
			c.parent = path[len(path)-1]
		}
		if len(path) == MaxDepth {
			return false
		}
		path = append(path, int32(i))
		parent := &d.states[c.parent+1]
		c.file = parent.file
		if files[i] != sameFile {
			var ok bool
			if c.file, ok = d.file(files[i]); !ok {
				return false
			}
		}
		v := int64(parent.call) + unzigzag(lines[i])
		if uint64(v) > math.MaxUint32 {
			return false
		}
		c.line = uint32(v)
		parent.call = c.line
		s := d.subOf(c.sub)
		d.states = append(d.states, lineState{s.file, s.line, s.line})
		d.calls = append(d.calls, c)
	}
	d.path = path
	return true
}

// file decodes the number of a file that is not the last one.
func (d *debugCursor) file(v uint64) (FileID, bool) {
	switch {
	case v == noFile:
		return NoFile, true
	case v-firstFile >= uint64(len(d.files)):
		return NoFile, false
	}
	return d.files[v-firstFile], true
}

// find decodes the lengths of all segments, checks that they fill the range, and
// records the segments of the addresses. It returns their number.
func (d *debugCursor) find(total int, start, size uint64, addrs []addr.Addr) (n int, ok bool) {
	lengths := d.numbers(colLengths, 0, total-1, total-1)
	if lengths == nil && total > 1 {
		return 0, false
	}
	d.lengths, d.found = lengths, d.found[:0]
	left := size
	end := start
	for i, length := range lengths {
		if length == 0 || length >= left {
			return 0, false
		}
		left -= length
		end += length
		for len(addrs) > 0 && uint64(addrs[0]) < end {
			d.found = append(d.found, int32(i))
			addrs = addrs[1:]
		}
	}
	d.last = left
	for range addrs {
		d.found = append(d.found, int32(total-1))
	}
	if len(d.found) == 0 {
		return total, true
	}
	return int(d.found[len(d.found)-1]) + 1, true
}

func (d *debugCursor) loadSegments(total int, start, size uint64, addrs []addr.Addr) bool {
	d.segs = d.segs[:0]
	n, ok := d.find(total, start, size, addrs)
	if !ok {
		return false
	}
	calls, files := d.numbers(colSegCalls, 1, n, total), d.numbers(colSegFiles, 2, n, total)
	lines, cols := d.numbers(colSegLines, 3, n, total), d.numbers(colSegColumns, 4, n, total)
	if calls == nil || files == nil || lines == nil || cols == nil {
		return false
	}
	files, lines, cols = files[:len(calls)], lines[:len(calls)], cols[:len(calls)]
	found, all := d.found, addrs == nil
	last := int64(-1)
	for i, call := range calls {
		last += unzigzag(call)
		if uint64(last+1) >= uint64(len(d.states)) || cols[i] > math.MaxUint32 {
			return false
		}
		st := &d.states[last+1]
		file, line := st.file, uint32(0)
		if files[i] != sameFile {
			if file, ok = d.file(files[i]); !ok {
				return false
			}
			if file != NoFile {
				st.file = file
			}
		}
		if v := lines[i]; v > 0 {
			v := int64(st.line) + unzigzag(v-1)
			if v <= 0 || v > math.MaxUint32 {
				return false
			}
			line = uint32(v)
			st.line = line
		}
		if all {
			s := segment{d.last, int32(last), file, line, uint32(cols[i])}
			if i < len(d.lengths) {
				s.size = d.lengths[i]
			}
			d.segs = append(d.segs, s)
			continue
		}
		for len(found) > 0 && found[0] == int32(i) {
			d.segs = append(d.segs, segment{0, int32(last), file, line, uint32(cols[i])})
			found = found[1:]
		}
	}
	return true
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
