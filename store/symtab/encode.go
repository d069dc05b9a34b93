package symtab

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
)

// Bits of a range's kind.
const (
	kindUnsized = 1 << iota
	kindOldName
	kindPart
	kindNameless
	kindKnown = kindUnsized | kindOldName | kindPart | kindNameless
)

// chunkEntry is a chunk's entry in the header's directory.
type chunkEntry struct {
	gap, span           uint64
	ranges, funcs, strs uint64
	block               Packed
	start               uint64 // first address
	firstFunc, firstStr uint64
}

// stringEntry is a string block's entry in the header's directory.
type stringEntry struct {
	strs  uint64
	block Packed
	first uint64 // number of the first string
}

// encoder turns ranges in ascending order into blocks. Its buffers live as long as the Builder.
type encoder struct {
	opts Options

	gaps, sizes, kinds, extras []byte
	raw                        []byte
	chunk                      chunkEntry // the open one
	end                        uint64     // of the last range
	chunks                     []chunkEntry
	chunkData                  [][]byte
	debug                      *debugEncoder // nil for a table of names
	pack                       *packer       // with debug

	names textWriter
	ids   map[string]uint32
	seen  uint64 // strings that ranges have used: the number of the next new one

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
		raw: e.raw[:0], chunks: e.chunks[:0], names: e.names,
		ids: e.ids, sum: sha256.New(), sumBuf: e.sumBuf[:0],
	}
	e.names.reset(opts.StringSize)
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
			firstFunc: e.funcs, firstStr: e.seen,
		}
		e.end = start
	}
	kind := byte(0)
	if c.flags&Unsized != 0 {
		kind |= kindUnsized
	}
	if c.flags&Nameless != 0 {
		kind |= kindNameless
	} else if old := e.stringID(c); old > 0 {
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
	if e.debug != nil {
		e.sumBuf = e.debug.piece(start, end, c, e.sumBuf)
	}
	e.gaps = binary.AppendUvarint(e.gaps, start-e.end)
	e.sizes = binary.AppendUvarint(e.sizes, end-start)
	e.kinds = append(e.kinds, kind)
	e.ranges++
	e.chunk.ranges++
	if c.flags&Nameless == 0 {
		e.named += end - start
	}
	e.end = end
	size := len(e.gaps) + len(e.sizes) + len(e.kinds) + len(e.extras)
	if e.debug != nil {
		size += e.debug.cols.len()
	}
	if size >= e.opts.ChunkSize {
		e.flushChunk()
	}
}

// nameID numbers the name of a symbol or function, a new one if it has no number yet.
func (e *encoder) nameID(c *candidate) uint32 {
	if ref := e.nameRef(c); ref != 0 {
		n := &e.debug.nameNo[ref-1]
		if *n == 0 {
			*n = uint32(e.names.add(c.name)) + 1
		}
		return *n - 1
	}
	id, ok := e.ids[c.name]
	if !ok {
		id = uint32(e.names.add(c.name))
		e.ids[c.name] = id
	}
	return id
}

// nameRef returns 1 + the number of a name in the debug information, 0 if it is not there. These
// names are already numbered, so that no look-up of the text is needed.
func (e *encoder) nameRef(c *candidate) uint32 {
	if c.nameRef != 0 || e.debug == nil {
		return c.nameRef
	}
	if id, ok := e.debug.info.nameID[c.name]; ok {
		return uint32(id) + 1
	}
	return 0
}

// stringID numbers the name of a range. For a name that a range has used before it returns the
// distance of its number from the next new one, otherwise 0.
func (e *encoder) stringID(c *candidate) (old uint64) {
	if id := uint64(e.nameID(c)); id < e.seen {
		return e.seen - id
	}
	e.seen++
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
	if e.debug != nil {
		raw = e.debug.appendTo(raw)
	}
	e.raw = raw
	if e.pack != nil {
		e.pack.add(raw)
	} else {
		stored, entry := Pack(raw)
		e.chunk.block = entry
		e.chunkData = append(e.chunkData, stored)
	}
	e.chunk.span = e.end - e.chunk.start
	e.chunk.funcs = e.funcs - e.chunk.firstFunc
	e.chunk.strs = e.seen - e.chunk.firstStr
	e.chunks = append(e.chunks, e.chunk)
	e.rawSize += int64(len(raw))
	e.gaps, e.sizes, e.kinds, e.extras = e.gaps[:0], e.sizes[:0], e.kinds[:0], e.extras[:0]
}

// finish closes the open blocks and writes the header.
func (e *encoder) finish() (*Encoded, error) {
	e.flushChunk()
	e.names.flush()
	h := header{
		first: e.first, ranges: e.ranges, funcs: e.funcs, strs: e.names.count,
		strings: e.names.entries,
	}
	out := &Encoded{Funcs: int(e.funcs), Named: e.named, RawSize: e.rawSize + e.names.raw}
	texts := e.names.data
	if e.debug != nil {
		e.finishDebug(&h, out)
		texts = slices.Concat(texts, e.debug.extra.data, e.debug.files.data)
	}
	h.chunks = e.chunks
	blocks := int64(0)
	for _, list := range [][][]byte{e.chunkData, texts} {
		for _, b := range list {
			blocks += int64(len(b))
		}
	}
	inline := blocks <= int64(e.opts.InlineSize)
	if e.names.shown != nil && !inline { // names of small tables are demangled in no time
		list := []*shownNames{e.names.shown}
		if e.debug != nil {
			list = append(list, e.debug.extra.shown)
		}
		for _, s := range list {
			data, size := s.finish(&h)
			texts = append(texts, data...)
			blocks += size
			out.RawSize += s.raw
		}
	}
	out.Header = h.append(nil)
	out.Version = uint32(h.version())
	out.RawSize += int64(len(out.Header))
	if inline {
		out.Header = appendInline(out.Header, e.chunkData, texts)
		out.Size = int64(len(out.Header))
	} else {
		out.Chunks, out.Strings = e.chunkData, texts
		out.Size = int64(len(out.Header)) + blocks
	}
	e.sum.Write(e.sumBuf)
	e.sum.Sum(out.Digest[:0])
	e.chunkData, e.debug, e.pack = nil, nil, nil
	return out, nil
}

// finishDebug waits for the chunks that are being compressed and adds to header and
// summary the additional parts of tables with debug information.
func (e *encoder) finishDebug(h *header, out *Encoded) {
	d := e.debug
	e.pack.running.Wait()
	for i, p := range e.pack.out {
		e.chunks[i].block = p.entry
		e.chunkData = append(e.chunkData, p.stored)
	}
	for _, w := range [...]*textWriter{&d.extra, &d.files} {
		w.flush()
		out.RawSize += w.raw
		e.sumBuf = binary.AppendUvarint(e.sumBuf, w.count)
		e.sumBuf = w.sum.Sum(e.sumBuf)
	}
	out.Scopes, out.Segments, out.Lined = d.scopes, d.segments, d.lined
	h.debug = true
	h.scopes, h.segments, h.lined = d.scopes, d.segments, d.lined
	h.extraStrs, h.files = d.extra.count, d.files.count
	h.extra, h.fileBlocks = d.extra.entries, d.files.entries
}
