package typetab

import (
	"encoding/binary"
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
	e := encoder{t: t, BlockWriter: symtab.NewBlockWriter(digestDomain), sum: summary{funcs: uint64(len(t.Funcs)),
		types: uint64(len(raw)), source: t.Source}}
	e.chunks()
	for b := range slices.Chunk(raw, typesBlock) {
		e.Add(symtab.Strings, b)
	}
	return e.finish()
}

// encoder is the state of Encode.
type encoder struct {
	*symtab.BlockWriter
	t   *datatype.Table
	sum summary

	fixed []byte    // payload of tagFixed
	last  addr.Addr // in it
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
		e.Dir[symtab.Chunk] = binary.AppendUvarint(e.Dir[symtab.Chunk], uint64(to-from))
		e.Dir[symtab.Chunk] = binary.AppendUvarint(e.Dir[symtab.Chunk], uint64(start-last))
		last = start
		e.Add(symtab.Chunk, e.chunk(funcs[from:to], start))
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
			if r.Fixed {
				e.fixed = binary.AppendUvarint(e.fixed, uint64(r.At-e.last))
				e.last = r.At
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
	if r.Pair {
		c |= codePair
	}
	return c
}

func (e *encoder) finish() *symtab.Encoded {
	if e.sum.rows > symtab.MaxTable {
		return nil
	}
	var sum []byte
	for _, n := range []uint64{e.sum.funcs, e.sum.covered, e.sum.rows, e.sum.types} {
		sum = binary.AppendUvarint(sum, n)
	}
	head := append([]byte(magic), Version, 0)
	head = symtab.AppendTagged(head, tagSummary, append(sum, byte(e.sum.source)))
	head = symtab.AppendTagged(head, tagChunks, e.Dir[symtab.Chunk])
	head = symtab.AppendTagged(head, tagTypes, e.Dir[symtab.Strings])
	if len(e.fixed) > 0 {
		head = symtab.AppendTagged(head, tagFixed, e.fixed)
	}
	out := e.Finish(head, tagInline, inlineSize)
	if out != nil {
		out.Funcs, out.Named, out.Version = int(e.sum.funcs), e.sum.covered, Version
	}
	return out
}
