package reporter

import (
	"encoding/binary"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
)

// bigEndian is the byte order of the host.
var bigEndian = perfdata.NativeBigEndian()

// maxCopying limits the bytes of incomplete programs.
const maxCopying = 256 << 20

// Copy is the copy of a program made during its load. Its BTF is nil if it has none or was not
// copied.
type Copy struct {
	ID      uint32
	Program *bpf.RawProgram // as bpf(2) would return it
	BTFID   uint32
	BTF     []byte
}

// Pieces joins pieces, also of several programs at a time, to copies. The zero value is empty. Not
// safe for concurrent use.
type Pieces struct {
	partial map[uint32]*copied
	bytes   int // in partial
}

// Pending returns the number of programs without all of their pieces.
func (c *Pieces) Pending() int { return len(c.partial) }

// copied is a partially received program.
type copied struct {
	head   []byte
	funcs  []copiedFunc
	arrays [pieceEnd][]byte
	size   int
	more   bool // the data of the last piece continues
	bad    bool // a piece is missing
}

type copiedFunc struct {
	start, tag uint64
	image      []byte
}

// Add adds a piece. It returns the copy that the piece completes, if any; lost reports the end of
// an incomplete copy.
func (c *Pieces) Add(b []byte) (whole *Copy, lost bool) {
	if len(b) < pieceSize {
		return nil, false
	}
	order := binary.NativeEndian
	kind, id, n := order.Uint32(b), order.Uint32(b[4:]), order.Uint32(b[12:])
	data := b[pieceHead:][:min(n, pieceData)]
	x := c.partial[id]
	if kind == pieceProgram {
		x = &copied{head: append([]byte(nil), data...)}
		if c.partial == nil {
			c.partial = make(map[uint32]*copied)
		}
		c.partial[id] = x
	}
	if x == nil {
		return nil, false
	}
	if c.bytes+len(data) > maxCopying {
		x.bad = true
		data = nil
	}
	c.bytes += len(data)
	x.size += len(data)
	x.follow(kind, b)
	switch {
	case kind == pieceEnd:
		whole = c.end(id, x)
		return whole, whole == nil
	case kind == pieceImage:
		x.image(b, data)
	case kind > pieceImage && kind < pieceEnd:
		x.arrays[kind] = append(x.arrays[kind], data...)
	}
	return nil, false
}

// follow checks that a piece continues the last one, or starts new data if the last one was
// complete.
func (x *copied) follow(kind uint32, b []byte) {
	if kind == pieceEnd { // no other fields
		x.bad = x.bad || x.more
		return
	}
	order := binary.NativeEndian
	offset, total := order.Uint64(b[16:]), order.Uint64(b[24:])
	have := 0
	switch i := int(order.Uint32(b[8:])); {
	case kind == pieceImage && i < len(x.funcs):
		have = len(x.funcs[i].image)
	case kind > pieceImage && kind < pieceEnd:
		have = len(x.arrays[kind])
	}
	if x.more != (have > 0) || offset != uint64(have) {
		x.bad = true
	}
	x.more = offset+uint64(order.Uint32(b[12:])) < total
}

// image handles a piece of a function's code.
func (x *copied) image(b, data []byte) {
	order := binary.NativeEndian
	i := int(order.Uint32(b[8:]))
	switch {
	case i == len(x.funcs):
		x.funcs = append(x.funcs,
			copiedFunc{start: order.Uint64(b[32:]), tag: order.Uint64(b[40:])})
	case i != len(x.funcs)-1:
		x.bad = true
		return
	}
	x.funcs[i].image = append(x.funcs[i].image, data...)
}

// end removes a program, and returns its copy if it is complete.
func (c *Pieces) end(id uint32, x *copied) *Copy {
	delete(c.partial, id)
	c.bytes -= x.size
	if x.bad || len(x.head) < headSize || !x.allFunctions() {
		return nil
	}
	whole := &Copy{ID: id, Program: x.program()}
	if btfID := binary.NativeEndian.Uint32(x.head[headBTFID:]); btfID != 0 {
		whole.BTFID, whole.BTF = btfID, x.arrays[pieceBTF]
	}
	return whole
}

// allFunctions reports whether the code of all functions announced by the head was received.
func (x *copied) allFunctions() bool {
	n := binary.NativeEndian.Uint32(x.head[headFuncs:])
	return n == 0 || int(n) == len(x.funcs)
}

// program returns the info that bpf(2) would have returned for the program.
func (x *copied) program() *bpf.RawProgram {
	order := binary.NativeEndian
	raw := &bpf.RawProgram{Info: make([]byte, bpf.InfoLen),
		BigEndian: bigEndian}
	head := func(at int) uint32 { return order.Uint32(x.head[at:]) }
	put := func(at int, v uint32) { order.PutUint32(raw.Info[at:], v) }
	var images, starts, lens, tags []byte
	for _, f := range x.funcs {
		images = append(images, f.image...)
		starts = order.AppendUint64(starts, f.start)
		lens = order.AppendUint32(lens, uint32(len(f.image)))
		tags = order.AppendUint64(tags, f.tag)
	}
	n := uint32(len(x.funcs))
	put(0, head(headType))
	put(bpf.InfoIDAt, head(headID))
	copy(raw.Info[bpf.InfoTagAt:], x.head[headTag:headTag+8])
	put(16, uint32(len(images)))
	put(20, head(headInsns)*bpf.InsnSize)
	copy(raw.Info[40:], x.head[headLoadTime:headLoadTime+8])
	put(48, head(headUID))
	copy(raw.Info[64:80], x.head[headName:headName+16])
	put(104, n)
	put(108, n)
	put(bpf.InfoBTFAt, head(headBTFID))
	put(132, 8)
	put(144, uint32(len(x.arrays[pieceFuncInfo])/8))
	put(148, uint32(len(x.arrays[pieceLineInfo])/16))
	put(168, uint32(len(x.arrays[pieceJITedLines])/8))
	put(172, 16)
	put(176, 8)
	put(180, n)
	put(216, head(headVerified))
	raw.Arrays[bpf.ArrayJITedInsns] = images
	raw.Arrays[bpf.ArrayJITedKSyms] = starts
	raw.Arrays[bpf.ArrayJITedFuncLens] = lens
	raw.Arrays[bpf.ArrayFuncInfo] = x.arrays[pieceFuncInfo]
	raw.Arrays[bpf.ArrayLineInfo] = x.arrays[pieceLineInfo]
	raw.Arrays[bpf.ArrayJITedLineInfo] = x.arrays[pieceJITedLines]
	raw.Arrays[bpf.ArrayProgTags] = tags
	return raw
}
