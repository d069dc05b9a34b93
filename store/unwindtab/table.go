package unwindtab

import (
	"debug/elf"
	"fmt"
	"math"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/cfi"
	"symbolize/store/symtab"
)

// Bounds of a table. Real ones have at most 1,155 rules and 58 expressions.
const (
	maxRules = 1 << 16
	maxExprs = 1 << 16
)

const signalBit = 4

// Table reads one unwind table. It is for one goroutine at a time; its Chunks, Rules and Exprs
// are not changed and can be shared.
type Table struct {
	Rules []cfi.Rule // by number
	Exprs [][]byte   // DWARF expressions, by number

	arch                 *cfi.Arch
	funcs, rows, covered uint64
	chunks               []chunkEntry
	blocks               symtab.Blocks
	inline               []byte
	scratch              []byte
}

// chunkEntry is a chunk's entry in the header's directory.
type chunkEntry struct {
	start addr.Addr
	rows  uint32
	block symtab.Packed
	at    int // in the inline bytes
}

func formatError(format string, args ...any) error {
	return fmt.Errorf("unwind table: %w: %s", symtab.ErrFormat, fmt.Sprintf(format, args...))
}

// Open reads a table's header and dictionary. It keeps both arguments; blocks may be nil if
// the table is wholly in its header. Errors wrap symtab.ErrFormat or symtab.ErrVersion.
func Open(header []byte, blocks symtab.Blocks) (*Table, error) {
	if len(header) < len(magic)+2 || string(header[:len(magic)]) != magic {
		return nil, formatError("no header: bad magic")
	}
	if v, flags := header[len(magic)], header[len(magic)+1]; v != Version || flags != 0 {
		if v == 0 {
			return nil, formatError("version 0")
		}
		return nil, fmt.Errorf("unwind table: %w: version %d, flags %#x; this program knows "+
			"version %d", symtab.ErrVersion, v, flags, Version)
	}
	var payload [tagInline + 1][]byte
	r := decode.New("header", header[len(magic)+2:], int64(len(magic)+2), false)
	symtab.Tagged(r, tagInline, func(tag uint64, p []byte) {
		if tag <= tagInline {
			payload[tag] = p
		}
	})
	if err := r.Err(); err != nil {
		return nil, formatError("%v", err)
	}
	if blocks == nil {
		blocks = &symtab.Encoded{}
	}
	t := &Table{blocks: blocks, inline: payload[tagInline]}
	if err := t.summary(payload[tagSummary]); err != nil {
		return nil, err
	}
	if err := t.directory(payload[tagChunks]); err != nil {
		return nil, err
	}
	return t, t.dictionary(payload[tagDictionary])
}

// summary decodes the counts.
func (t *Table) summary(b []byte) error {
	r := decode.New("summary", b, 0, false)
	machine := r.Uvarint()
	t.funcs, t.rows, t.covered = r.Uvarint(), r.Uvarint(), r.Uvarint()
	if err := r.Err(); err != nil {
		return formatError("%v", err)
	}
	if t.arch = cfi.ArchOf(elf.Machine(machine)); t.arch == nil || machine > math.MaxUint16 {
		return formatError("machine %d", machine)
	}
	if t.rows > symtab.MaxTable || t.funcs > symtab.MaxTable {
		return formatError("%d rows of %d functions", t.rows, t.funcs)
	}
	return nil
}

// directory decodes the directory of chunks.
func (t *Table) directory(b []byte) error {
	r := decode.New("chunk directory", b, 0, false)
	rows, start, at := uint64(0), uint64(0), 0
	for r.Left() > 0 && r.Err() == nil {
		gap, n := r.Uvarint(), r.Uvarint()
		c := chunkEntry{rows: uint32(n), at: at}
		c.block.Read(r)
		switch {
		case n == 0 || n > chunkRows || n > uint64(c.block.Raw()):
			r.Fail("%d rows in %d bytes", n, c.block.Raw())
		case gap > math.MaxUint64-start || gap == 0 && len(t.chunks) > 0:
			r.Fail("chunks are not in order")
		}
		start += gap
		c.start = addr.Addr(start)
		at += c.block.Stored()
		rows += n
		t.chunks = append(t.chunks, c)
	}
	if r.Err() == nil && (rows != t.rows || rows == 0) {
		r.Fail("%d rows, the summary has %d", rows, t.rows)
	}
	if err := r.Err(); err != nil {
		return formatError("%v", err)
	}
	return nil
}

