// Package unwindtab is the format of unwind tables: a builder and a reader.
//
// A table maps the addresses of one object (addr.Addr) to rules, which lead from a frame to its
// caller's (cfi.Rule). It is a list of rows, each the address where a rule begins to hold, up to
// the next row; and a dictionary of rules, since an object has a hundred times more rows than
// rules. Expressions of DWARF are kept as bytes, so that nothing is unrepresentable.
//
// # Layout
//
// The outer form and its conventions are shared with store/symtab: numbers are LEB128 unless a
// width is stated, unknown tags are skipped, unknown flags and newer versions are refused, and
// lengths and checksums of the stored values are the store's. A table is one header and blocks:
// chunks hold rows, and the one string block holds the dictionary. A small table has its blocks in
// its header.
//
//	header  = magic "UNWTAB" | version u8 | flags u8 | { tag | length | payload }
//
// Tags of a header, one of each but the last:
//
//	1 summary     ELF machine | functions | rows | bytes of code with a rule
//	2 chunks      per chunk: start | rows | raw size | stored
//	3 dictionary  raw size | stored
//	4 inline      the stored bytes of all chunks, then of the dictionary
//
// start is the distance of the chunk's first row from the first row of the chunk before, from 0 for
// the first chunk. A chunk is cut at 16,384 rows: chunks of 1,024 need 22 to 31 % more, one chunk
// for all 6 to 12 % less. stored is size·2 + 1 for a zstd frame, size·2 for plain bytes.
//
// # Chunks
//
//	chunk   = rules | lengths
//	rules     per row: number of its rule
//	lengths   per row but the last of the chunk: bytes to the next row, at least 1; in the order
//	          of the rows' rules, and of rows with one rule in the order of their addresses
//
// Rules are numbered by how many rows they have, so that most numbers need one byte. Code of one
// rule has much the same length each time (a push, a body, an epilogue): with the lengths sorted by
// rule chunks need 6 % (libc 2.36), 6 % (cc1plus 12) and 13 % (libLLVM 14) less than in the order
// of addresses. The last row of a table has the rule "no rule".
//
// # Dictionary
//
//	dictionary  = number of rules | number of expressions | { rule } | { expression }
//	rule        = kind + 4 if it is of a signal frame u8 | if kind is 2: CFA | RA | saved …
//	CFA, …      = how u8 | operand
//	operand       how 2, 3: offset; how 4: register u8, offset; how 5, 6: number of an expression
//	expression  = length | bytes
//
// kind is a cfi.Kind, how a cfi.How; offsets are signed, in zigzag. The saved registers of a
// machine are listed by cfi.ArchOf, in its order.
package unwindtab

import (
	"debug/elf"
	"fmt"
	"math"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/machine"
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

	arch                 *machine.Arch
	funcs, rows, covered uint64
	chunks               []chunkEntry
	blocks               symtab.Blocks
	inline               bool // the blocks are in the header
	scratch              []byte
}

// chunkEntry is a chunk's entry in the header's directory.
type chunkEntry struct {
	start addr.Addr
	rows  uint32
	block symtab.Packed
}

func formatError(format string, args ...any) error {
	return fmt.Errorf("unwind table: %w: %s", symtab.ErrFormat, fmt.Sprintf(format, args...))
}

// Open reads a table's header and dictionary. It keeps both arguments; blocks may be nil if
// the table is wholly in its header. Errors wrap symtab.ErrFormat or symtab.ErrVersion.
func Open(header []byte, blocks symtab.Blocks) (*Table, error) {
	payload, err := symtab.Payloads(header, magic, Version, tagInline)
	if err != nil {
		return nil, fmt.Errorf("unwind table: %w", err)
	}
	if blocks == nil {
		blocks = &symtab.Encoded{}
	}
	t := &Table{blocks: blocks, inline: payload[tagInline] != nil}
	if err := t.summary(payload[tagSummary]); err != nil {
		return nil, err
	}
	if err := t.directory(payload[tagChunks]); err != nil {
		return nil, err
	}
	return t, t.dictionary(payload[tagDictionary], payload[tagInline])
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
	rows, start := uint64(0), uint64(0)
	for r.Left() > 0 && r.Err() == nil {
		gap, n := r.Uvarint(), r.Uvarint()
		c := chunkEntry{rows: uint32(n)}
		c.block.Read(r)
		switch {
		case n == 0 || n > chunkRows || n > uint64(c.block.Raw()):
			r.Fail("%d rows in %d bytes", n, c.block.Raw())
		case gap > math.MaxUint64-start || gap == 0 && len(t.chunks) > 0:
			r.Fail("chunks are not in order")
		}
		start += gap
		c.start = addr.Addr(start)
		rows += n
		t.chunks = append(t.chunks, c)
	}
	if r.Err() == nil && (rows != t.rows || rows == 0) {
		r.Fail("%d rows, the summary has %d", rows, t.rows)
	}
	return readError(r)
}

