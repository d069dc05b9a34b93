// Package calltab is the format of tables of calls: which functions the code of an object calls, and
// whose frame the frame pointer is at each address (ingest/object/calls, which has the form of the
// content).
//
// The outer form and its conventions are shared with store/symtab: numbers are LEB128, unknown tags are
// skipped, unknown flags and newer versions are refused. A table is read whole: its content is cut into
// pieces, which are its chunks. A small table has them in its header.
//
//	header  = magic "CALTAB" | version u8 | flags u8 | { tag | length | payload }
//
// Tags of a header, one of each but the last:
//
//	1 summary  functions | bytes of code in them
//	2 pieces   per piece of the content: raw size | stored
//	3 inline   the stored bytes of all pieces
//
// stored is as in store/symtab. Pieces have 1 MiB: one of 64 KiB needs 5 % more.
package calltab

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"symbolize/ingest/decode"
	"symbolize/ingest/object/calls"
	"symbolize/store/symtab"
)

// Version is the format that this package writes. It reads every version from 1 to this one.
const Version = 1

const (
	magic      = "CALTAB"
	pieceSize  = 1 << 20
	inlineSize = 8 << 10 // bytes of pieces that are kept in the header
	maxPieces  = 1 << 10
)

// Tags of a header.
const (
	tagSummary = 1 + iota
	tagPieces
	tagInline
)

// digestDomain separates digests of tables from other hashes.
const digestDomain = "symbolize calltab 1\n"

// Encode makes the stored form of a table; nil for one without functions.
func Encode(t *calls.Table) *symtab.Encoded {
	if len(t.Funcs) == 0 {
		return nil
	}
	raw := t.Append(nil)
	out := &symtab.Encoded{Funcs: len(t.Funcs), Digest: digestOf(raw)}
	for i := range t.Funcs {
		out.Named += uint64(t.Funcs[i].End - t.Funcs[i].Start)
	}
	var pieces, all []byte
	for len(raw) > 0 {
		n := min(len(raw), pieceSize)
		stored, entry := symtab.Pack(raw[:n])
		raw = raw[n:]
		pieces = entry.Append(pieces)
		out.Chunks = append(out.Chunks, stored)
		if len(all) <= inlineSize {
			all = append(all, stored...)
		}
	}
	summary := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(out.Funcs)), out.Named)
	head := symtab.AppendTagged(append([]byte(magic), Version, 0), tagSummary, summary)
	out.Header = symtab.AppendTagged(head, tagPieces, pieces)
	if len(all) <= inlineSize {
		out.Header, out.Chunks = symtab.AppendTagged(out.Header, tagInline, all), nil
	}
	return out
}

func digestOf(raw []byte) (sum [32]byte) {
	h := sha256.New()
	h.Write([]byte(digestDomain))
	h.Write(raw)
	h.Sum(sum[:0])
	return sum
}

// Table is a stored table of calls. It is for one goroutine at a time.
type Table struct {
	funcs, covered uint64
	pieces         []symtab.Packed
	inline         bool // the pieces are in the header
	blocks         symtab.Blocks
}

func formatError(format string, args ...any) error {
	return fmt.Errorf("table of calls: %w: %s", symtab.ErrFormat, fmt.Sprintf(format, args...))
}

// Open reads a table's header. It keeps both arguments; blocks may be nil if the table is wholly in its
// header. Errors wrap symtab.ErrFormat or symtab.ErrVersion.
func Open(header []byte, blocks symtab.Blocks) (*Table, error) {
	payload, err := symtab.Payloads(header, magic, Version, tagInline)
	if err != nil {
		return nil, fmt.Errorf("table of calls: %w", err)
	}
	t := &Table{blocks: blocks, inline: payload[tagInline] != nil}
	r := decode.New("summary", payload[tagSummary], 0, false)
	t.funcs, t.covered = r.Uvarint(), r.Uvarint()
	if err := r.Err(); err != nil || t.funcs == 0 || t.funcs > symtab.MaxTable {
		return nil, formatError("%d functions", t.funcs)
	}
	r = decode.New("pieces", payload[tagPieces], 0, false)
	for r.Left() > 0 && len(t.pieces) < maxPieces {
		var p symtab.Packed
		p.Read(r)
		if p.Raw() > pieceSize {
			r.Fail("a piece of %d bytes", p.Raw())
		}
		t.pieces = append(t.pieces, p)
	}
	if err := r.Err(); err != nil || r.Left() > 0 || len(t.pieces) == 0 {
		return nil, formatError("pieces: %v", err)
	}
	if t.inline {
		if t.blocks, err = symtab.InlineBlocks(payload[tagInline], t.pieces, nil); err != nil {
			return nil, fmt.Errorf("table of calls: %w", err)
		}
	} else if blocks == nil {
		return nil, formatError("no pieces")
	}
	return t, nil
}

// content returns the content, unpacked.
func (t *Table) content() (raw []byte, err error) {
	size := 0
	for _, p := range t.pieces {
		size += p.Raw()
	}
	for i, p := range t.pieces {
		stored, err := t.blocks.Block(symtab.Chunk, i)
		if err != nil {
			return nil, err
		}
		b, err := p.Unpack(nil, stored)
		if err != nil {
			return nil, err
		}
		if raw == nil { // a first block was there: the sizes are no invention
			raw = make([]byte, 0, size)
		}
		raw = append(raw, b...)
	}
	return raw, nil
}

// Calls decodes the table.
func (t *Table) Calls() (*calls.Table, error) {
	raw, err := t.content()
	if err != nil {
		return nil, err
	}
	table, err := calls.Parse(raw)
	if err != nil {
		return nil, formatError("%v", err)
	}
	return table, nil
}

// Digest reads the whole table, checks that it is as the format has it, and returns the digest of its
// content.
func (t *Table) Digest() (sum [32]byte, err error) {
	raw, err := t.content()
	if err != nil {
		return sum, err
	}
	table, err := calls.Parse(raw)
	if err != nil {
		return sum, formatError("%v", err)
	}
	covered := uint64(0)
	for i := range table.Funcs {
		covered += uint64(table.Funcs[i].End - table.Funcs[i].Start)
	}
	if uint64(len(table.Funcs)) != t.funcs || covered != t.covered {
		return sum, formatError("%d functions of %d bytes, the summary has %d of %d", len(table.Funcs), covered,
			t.funcs, t.covered)
	}
	return digestOf(raw), nil
}

// NumFuncs returns the number of functions.
func (t *Table) NumFuncs() int { return int(t.funcs) }

// Named returns the bytes of code in functions.
func (t *Table) Named() uint64 { return t.covered }

// NumBlocks returns the number of blocks of a kind outside the header.
func (t *Table) NumBlocks(kind symtab.BlockKind) int {
	if t.inline || kind != symtab.Chunk {
		return 0
	}
	return len(t.pieces)
}
