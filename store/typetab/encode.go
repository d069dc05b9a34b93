package typetab

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
	"symbolize/ingest/object/datatype"
	"symbolize/ingest/object/flow"
	"symbolize/store/symtab"
)

// Encode makes the stored form of a table; nil for one without functions, or over a limit. Its Digest is
// over the raw blocks.
func Encode(t *datatype.Table) *symtab.Encoded {
	raw := t.Types.Raw()
	if len(t.Funcs) == 0 || len(raw) > maxTypes {
		return nil
	}
	e := encoder{t: t, digest: sha256.New(), sum: summary{funcs: uint64(len(t.Funcs)),
		types: uint64(len(raw)), source: t.Source}}
	e.digest.Write([]byte(digestDomain))
	e.chunks()
	for b := range slices.Chunk(raw, typesBlock) {
		e.block(1, b)
	}
	return e.finish()
}

// encoder is the state of Encode.
type encoder struct {
	t        *datatype.Table
	digest   hash.Hash
	out      symtab.Encoded
	sum      summary
	dir      [2][]byte // entries of chunks, and of blocks of types
	tooLarge bool
}

// chunks writes the functions.
func (e *encoder) chunks() {
	funcs := e.t.Funcs
	last := addr.Addr(0)
	for from := 0; from < len(funcs); {
		to, rows := from, 0
		for to < len(funcs) && to-from < chunkFuncs && rows < chunkRows &&
			funcs[to].End-funcs[from].Start <= maxSpan {
			rows += len(funcs[to].Rows)
			to++
		}
		to = max(to, from+1)
		start := funcs[from].Start
		e.dir[0] = binary.AppendUvarint(e.dir[0], uint64(to-from))
		e.dir[0] = binary.AppendUvarint(e.dir[0], uint64(start-last))
		last = start
		e.block(0, e.chunk(funcs[from:to], start))
		from = to
	}
}

// chunk returns the chunk of some functions from an address on.
func (e *encoder) chunk(funcs []datatype.Func, start addr.Addr) []byte {
	var cols [9][]byte
	put := func(c int, v uint64) { cols[c] = binary.AppendUvarint(cols[c], v) }
	at, last := start, btf.ID(0)
	for i := range funcs {
		f := &funcs[i]
		put(0, uint64(f.Start-at))
		put(1, uint64(f.End-f.Start))
		at = f.End
		e.sum.covered += uint64(f.End - f.Start)
		e.sum.rows += uint64(len(f.Rows))
		cols[2] = append(cols[2], byte(f.Reason))
		put(3, uint64(len(f.Rows)))
		before := f.Start
		for k := range f.Rows {
			r := &f.Rows[k]
			put(4, uint64(r.At-before))
			before = r.At
			cols[5] = append(cols[5], codeOf(r))
			if r.Reason != flow.Known {
				continue
			}
			cols[6] = append(cols[6], r.Size)
			cols[7] = binary.AppendVarint(cols[7], int64(r.Type)-int64(last))
			cols[8] = binary.AppendVarint(cols[8], r.Offset)
			last = r.Type
		}
	}
	return slices.Concat(cols[:]...)
}

func codeOf(r *flow.Access) byte {
	c := byte(r.Reason) & codeReason
	if r.Sure {
		c |= codeSure
	}
	if r.Write {
		c |= codeWrite
	}
	return c
}

// block adds a block: of functions (0) or types (1).
func (e *encoder) block(kind int, raw []byte) {
	e.digest.Write(binary.AppendUvarint(nil, uint64(len(raw))))
	e.digest.Write(raw)
	e.tooLarge = e.tooLarge || len(raw) > symtab.MaxBlock
	stored, entry := symtab.Pack(raw)
	e.dir[kind] = entry.Append(e.dir[kind])
	if kind == 0 {
		e.out.Chunks = append(e.out.Chunks, stored)
	} else {
		e.out.Strings = append(e.out.Strings, stored)
	}
}

func (e *encoder) finish() *symtab.Encoded {
	if e.tooLarge || e.sum.rows > symtab.MaxTable {
		return nil
	}
	var sum []byte
	for _, n := range []uint64{e.sum.funcs, e.sum.covered, e.sum.rows, e.sum.types} {
		sum = binary.AppendUvarint(sum, n)
	}
	head := append([]byte(magic), Version, 0)
	head = symtab.AppendTagged(head, tagSummary, append(sum, byte(e.sum.source)))
	head = symtab.AppendTagged(head, tagChunks, e.dir[0])
	e.out.Header = symtab.AppendTagged(head, tagTypes, e.dir[1])
	all := slices.Concat(slices.Concat(e.out.Chunks...), slices.Concat(e.out.Strings...))
	if len(all) <= inlineSize {
		e.out.Header, e.out.Chunks, e.out.Strings = symtab.AppendTagged(e.out.Header, tagInline, all), nil, nil
	}
	e.out.Funcs, e.out.Named, e.out.Version = int(e.sum.funcs), e.sum.covered, Version
	e.digest.Sum(e.out.Digest[:0])
	return &e.out
}
