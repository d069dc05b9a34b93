package symtab

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/maphash"
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

	cols   columns // of ranges
	raw    []byte
	chunk  chunkEntry // the open one
	end    uint64     // of the last range
	chunks []chunkEntry
	debug  *debugEncoder // nil for a table of names
	pack   *packer
	blocks []*packed // by chunk

	names textWriter
	ids   map[string]uint32
	seen  uint64 // strings that ranges have used: the number of the next new one

	first         uint64
	ranges, funcs uint64
	named         uint64

	sum    hash.Hash
	sumBuf []byte
}

func (e *encoder) reset(opts Options, by *Demangler) {
	pack := newPacker()
	*e = encoder{
		opts: opts, cols: e.cols, raw: e.raw, chunks: e.chunks[:0], pack: pack,
		names: textWriter{size: opts.StringSize, pack: pack, by: by, text: e.names.text[:0]},
		ids:   e.ids, sum: sha256.New(), sumBuf: append(e.sumBuf[:0], digestDomain...),
	}
	if e.ids == nil {
		e.cols, e.ids = make(columns, numRangeColumns), make(map[string]uint32)
	}
	clear(e.ids)
}

// piece appends one range.
func (e *encoder) piece(start, end uint64, c *candidate) {
	if e.ranges == 0 {
		e.first, e.end = start, start
	}
	if len(e.cols[colGaps]) == 0 {
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
		e.cols.put(colExtras, old)
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
		e.cols.put(colExtras, start-c.start)
		e.cols.put(colExtras, c.size)
		e.cols.put(colExtras, back)
	}
	e.digest(start, end, c)
	if e.debug != nil {
		e.sumBuf = e.debug.piece(start, end, c, e.sumBuf)
	}
	e.cols.put(colGaps, start-e.end)
	e.cols.put(colSizes, end-start)
	e.cols.put(colKinds, uint64(kind))
	e.ranges++
	e.chunk.ranges++
	if c.flags&Nameless == 0 {
		e.named += end - start
	}
	e.end = end
	size := e.cols.len()
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
	d := e.debug.info
	return d.nameAt.find(maphash.String(hashSeed, c.name), func(n uint32) bool {
		return d.names[n-1] == c.name
	})
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
	if len(e.cols[colGaps]) == 0 {
		return
	}
	e.raw = e.cols.appendTagged(e.raw[:0], tagRanges)
	e.cols.reset()
	if e.debug != nil {
		e.raw = e.debug.appendTo(e.raw)
	}
	e.blocks = append(e.blocks, e.pack.add(e.raw, plain))
	e.chunk.span = e.end - e.chunk.start
	e.chunk.funcs = e.funcs - e.chunk.firstFunc
	e.chunk.strs = e.seen - e.chunk.firstStr
	e.chunks = append(e.chunks, e.chunk)
}

// finish closes the open blocks and writes the header.
func (e *encoder) finish() *Encoded {
	e.flushChunk()
	h := header{
		first: e.first, ranges: e.ranges, funcs: e.funcs, strs: e.names.count, chunks: e.chunks,
	}
	names, d := []*textWriter{&e.names}, e.debug
	e.names.flush()
	if d != nil {
		d.extra.flush()
		d.files.flush()
		names = append(names, &d.extra)
	}
	e.pack.running.Wait()
	out := &Encoded{Funcs: int(e.funcs), Named: e.named}
	var chunks, texts [][]byte
	for i, p := range e.blocks {
		h.chunks[i].block = p.entry
		chunks = append(chunks, p.stored)
	}
	h.strings, texts = e.names.directory(e.names.blocks, texts)
	if d != nil {
		for _, w := range [...]*textWriter{&d.extra, &d.files} {
			e.sumBuf = binary.AppendUvarint(e.sumBuf, w.count)
			e.sumBuf = w.sum.Sum(e.sumBuf)
		}
		h.debug = true
		h.scopes, h.segments, h.lined = d.scopes, d.segments, d.lined
		h.extraStrs, h.files = d.extra.count, d.files.count
		h.extra, texts = d.extra.directory(d.extra.blocks, texts)
		h.fileBlocks, texts = d.files.directory(d.files.blocks, texts)
	}
	inline := bytesOf(chunks)+bytesOf(texts) <= int64(e.opts.InlineSize)
	if by := e.names.by; by != nil && !inline { // names of small tables are demangled in no time
		h.shownBy = by.ID
		for _, w := range names {
			var dir []stringEntry
			dir, texts = w.directory(w.shown, texts)
			h.shown = append(h.shown, dir...)
		}
	}
	out.Header = h.append(nil)
	out.Version = uint32(h.version())
	if inline {
		out.Header = appendInline(out.Header, chunks, texts)
	} else {
		out.Chunks, out.Strings = chunks, texts
	}
	e.sum.Write(e.sumBuf)
	e.sum.Sum(out.Digest[:0])
	e.debug, e.pack, e.blocks, e.names = nil, nil, nil, textWriter{text: e.names.text}
	return out
}
