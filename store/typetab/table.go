package typetab

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/datatype"
	"symbolize/ingest/object/flow"
	"symbolize/store/symtab"
)

// Table is a stored table of data types. It is for one goroutine at a time. Its chunks are decoded when
// they are asked.
type Table struct {
	sum    summary
	dir    []entry
	types  []symtab.Packed
	inline bool // the blocks are in the header
	blocks symtab.Blocks
	chunk  []datatype.Func // the last one that was decoded
	number int             // its number, −1 for none
	parsed *btf.Types
	fixed  []addr.Addr // of rows, ascending
}

// entry describes a chunk.
type entry struct {
	funcs  int
	start  addr.Addr
	packed symtab.Packed
}

// Open reads a table's header. It keeps both arguments; blocks may be nil if the table is wholly in its
// header. Errors wrap symtab.ErrFormat or symtab.ErrVersion.
func Open(header []byte, blocks symtab.Blocks) (*Table, error) {
	payload, err := symtab.Payloads(header, magic, Version, tagFixed)
	if err != nil {
		return nil, fmt.Errorf("table of types: %w", err)
	}
	t := &Table{blocks: blocks, inline: payload[tagInline] != nil, number: -1}
	if err := t.sum.read(payload[tagSummary]); err != nil {
		return nil, err
	}
	if err := t.directory(payload[tagChunks]); err != nil {
		return nil, err
	}
	if err := t.readFixed(payload[tagFixed]); err != nil {
		return nil, err
	}
	if t.types, err = symtab.ReadPacked("types", payload[tagTypes]); err != nil {
		return nil, fmt.Errorf("table of types: %w", err)
	}
	if t.inline {
		packed := make([]symtab.Packed, len(t.dir))
		for i := range t.dir {
			packed[i] = t.dir[i].packed
		}
		if t.blocks, err = symtab.InlineBlocks(payload[tagInline], packed, t.types); err != nil {
			return nil, fmt.Errorf("table of types: %w", err)
		}
	} else if blocks == nil {
		return nil, formatError("no blocks")
	}
	return t, nil
}

// directory reads the entries of the chunks.
func (t *Table) directory(b []byte) error {
	r := decode.New("chunks", b, 0, false)
	first, start := uint64(0), addr.Addr(0)
	for r.Left() > 0 {
		n, distance := r.Uvarint(), r.Uvarint()
		if n == 0 || n > t.sum.funcs-first || distance > uint64(^addr.Addr(0)-start) {
			r.Fail("%d functions", n)
			break
		}
		start += addr.Addr(distance)
		c := entry{funcs: int(n), start: start}
		c.packed.Read(r)
		first += n
		t.dir = append(t.dir, c)
	}
	if r.Err() != nil || first != t.sum.funcs {
		return formatError("chunks of %d functions of %d: %v", first, t.sum.funcs, r.Err())
	}
	return nil
}

// readFixed reads the addresses of rows with flow.Access.Fixed.
func (t *Table) readFixed(b []byte) error {
	r := decode.New("fixed", b, 0, false)
	at := addr.Addr(0)
	for r.Left() > 0 {
		d := addr.Addr(r.Uvarint())
		if r.Err() == nil && (at+d < at || d == 0 && len(t.fixed) > 0) {
			r.Fail("an address that does not follow %#x", uint64(at))
		}
		at += d
		t.fixed = append(t.fixed, at)
	}
	if r.Err() != nil {
		return formatError("%v", r.Err())
	}
	return nil
}

// block returns a block, unpacked.
func (t *Table) block(kind symtab.BlockKind, i int) ([]byte, error) {
	stored, err := t.blocks.Block(kind, i)
	if err != nil {
		return nil, err
	}
	if kind == symtab.Chunk {
		return t.dir[i].packed.UnpackOwn(stored)
	}
	return t.types[i].UnpackOwn(stored) // stored is valid until the next block is read
}

// At returns what the instruction at an address accesses. Its reason is NoDebugInfo if no function of the
// table has the address.
func (t *Table) At(a addr.Addr) (flow.Access, error) {
	none := flow.Access{At: a, Reason: flow.NoDebugInfo}
	i := sort.Search(len(t.dir), func(i int) bool { return t.dir[i].start > a }) - 1
	if i < 0 {
		return none, nil
	}
	funcs, err := t.load(i)
	if err != nil {
		return none, err
	}
	k := sort.Search(len(funcs), func(k int) bool { return funcs[k].Start > a }) - 1
	if k < 0 || a >= funcs[k].End {
		return none, nil
	}
	f := &funcs[k]
	if f.Reason != flow.Known {
		return flow.Access{At: a, Reason: f.Reason}, nil
	}
	n, found := slices.BinarySearchFunc(f.Rows, a, func(r flow.Access, a addr.Addr) int {
		return cmp.Compare(r.At, a)
	})
	if !found {
		return flow.Access{At: a, Reason: flow.NoMemory}, nil
	}
	return f.Rows[n], nil
}

// load decodes a chunk.
func (t *Table) load(i int) ([]datatype.Func, error) {
	if t.number == i {
		return t.chunk, nil
	}
	b, err := t.block(symtab.Chunk, i)
	if err != nil {
		return nil, err
	}
	funcs, err := t.decode(&t.dir[i], b)
	if err != nil {
		return nil, err
	}
	for i := range funcs {
		for k := range funcs[i].Rows {
			r := &funcs[i].Rows[k]
			_, r.Fixed = slices.BinarySearch(t.fixed, r.At)
			r.Fixed = r.Fixed && r.Reason == flow.Known
		}
	}
	t.chunk, t.number = funcs, i
	return funcs, nil
}