// dictionary reads the rules, after the blocks that are in the header.
func (t *Table) dictionary(entry, inline []byte) error {
	var block symtab.Packed
	r := decode.New("dictionary entry", entry, 0, false)
	block.Read(r)
	if err := r.Err(); err != nil {
		return formatError("%v", err)
	}
	if t.inline {
		var chunks []symtab.Packed
		for i := range t.chunks {
			chunks = append(chunks, t.chunks[i].block)
		}
		blocks, err := symtab.InlineBlocks(inline, chunks, []symtab.Packed{block})
		if err != nil {
			return fmt.Errorf("unwind table: %w", err)
		}
		t.blocks = blocks
	}
	b, err := t.block(symtab.Strings, 0, block)
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
	return readError(r)
}

// readError returns the error of a reader of a table, nil for none.
func readError(r *decode.Reader) error {
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
func (t *Table) block(kind symtab.BlockKind, i int, p symtab.Packed) ([]byte, error) {
	stored, err := t.blocks.Block(kind, i)
	if err != nil {
		return nil, err
	}
	raw, err := p.Unpack(t.scratch, stored)
	if err == nil && cap(raw) > cap(t.scratch) && &raw[0] != &stored[0] {
		t.scratch = raw[:0]
	}
	return raw, err
}

// Arch returns the registers of the table's machine.
func (t *Table) Arch() *machine.Arch { return t.arch }

// NumFuncs returns the number of functions.
func (t *Table) NumFuncs() int { return int(t.funcs) }

// NumRows returns the number of rows.
func (t *Table) NumRows() int { return int(t.rows) }

// Named returns the bytes of code that have a rule.
func (t *Table) Named() uint64 { return t.covered }

// NumBlocks returns the number of blocks of a kind outside the header.
func (t *Table) NumBlocks(kind symtab.BlockKind) int {
	switch {
	case t.inline:
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
	raw, err := t.block(symtab.Chunk, i, e.block)
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

// Chunk is a decoded chunk: six bytes a row, and an index. It is immutable.
type Chunk struct {
	start  addr.Addr
	starts []uint32 // of rows, from start
	rules  []uint16
	// index has, by starts >> shift, the last row that begins at or before such an address;
	// one entry more than there are blocks.
	index []uint16
	shift uint8
}

// decode fills in the rows. limit bounds the distance of the last row from the first; it is the
// distance of the next chunk, which no row reaches.
func (c *Chunk) decode(raw []byte, numRules int, limit uint64) bool {
	// counts becomes the place of each rule's next row in the order of the lengths.
	places := make([]uint32, numRules+1)
	for i := range c.rules {
		r, ok := decode.CutUvarint(&raw)
		if !ok || r >= uint64(numRules) {
			return false
		}
		c.rules[i] = uint16(r)
		if i+1 < len(c.rules) {
			places[r+1]++
		}
	}
	for i := 1; i < len(places); i++ {
		places[i] += places[i-1]
	}
	lengths := make([]uint32, len(c.rules)-1)
	for i := range lengths {
		n, ok := decode.CutUvarint(&raw)
		if !ok || n == 0 || n > maxSpan {
			return false
		}
		lengths[i] = uint32(n)
	}
	at := uint64(0)
	for i := range lengths {
		r := c.rules[i]
		at += uint64(lengths[places[r]])
		places[r]++
		if at >= limit {
			return false
		}
		c.starts[i+1] = uint32(at)
	}
	return len(raw) == 0
}

// makeIndex makes the index, with about as many entries as a fourth of the rows.
func (c *Chunk) makeIndex() {
	last := c.starts[len(c.starts)-1]
	for c.shift = 6; last>>c.shift > uint32(len(c.starts)/4+1); {
		c.shift++
	}
	c.index = make([]uint16, last>>c.shift+2)
	row := 0
	for i := range c.index {
		block := uint64(i) << c.shift
		for row+1 < len(c.starts) && uint64(c.starts[row+1]) <= block {
			row++
		}
		c.index[i] = uint16(row)
	}
}

// Rule returns the number of the rule for an address that ChunkOf finds in this chunk.
func (c *Chunk) Rule(a addr.Addr) uint32 {
	off := uint64(a - c.start)
	block := off >> c.shift
	if block >= uint64(len(c.index)-1) {
		return uint32(c.rules[len(c.rules)-1])
	}
	lo, hi := int(c.index[block]), int(c.index[block+1])
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if uint64(c.starts[mid]) <= off {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return uint32(c.rules[lo])
}

// Size returns the bytes of memory that the chunk uses.
func (c *Chunk) Size() int { return 6*len(c.starts) + 2*len(c.index) + 128 }
