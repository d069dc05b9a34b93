package symtab

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"

	"symbolize/ingest/addr"
)

// keptStrings is the number of unpacked string blocks in a Table, 1 MiB in all.
const keptStrings = 16

// Table reads one symbol table. It is for one goroutine at a time; opening another one over the
// same bytes is cheap.
type Table struct {
	h      *header
	blocks Blocks

	chunk    []byte // unpacked
	chunkAt  int    // which one; -1: none
	chunkOwn []byte // memory to unpack into
	ahead    readAhead
	cur      chunkCursor
	debug    debugCursor // beside cur, in tables that have it
	frames   []Frame
	texts    [keptStrings]textBlock
	evict    int

	named uint64 // see Named

	keepStarts bool // see KeepStarts
	starts     []CallStart
	extents    []extent // scratch
}

// textBlock is an unpacked string block.
type textBlock struct {
	index int // of the block, plus one; 0: none
	text  []byte
	own   []byte   // memory to unpack into
	ends  []uint32 // the positions of the strings' NULs
}

// Open reads a table's header. It keeps both arguments and changes neither; blocks may be nil if
// the table is wholly in its header.
func Open(header []byte, blocks Blocks) (*Table, error) {
	h, err := parseHeader(header)
	if err != nil {
		return nil, err
	}
	if h.inline != nil {
		blocks = h.inline
	} else if blocks == nil {
		blocks = &Encoded{}
	}
	t := &Table{h: h, blocks: blocks, chunkAt: -1}
	t.debug.names, t.debug.numFiles = h.names(), h.files
	return t, nil
}

// NumFuncs returns the number of functions.
func (t *Table) NumFuncs() int { return int(t.h.funcs) }

// NumNames returns the number of distinct names; NameIDs are below it.
func (t *Table) NumNames() int { return int(t.h.names()) }

// NumFiles returns the number of source files; FileIDs are below it.
func (t *Table) NumFiles() int { return int(t.h.files) }

// HasDebug reports whether the table was made with debug information: it then has
// inlined calls and lines; Lined bytes of code have a file and a line.
func (t *Table) HasDebug() (lined uint64, ok bool) { return t.h.lined, t.h.debug }

// NumBlocks returns the number of blocks of a kind outside the header.
func (t *Table) NumBlocks(kind BlockKind) int {
	switch {
	case t.h.inline != nil:
		return 0
	case kind == Chunk:
		return len(t.h.chunks)
	}
	return t.h.texts()
}

