package symtab

import (
	"encoding/binary"
	"hash"
	"runtime"
	"slices"
	"sync"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
)

// frames are the packed blocks. The level trades size for time; the package comment has figures of
// the levels. The window bounds an encoder's memory: blocks are 64 KiB.
var frames = files.ZstdOptions{Level: files.ZstdFastest, Window: 128 << 10, Lean: true, NoSum: true,
	Sized: true}.Frames()

// Packed is a block's entry in a directory: its size, and how it is stored.
type Packed struct {
	raw    uint32 // bytes when unpacked
	stored uint32 // bytes as stored
	zstd   bool
}

// Append appends the entry in encoded form: raw size | stored.
func (e Packed) Append(b []byte) []byte {
	v := uint64(e.stored) << 1
	if e.zstd {
		v |= 1
	}
	b = binary.AppendUvarint(b, uint64(e.raw))
	return binary.AppendUvarint(b, v)
}

// Read decodes an entry, and refuses blocks over MaxBlock.
func (e *Packed) Read(r *decode.Reader) {
	raw, v := r.Uvarint(), r.Uvarint()
	stored, packed := v>>1, v&1 != 0
	switch {
	case raw == 0 || raw > MaxBlock:
		r.Fail("block of %d bytes, the limit is %d", raw, MaxBlock)
	case stored == 0 || stored > raw || (stored == raw) == packed:
		r.Fail("block of %d bytes stored in %d", raw, stored)
	}
	if r.Err() == nil {
		*e = Packed{raw: uint32(raw), stored: uint32(stored), zstd: packed}
	}
}

// Pack returns raw in its stored form, in memory of its own.
func Pack(raw []byte) ([]byte, Packed) {
	out := frames.Pack(make([]byte, 0, len(raw)/2+64), raw)
	e := Packed{raw: uint32(len(raw)), stored: uint32(len(out)), zstd: true}
	if len(out) >= len(raw) {
		out, e.stored, e.zstd = append(out[:0], raw...), e.raw, false
	}
	if cap(out)-len(out) > len(out)/4 {
		out = append(make([]byte, 0, len(out)), out...)
	}
	return out, e
}

// Raw returns the bytes of the block when unpacked.
func (e Packed) Raw() int { return int(e.raw) }

// Unpack returns the raw bytes of a block, in dst's memory or aliasing stored.
func (e Packed) Unpack(dst, stored []byte) ([]byte, error) {
	if len(stored) != int(e.stored) {
		return nil, formatError("block of %d bytes, the directory says %d", len(stored), e.stored)
	}
	if !e.zstd {
		return stored, nil
	}
	out, err := frames.UnpackSized(dst, stored, int(e.raw))
	if err != nil {
		return nil, formatError("block of %d bytes in the directory: %v", e.raw, err)
	}
	return out, nil
}

// InlineBlocks divides the blocks that are in a header: chunks, then string blocks.
func InlineBlocks(b []byte, chunks, strings []Packed) (*Encoded, error) {
	all, total := slices.Concat(chunks, strings), int64(0)
	for _, e := range all {
		total += int64(e.stored)
	}
	if total != int64(len(b)) {
		return nil, formatError("inline blocks of %d bytes, the directories say %d", len(b), total)
	}
	list := make([][]byte, len(all))
	for i, e := range all {
		list[i], b = b[:e.stored], b[e.stored:]
	}
	return &Encoded{Chunks: list[:len(chunks)], Strings: list[len(chunks):]}, nil
}

// packer compresses the blocks of a table on all cores.
type packer struct {
	limit   chan struct{}
	running sync.WaitGroup
	buffers sync.Pool
}

// packed is a block, compressed when packer.running has ended.
type packed struct {
	stored []byte
	entry  Packed
}

func newPacker() *packer {
	return &packer{limit: make(chan struct{}, runtime.GOMAXPROCS(0)+1)}
}

// plain is the block that packer.add compresses unchanged.
func plain(raw []byte) []byte { return raw }

// add compresses the result of block for a copy of raw.
func (p *packer) add(raw []byte, block func(raw []byte) []byte) *packed {
	buf, _ := p.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = append((*buf)[:0], raw...)
	item := new(packed)
	p.limit <- struct{}{}
	p.running.Go(func() {
		item.stored, item.entry = Pack(block(*buf))
		p.buffers.Put(buf)
		<-p.limit
	})
	return item
}

// textWriter packs strings into blocks.
type textWriter struct {
	size    int // at which blocks are cut
	first   uint64
	count   uint64 // strings in all
	text    []byte // the open block
	strs    uint64 // in it
	entries []stringEntry
	pack    *packer
	blocks  []*packed
	sum     hash.Hash // of all strings with their NULs, or nil

	by    *Demangler // of the strings, which are names, or nil
	shown []*packed  // then a block of demangled names for each block
}

// add appends a string and returns its number.
func (w *textWriter) add(s string) uint64 {
	if len(w.text) > 0 && len(w.text)+len(s)+1 > w.size {
		w.flush()
	}
	w.text = append(w.text, s...)
	w.text = append(w.text, 0)
	if w.sum != nil {
		w.sum.Write(w.text[len(w.text)-len(s)-1:])
	}
	w.strs++
	w.count++
	return w.first + w.count - 1
}

func (w *textWriter) flush() {
	if len(w.text) == 0 {
		return
	}
	w.blocks = append(w.blocks, w.pack.add(w.text, plain))
	if n := w.strs; w.by != nil {
		w.shown = append(w.shown, w.pack.add(w.text, func(names []byte) []byte {
			return w.by.block(names, n)
		}))
	}
	w.entries = append(w.entries, stringEntry{strs: w.strs})
	w.text, w.strs = w.text[:0], 0
}

// directory returns the directory of blocks or shown, and appends them to texts.
func (w *textWriter) directory(blocks []*packed, texts [][]byte) ([]stringEntry, [][]byte) {
	dir := slices.Clone(w.entries)
	for i, b := range blocks {
		dir[i].block = b.entry
		texts = append(texts, b.stored)
	}
	return dir, texts
}

// bytesOf returns the number of bytes of blocks.
func bytesOf(blocks [][]byte) (n int64) {
	for _, b := range blocks {
		n += int64(len(b))
	}
	return n
}