// dictionary reads the rules.
func (t *Table) dictionary(entry []byte) error {
	var block symtab.Packed
	r := decode.New("dictionary entry", entry, 0, false)
	block.Read(r)
	if err := r.Err(); err != nil {
		return formatError("%v", err)
	}
	last := t.chunks[len(t.chunks)-1]
	at := last.at + last.block.Stored()
	if t.inline != nil && at+block.Stored() != len(t.inline) {
		return formatError("inline blocks of %d bytes, the directory has %d", len(t.inline),
			at+block.Stored())
	}
	b, err := t.block(symtab.Strings, 0, at, block)
	if err != nil {
		return err
	}
	r = decode.New("dictionary", b, 0, false)
	rules, exprs := r.Uvarint(), r.Uvarint()
	if rules == 0 || rules > maxRules || exprs > maxExprs || rules+exprs > uint64(r.Left()) {
		return formatError("%d rules and %d expressions in %d bytes", rules, exprs, len(b))
	}
	t.Rules = make([]cfi.Rule, rules)
	for i := range t.Rules {
		t.readRule(r, &t.Rules[i], exprs)
	}
	for range exprs {
		code := r.Bytes(r.Uvarint())
		t.Exprs = append(t.Exprs, append([]byte(nil), code...))
	}
	if r.Err() == nil && r.Left() > 0 {
		r.Fail("%d bytes too many", r.Left())
	}
	if err := r.Err(); err != nil {
		return formatError("%v", err)
	}
	return nil
}

// readRule decodes a rule.
func (t *Table) readRule(r *decode.Reader, rule *cfi.Rule, exprs uint64) {
	kind := r.U8()
	rule.Kind, rule.Signal = cfi.Kind(kind&^signalBit), kind&signalBit != 0
	if rule.Kind >= cfi.NumKinds {
		r.Fail("rule of kind %d", kind)
	}
	if rule.Kind != cfi.Frame {
		return
	}
	where := func(w *cfi.Where) {
		switch w.How = cfi.How(r.U8()); w.How {
		case cfi.Same, cfi.Undefined:
		case cfi.AtCFA, cfi.CFAPlus:
			w.Off = readOffset(r)
		case cfi.Register:
			w.Reg, w.Off = r.U8(), readOffset(r)
		case cfi.AtExpr, cfi.Expr:
			n := r.Uvarint()
			if n >= exprs {
				r.Fail("expression %d of %d", n, exprs)
			}
			w.Off = int32(n)
		default:
			r.Fail("place of kind %d", w.How)
		}
	}
	where(&rule.CFA)
	where(&rule.RA)
	for i := range t.arch.Saved {
		where(&rule.Saved[i])
	}
}

func readOffset(r *decode.Reader) int32 {
	v := r.Varint()
	if v != int64(int32(v)) {
		r.Fail("offset %d", v)
	}
	return int32(v)
}

// block returns the raw bytes of a block, valid until the next call.
func (t *Table) block(kind symtab.BlockKind, i, at int, p symtab.Packed) ([]byte, error) {
	stored := t.inline
	if stored != nil {
		if at+p.Stored() > len(stored) {
			return nil, formatError("inline %s %d is cut off", kind, i)
		}
		stored = stored[at : at+p.Stored()]
	} else {
		var err error
		if stored, err = t.blocks.Block(kind, i); err != nil {
			return nil, err
		}
	}
	raw, err := p.Unpack(t.scratch, stored)
	if err == nil && cap(raw) > cap(t.scratch) && &raw[0] != &stored[0] {
		t.scratch = raw[:0]
	}
	return raw, err
}

// Arch returns the registers of the table's machine.
func (t *Table) Arch() *cfi.Arch { return t.arch }

// Counts returns the numbers of functions and of rows, and the bytes of code with a rule.
func (t *Table) Counts() (funcs, rows int, covered uint64) {
	return int(t.funcs), int(t.rows), t.covered
}

// NumBlocks returns the number of blocks of a kind outside the header.
func (t *Table) NumBlocks(kind symtab.BlockKind) int {
	switch {
	case t.inline != nil:
		return 0
	case kind == symtab.Strings:
		return 1
	}
	return len(t.chunks)
}

// NumChunks returns the number of chunks.
func (t *Table) NumChunks() int { return len(t.chunks) }

// ChunkOf returns the chunk that holds the row of an address; -1 if it is before the first.
func (t *Table) ChunkOf(a addr.Addr) int {
	return sort.Search(len(t.chunks), func(i int) bool { return t.chunks[i].start > a }) - 1
}

// Chunk decodes a chunk. It is independent of the table afterwards.
func (t *Table) Chunk(i int) (*Chunk, error) {
	e := &t.chunks[i]
	raw, err := t.block(symtab.Chunk, i, e.at, e.block)
	if err != nil {
		return nil, err
	}
	limit := uint64(maxSpan)
	if i+1 < len(t.chunks) {
		limit = min(limit, uint64(t.chunks[i+1].start-e.start))
	}
	c := &Chunk{start: e.start, starts: make([]uint32, e.rows), rules: make([]uint16, e.rows)}
	if !c.decode(raw, len(t.Rules), limit) {
		return nil, formatError("chunk at address %#x is damaged", uint64(e.start))
	}
	c.makeIndex()
	return c, nil
}