// load returns the raw bytes of a block, in *own's memory.
func (t *Table) load(kind BlockKind, i int, e Packed, own *[]byte) ([]byte, error) {
	raw, err := t.blocks.Block(kind, i)
	if err == nil {
		raw, err = e.Unpack(*own, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %d: %w", kind, i, err)
	}
	if e.zstd {
		*own = raw
	} else {
		*own = append((*own)[:0], raw...)
	}
	return *own, nil
}

// readAhead unpacks the next chunk while another is being read. Only the unpacking is concurrent:
// the table's reader calls Blocks.
type readAhead struct {
	chunk  int    // which one, plus one; 0: none
	stored []byte // a copy
	own    []byte // memory to unpack into
	raw    []byte
	err    error
	done   chan struct{}
}

// start begins with chunk i.
func (a *readAhead) start(t *Table, i int) {
	a.drop()
	e := t.h.chunks[i].block
	b, err := t.blocks.Block(Chunk, i)
	if err != nil || !e.zstd {
		return // openChunk does it again, and returns the error
	}
	a.stored = append(a.stored[:0], b...)
	if a.done == nil {
		a.done = make(chan struct{}, 1)
	}
	a.chunk = i + 1
	go func() {
		if a.raw, a.err = e.Unpack(a.own, a.stored); a.err == nil {
			a.own = a.raw
		}
		a.done <- struct{}{}
	}()
}

// result returns the chunk's bytes, if it was started, and exchanges its memory for own.
func (a *readAhead) result(i int, own *[]byte) (raw []byte, ok bool, err error) {
	if a.chunk != i+1 {
		return nil, false, nil
	}
	a.drop()
	if a.err != nil {
		return nil, true, fmt.Errorf("%s %d: %w", Chunk, i, a.err)
	}
	a.own, *own = *own, a.own
	return a.raw, true, nil
}

// drop waits for the chunk in progress.
func (a *readAhead) drop() {
	if a.chunk != 0 {
		<-a.done
		a.chunk = 0
	}
}

// prepare unpacks chunk i into t.chunk.
func (t *Table) prepare(i int) error {
	if t.chunkAt == i {
		return nil
	}
	t.chunkAt = -1
	raw, ok, err := t.ahead.result(i, &t.chunkOwn)
	if !ok {
		raw, err = t.load(Chunk, i, t.h.chunks[i].block, &t.chunkOwn)
	}
	if err != nil {
		return err
	}
	t.chunk, t.chunkAt = raw, i
	return nil
}

// openChunk puts t.cur at the start of chunk i, and debug, if it is not nil.
func (t *Table) openChunk(i int, debug *debugCursor) error {
	if err := t.prepare(i); err != nil {
		return err
	}
	return t.cur.open(t.h.chunks[i], t.chunk, debug)
}

// debugCursor returns the cursor over debug information, nil if there is none.
func (t *Table) debugCursor() *debugCursor {
	if t.h.debug {
		return &t.debug
	}
	return nil
}

// Name returns a name of the table, as a copy.
func (t *Table) Name(n NameID) (string, error) {
	b, err := t.nameBytes(n)
	return string(b), err
}

// nameBytes is Name without the copy: valid until the next call.
func (t *Table) nameBytes(n NameID) ([]byte, error) {
	if uint64(n) >= t.h.names() {
		return nil, formatError("string %d of %d", n, t.h.names())
	}
	return t.stringOf(t.h.strings, 0, uint64(n))
}

// File returns the path of a source file, as a copy.
func (t *Table) File(f FileID) (string, error) {
	if uint64(f) >= t.h.files {
		return "", formatError("file %d of %d", f, t.h.files)
	}
	b, err := t.stringOf(t.h.fileBlocks, len(t.h.strings), uint64(f))
	return string(b), err
}

// stringOf returns string n of dir; the first block of dir is block base.
func (t *Table) stringOf(dir []stringEntry, base int, n uint64) ([]byte, error) {
	i, found := slices.BinarySearchFunc(dir, n, func(s stringEntry, n uint64) int {
		return cmp.Compare(s.first, n)
	})
	if !found {
		i--
	}
	tb, err := t.textBlock(base + i)
	if err != nil {
		return nil, err
	}
	k := n - dir[i].first
	start := uint32(0)
	if k > 0 {
		start = tb.ends[k-1] + 1
	}
	return tb.text[start:tb.ends[k]], nil
}

// textBlock returns string block i, unpacked.
func (t *Table) textBlock(i int) (*textBlock, error) {
	for k := range t.texts {
		if t.texts[k].index == i+1 {
			return &t.texts[k], nil
		}
	}
	tb := &t.texts[t.evict]
	t.evict = (t.evict + 1) % keptStrings
	tb.index = 0
	e := t.h.text(i)
	text, err := t.load(Strings, i, e.block, &tb.own)
	if err != nil {
		return nil, err
	}
	tb.text = text
	tb.ends = tb.ends[:0]
	for at := 0; at < len(tb.text); {
		n := bytes.IndexByte(tb.text[at:], 0)
		if n < 0 {
			return nil, formatError("string block %d: last string does not end", i)
		}
		tb.ends = append(tb.ends, uint32(at+n))
		at += n + 1
	}
	if uint64(len(tb.ends)) != e.strs {
		return nil, formatError("string block %d: %d strings, the directory says %d",
			i, len(tb.ends), e.strs)
	}
	tb.index = i + 1
	return tb, nil
}

// Pieces walks all ranges in ascending order. After an error, which is yielded with a zero Piece,
// it continues with the next chunk.
func (t *Table) Pieces() iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		for i := range t.h.chunks {
			if err := t.openChunk(i, nil); err != nil {
				if !yield(Piece{}, err) {
					return
				}
				continue
			}
			// Names are read between steps; the cursor must not be shared with a Join
			// that the caller makes meanwhile.
			c := t.cur
			t.chunkAt, t.chunkOwn = -1, nil
			for c.next() {
				name, err := "", error(nil)
				if c.flags&Nameless == 0 {
					name, err = t.Name(NameID(c.name))
				}
				p := Piece{
					Range:  addr.Range{Start: addr.Addr(c.start), End: addr.Addr(c.end)},
					Number: c.number,
					Func: Func{
						Start: addr.Addr(c.funcStart), Size: c.funcSize, Name: name, Flags: c.flags,
					},
				}
				if err != nil {
					p = Piece{}
				}
				if !yield(p, err) {
					return
				}
			}
			if err := c.close(); err != nil && !yield(Piece{}, err) {
				return
			}
		}
	}
}

// All walks all functions in the order of their numbers. After an error it continues with the next
// functions.
func (t *Table) All() iter.Seq2[Func, error] {
	return func(yield func(Func, error) bool) {
		next := uint32(0)
		for p, err := range t.Pieces() {
			if err == nil {
				if p.Number < next {
					continue
				}
				next = p.Number + 1
			}
			if !yield(p.Func, err) {
				return
			}
		}
	}
}
