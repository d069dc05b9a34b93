package record

import (
	"encoding/binary"

	"symbolize/ingest/format/bpf"
)

// copied is a program that arrives in pieces.
type copied struct {
	head   []byte
	funcs  []copiedFunc
	arrays [pieceEnd][]byte
	size   int
	more   bool // the thing that the last piece was of goes on
	bad    bool // a piece is missing
}

type copiedFunc struct {
	start, tag uint64
	image      []byte
}

// piece takes in one piece.
func (c *copies) piece(b []byte) {
	if len(b) < pieceSize {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	order := binary.NativeEndian
	kind, id, n := order.Uint32(b), order.Uint32(b[4:]), order.Uint32(b[12:])
	data := b[pieceHead:][:min(n, pieceData)]
	x := c.partial[id]
	if kind == pieceProgram {
		x = &copied{head: append([]byte(nil), data...)}
		c.partial[id] = x
	}
	if x == nil {
		return
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
		c.whole(id, x)
	case kind == pieceImage:
		x.image(b, data)
	case kind > pieceImage && kind < pieceEnd:
		x.arrays[kind] = append(x.arrays[kind], data...)
	}
}

// follow checks that a piece goes on where the last one ended, or begins another thing
// where that one was complete.
func (x *copied) follow(kind uint32, b []byte) {
	if kind == pieceEnd { // has no other fields
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

// image takes in a piece of a function's code.
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

// whole keeps a program that has all its pieces.
func (c *copies) whole(id uint32, x *copied) {
	delete(c.partial, id)
	c.bytes -= x.size
	if x.bad || len(x.head) < headSize || !x.allFunctions() {
		c.s.lost("copies inside the kernel that are not whole", 1)
		return
	}
	raw := x.program()
	if err := c.infos.add(id, bpf.AppendProgram(nil, raw)); err != nil {
		c.err = err
	}
	btfID := binary.NativeEndian.Uint32(x.head[headBTFID:])
	if blob := x.arrays[pieceBTF]; btfID != 0 && len(blob) > 0 {
		if err := c.blobs.add(btfID, bpf.AppendBTF(nil, btfID, blob)); err != nil {
			c.err = err
		}
	}
}

// allFunctions reports whether there is code of as many functions as the head announces.
func (x *copied) allFunctions() bool {
	n := binary.NativeEndian.Uint32(x.head[headFuncs:])
	return n == 0 || int(n) == len(x.funcs)
}

// program makes the info of a copy that bpf(2) would have given.
func (x *copied) program() *bpf.RawProgram {
	order := binary.NativeEndian
	raw := &bpf.RawProgram{Info: make([]byte, infoLen), BigEndian: bigEndian}
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
	const insnSize = 8
	put(0, head(headType))
	put(infoIDAt, head(headID))
	copy(raw.Info[infoTagAt:], x.head[headTag:headTag+8])
	put(16, uint32(len(images)))
	put(20, head(headInsns)*insnSize)
	copy(raw.Info[40:], x.head[headLoadTime:headLoadTime+8])
	put(48, head(headUID))
	copy(raw.Info[64:80], x.head[headName:headName+16])
	put(104, n)
	put(108, n)
	put(infoBTFAt, head(headBTFID))
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