// decode decodes a chunk.
func (t *Table) decode(e *entry, b []byte) ([]datatype.Func, error) {
	if e.funcs > len(b) {
		return nil, formatError("%d functions in %d bytes", e.funcs, len(b))
	}
	d := decode.New("chunk", b, 0, false)
	funcs := make([]datatype.Func, e.funcs)
	for i := range funcs {
		funcs[i].Start = addr.Addr(d.Uvarint())
	}
	at := e.start
	for i := range funcs {
		f := &funcs[i]
		f.Start += at
		f.End = f.Start + addr.Addr(d.Uvarint())
		if f.Start < at || f.End < f.Start || f.End-e.start > maxSpan<<1 {
			return nil, formatError("a function from %#x to %#x", uint64(f.Start), uint64(f.End))
		}
		at = f.End
	}
	for i, r := range d.Bytes(uint64(len(funcs))) {
		funcs[i].Reason = flow.Reason(r)
	}
	total := uint64(0)
	for i := range funcs {
		n := d.Uvarint()
		if total += n; n > uint64(len(b)) || total > uint64(len(b)) {
			return nil, formatError("%d rows in %d bytes", total, len(b))
		}
		funcs[i].Rows = make([]flow.Access, n)
	}
	decodeRows(d, funcs)
	if d.Err() != nil || d.Left() > 0 {
		return nil, formatError("chunk with %d bytes left: %v", d.Left(), d.Err())
	}
	return funcs, nil
}

// decodeRows decodes the columns of rows.
func decodeRows(d *decode.Reader, funcs []datatype.Func) {
	each := func(known bool, fn func(r *flow.Access)) {
		for i := range funcs {
			for k := range funcs[i].Rows {
				if r := &funcs[i].Rows[k]; !known || r.Reason == flow.Known {
					fn(r)
				}
			}
		}
	}
	for i := range funcs {
		at := funcs[i].Start
		for k := range funcs[i].Rows {
			at += addr.Addr(d.Uvarint())
			funcs[i].Rows[k].At = at
			if at >= funcs[i].End || k > 0 && at <= funcs[i].Rows[k-1].At {
				d.Fail("a row at %#x", uint64(at))
				return
			}
		}
	}
	each(false, func(r *flow.Access) {
		c := d.U8()
		r.Reason, r.Sure = flow.Reason(c&codeReason), c&codeSure != 0
		r.Write, r.Pair = c&codeWrite != 0, c&codePair != 0
		if c > knownCode {
			d.Fail("code %#x", c)
		}
	})
	each(true, func(r *flow.Access) { r.Size = d.U8() })
	last := int64(0)
	each(true, func(r *flow.Access) {
		if last += d.Varint(); last < 0 || last > 1<<31 {
			d.Fail("type %d", last)
			last = 0
		}
		r.Type = btf.ID(last)
	})
	each(true, func(r *flow.Access) { r.Offset = d.Varint() })
}

// Types returns the types of the rows.
func (t *Table) Types() (*btf.Types, error) {
	if t.parsed != nil {
		return t.parsed, nil
	}
	var raw []byte
	for i := range t.types {
		b, err := t.block(symtab.Strings, i)
		if err != nil {
			return nil, err
		}
		if raw = append(raw, b...); uint64(len(raw)) > t.sum.types {
			break
		}
	}
	if uint64(len(raw)) != t.sum.types {
		return nil, formatError("%d bytes of types, the summary has %d", len(raw), t.sum.types)
	}
	types, err := btf.ParseBuilt("types", raw)
	if err != nil {
		return nil, formatError("%v", err)
	}
	t.parsed = types
	return types, nil
}

// Source returns where the types come from.
func (t *Table) Source() datatype.Source { return t.sum.source }

// Digest reads the whole table, checks that it is as the format has it, and returns the digest of its
// content.
func (t *Table) Digest() (sum [32]byte, err error) {
	h := sha256.New()
	h.Write([]byte(digestDomain))
	covered, rows := uint64(0), uint64(0)
	for i := range t.dir {
		b, err := t.block(symtab.Chunk, i)
		if err != nil {
			return sum, err
		}
		h.Write(binary.AppendUvarint(nil, uint64(len(b))))
		h.Write(b)
		funcs, err := t.load(i)
		if err != nil {
			return sum, err
		}
		for k := range funcs {
			covered += uint64(funcs[k].End - funcs[k].Start)
			rows += uint64(len(funcs[k].Rows))
		}
	}
	for i := range t.types {
		b, err := t.block(symtab.Strings, i)
		if err != nil {
			return sum, err
		}
		h.Write(binary.AppendUvarint(nil, uint64(len(b))))
		h.Write(b)
	}
	if _, err := t.Types(); err != nil {
		return sum, err
	}
	if covered != t.sum.covered || rows != t.sum.rows {
		return sum, formatError("%d bytes and %d rows, the summary has %d and %d", covered, rows,
			t.sum.covered, t.sum.rows)
	}
	h.Sum(sum[:0])
	return sum, nil
}

// NumFuncs returns the number of functions.
func (t *Table) NumFuncs() int { return int(t.sum.funcs) }

// NumRows returns the number of rows.
func (t *Table) NumRows() uint64 { return t.sum.rows }

// Named returns the bytes of code in functions.
func (t *Table) Named() uint64 { return t.sum.covered }

// NumBlocks returns the number of blocks of a kind outside the header.
func (t *Table) NumBlocks(kind symtab.BlockKind) int {
	switch {
	case t.inline:
		return 0
	case kind == symtab.Chunk:
		return len(t.dir)
	}
	return len(t.types)
}
