package symtab

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"symbolize/ingest/decode"
)

// BlockWriter packs the blocks of a table with chunks and one more list of blocks, as those of calls and
// of types: it makes their directories and the digest of their content.
type BlockWriter struct {
	// Dir has the directories, by BlockKind. An entry can begin with fields that its table appends before
	// Add.
	Dir [2][]byte

	out      Encoded
	digest   hash.Hash
	tooLarge bool
}

// NewBlockWriter returns a BlockWriter for a digest that begins with domain.
func NewBlockWriter(domain string) *BlockWriter {
	w := &BlockWriter{digest: sha256.New()}
	w.digest.Write([]byte(domain))
	return w
}

// Add adds a block. It keeps no reference to raw.
func (w *BlockWriter) Add(kind BlockKind, raw []byte) {
	w.digest.Write(binary.AppendUvarint(nil, uint64(len(raw))))
	w.digest.Write(raw)
	w.tooLarge = w.tooLarge || len(raw) > MaxBlock
	stored, entry := Pack(raw)
	w.Dir[kind] = entry.Append(w.Dir[kind])
	if kind == Chunk {
		w.out.Chunks = append(w.out.Chunks, stored)
	} else {
		w.out.Strings = append(w.out.Strings, stored)
	}
}

// Finish returns the table with a header, to which it adds the blocks as the part inline if they have at
// most inlineSize bytes; nil if a block is over MaxBlock.
func (w *BlockWriter) Finish(header []byte, inline uint64, inlineSize int) *Encoded {
	if w.tooLarge {
		return nil
	}
	w.out.Header = header
	all := slices.Concat(slices.Concat(w.out.Chunks...), slices.Concat(w.out.Strings...))
	if len(all) <= inlineSize {
		w.out.Header, w.out.Chunks, w.out.Strings = AppendTagged(header, inline, all), nil, nil
	}
	w.digest.Sum(w.out.Digest[:0])
	return &w.out
}

// ReadPacked decodes a directory of blocks without further fields; one without blocks is an error.
func ReadPacked(name string, b []byte) (list []Packed, err error) {
	r := decode.New(name, b, 0, false)
	for r.Left() > 0 {
		var p Packed
		p.Read(r)
		list = append(list, p)
	}
	if r.Err() != nil || len(list) == 0 {
		return nil, formatError("%d blocks of %s: %v", len(list), name, r.Err())
	}
	return list, nil
}

// UnpackOwn is Unpack into memory that nothing else uses.
func (e Packed) UnpackOwn(stored []byte) ([]byte, error) {
	b, err := e.Unpack(nil, stored)
	if !e.zstd {
		b = slices.Clone(b)
	}
	return b, err
}
