package symtab

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Bits of a range's kind.
const (
	kindUnsized = 1 << iota
	kindOldName
	kindPart
	kindKnown = kindUnsized | kindOldName | kindPart
)

// chunkEntry is a chunk's line in the header's directory.
type chunkEntry struct {
	gap, span           uint64
	ranges, funcs, strs uint64
	block               blockEntry
	start               uint64 // first address
	firstFunc, firstStr uint64
}

// stringEntry is a string block's line in the header's directory.
type stringEntry struct {
	strs  uint64
	block blockEntry
	first uint64 // number of the first string
}

// encoder turns ranges in ascending order into blocks. Its buffers live as long
// as the Builder.
type encoder struct {
	opts Options

	gaps, sizes, kinds, extras []byte
	raw                        []byte
	chunk                      chunkEntry // the open one
	end                        uint64     // of the last range
	chunks                     []chunkEntry
	chunkData                  [][]byte

	text     []byte // the open string block
	textStrs uint64
	strs     []stringEntry
	strData  [][]byte
	ids      map[string]uint32

	first         uint64
	ranges, funcs uint64
	named         uint64
	rawSize       int64

	sum    hash.Hash
	sumBuf []byte
}

func (e *encoder) reset(opts Options) {
	*e = encoder{
		opts: opts,
		gaps: e.gaps[:0], sizes: e.sizes[:0], kinds: e.kinds[:0], extras: e.extras[:0],
		raw: e.raw[:0], text: e.text[:0], chunks: e.chunks[:0], strs: e.strs[:0],
		ids: e.ids, sum: sha256.New(), sumBuf: e.sumBuf[:0],
	}
	if e.ids == nil {
		e.ids = make(map[string]uint32)
	}
	clear(e.ids)
	e.sumBuf = append(e.sumBuf, digestDomain...)
}

// piece appends one range.
func (e *encoder) piece(start, end uint64, c *candidate) {
	if e.ranges == 0 {
		e.first, e.end = start, start
	}
	if len(e.gaps) == 0 {
		e.chunk = chunkEntry{
			gap: start - e.end, start: start,
			firstFunc: e.funcs, firstStr: uint64(len(e.ids)),
		}
		e.end = start
	}
	old := e.stringID(c.name)
	kind := byte(0)
	if c.flags&Unsized != 0 {
		kind |= kindUnsized
	}
	if old > 0 {
		kind |= kindOldName
		e.extras = binary.AppendUvarint(e.extras, old)
	}
	back := uint64(0)
	if c.number == 0 {
		e.funcs++
		c.number = uint32(e.funcs)
	} else {
		back = e.funcs - uint64(c.number) + 1
	}
	if back > 0 || start != c.start || end != c.end {
		kind |= kindPart
		e.extras = binary.AppendUvarint(e.extras, start-c.start)
		e.extras = binary.AppendUvarint(e.extras, c.size)
		e.extras = binary.AppendUvarint(e.extras, back)
	}
	e.digest(start, end, c)
	e.gaps = binary.AppendUvarint(e.gaps, start-e.end)
	e.sizes = binary.AppendUvarint(e.sizes, end-start)
	e.kinds = append(e.kinds, kind)
	e.ranges++
	e.chunk.ranges++
	e.named += end - start
	e.end = end
	if len(e.gaps)+len(e.sizes)+len(e.kinds)+len(e.extras) >= e.opts.ChunkSize {
		e.flushChunk()
	}
}

// stringID numbers a name. For one seen before it returns the distance of its
// number from the next new one, else 0.
func (e *encoder) stringID(name string) (old uint64) {
	next := uint32(len(e.ids))
	if id, ok := e.ids[name]; ok {
		return uint64(next - id)
	}
	e.ids[name] = next
	if len(e.text) > 0 && len(e.text)+len(name)+1 > e.opts.StringSize {
		e.flushText()
	}
	e.text = append(e.text, name...)
	e.text = append(e.text, 0)
	e.textStrs++
	return 0
}

func (e *encoder) flushChunk() {
	if len(e.gaps) == 0 {
		return
	}
	body := uvarintLen(len(e.gaps)) + uvarintLen(len(e.sizes)) + uvarintLen(len(e.kinds)) +
		len(e.gaps) + len(e.sizes) + len(e.kinds) + len(e.extras)
	raw := e.raw[:0]
	raw = binary.AppendUvarint(raw, tagRanges)
	raw = binary.AppendUvarint(raw, uint64(body))
	raw = binary.AppendUvarint(raw, uint64(len(e.gaps)))
	raw = binary.AppendUvarint(raw, uint64(len(e.sizes)))
	raw = binary.AppendUvarint(raw, uint64(len(e.kinds)))
	raw = append(raw, e.gaps...)
	raw = append(raw, e.sizes...)
	raw = append(raw, e.kinds...)
	raw = append(raw, e.extras...)
	e.raw = raw
	stored, entry := compress(raw)
	e.chunk.block = entry
	e.chunk.span = e.end - e.chunk.start
	e.chunk.funcs = e.funcs - e.chunk.firstFunc
	e.chunk.strs = uint64(len(e.ids)) - e.chunk.firstStr
	e.chunks = append(e.chunks, e.chunk)
	e.chunkData = append(e.chunkData, stored)
	e.rawSize += int64(len(raw))
	e.gaps, e.sizes, e.kinds, e.extras = e.gaps[:0], e.sizes[:0], e.kinds[:0], e.extras[:0]
}

func (e *encoder) flushText() {
	if len(e.text) == 0 {
		return
	}
	stored, entry := compress(e.text)
	e.strs = append(e.strs, stringEntry{strs: e.textStrs, block: entry})
	e.strData = append(e.strData, stored)
	e.rawSize += int64(len(e.text))
	e.text, e.textStrs = e.text[:0], 0
}

// finish closes the open blocks and writes the header.
func (e *encoder) finish() (*Encoded, error) {
	e.flushChunk()
	e.flushText()
	h := header{
		first: e.first, ranges: e.ranges, funcs: e.funcs, strs: uint64(len(e.ids)),
		chunks: e.chunks, strings: e.strs,
	}
	blocks := int64(0)
	for _, list := range [][][]byte{e.chunkData, e.strData} {
		for _, b := range list {
			blocks += int64(len(b))
		}
	}
	out := &Encoded{Header: h.append(nil), Funcs: int(e.funcs), Named: e.named}
	out.RawSize = int64(len(out.Header)) + e.rawSize
	if blocks <= int64(e.opts.InlineSize) {
		out.Header = appendInline(out.Header, e.chunkData, e.strData)
		out.Size = int64(len(out.Header))
	} else {
		out.Chunks, out.Strings = e.chunkData, e.strData
		out.Size = int64(len(out.Header)) + blocks
	}
	e.sum.Write(e.sumBuf)
	e.sum.Sum(out.Digest[:0])
	e.chunkData, e.strData = nil, nil
	return out, nil
}
