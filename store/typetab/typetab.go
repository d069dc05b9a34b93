// Package typetab is the format of tables of data types: which member of which type each instruction of
// an object reads or writes (ingest/object/datatype, which finds them), with the types. A table is read
// where it is asked.
//
// The outer form and its conventions are shared with store/symtab: numbers are LEB128, signed ones in
// zigzag, unknown tags are skipped, unknown flags and newer versions are refused. A small table has its
// blocks in its header.
//
//	header  = magic "TYPTAB" | version u8 | flags u8 | { tag | length | payload }
//
// Tags of a header, one of each but the last:
//
//	1 summary  functions | bytes of code in them | rows | bytes of types | source u8 (datatype.Source)
//	2 chunks   per chunk: functions | distance of its start from that of the one before | raw size | stored
//	3 types    per block of types: raw size | stored
//	4 inline   the stored bytes of all blocks: chunks, then types
//	5 fixed    distances of the addresses of the rows with flow.Access.Fixed, each from the one before;
//	           missing if there are none. The digest of a table is without them
//
// stored is as in store/symtab. The blocks of types put together are BTF. A chunk has the functions from its
// start to that of the next. Its lists are columns, so that they compress, and a column has the items of each
// function together:
//
//	functions  distances from the end of the one before or the chunk's start | lengths | reasons u8 |
//	           numbers of rows
//	rows       distances from the one before or the function's start | codes u8 |
//	           and of rows with a type: sizes u8 | types | offsets, signed
//
// A code has the reason (flow.Reason) in bits 0 to 3, bit 4 if the answer is sure, bit 5 for a write, bit
// 6 for a pair: two accesses of half the size, one behind the other. A type is its distance from that of
// the row before, signed.
package typetab

import (
	"fmt"

	"symbolize/ingest/decode"
	"symbolize/ingest/object/datatype"
	"symbolize/store/symtab"
)

// Version is the format that this package writes, and the only one that it reads.
const Version = 1

const (
	magic      = "TYPTAB"
	chunkFuncs = 64
	chunkRows  = 8 << 10
	maxSpan    = 1 << 31  // bytes of code of a chunk
	inlineSize = 8 << 10  // bytes of blocks that are kept in the header
	typesBlock = 64 << 10 // bytes of types in a block
	maxTypes   = 256 << 20
)

// Tags of a header.
const (
	tagSummary = 1 + iota
	tagChunks
	tagTypes
	tagInline
	tagFixed
)

// Bits of the code of a row.
const (
	codeReason = 0xf
	codeSure   = 0x10
	codeWrite  = 0x20
	codePair   = 0x40
	knownCode  = 0x7f
)

// digestDomain separates digests of tables from other hashes.
const digestDomain = "symbolize typetab 1\n"

func formatError(format string, args ...any) error {
	return fmt.Errorf("table of types: %w: %s", symtab.ErrFormat, fmt.Sprintf(format, args...))
}

// summary describes a table.
type summary struct {
	funcs, covered, rows, types uint64
	source                      datatype.Source
}

func (s *summary) read(b []byte) error {
	r := decode.New("summary", b, 0, false)
	for _, n := range []*uint64{&s.funcs, &s.covered, &s.rows, &s.types} {
		*n = r.Uvarint()
	}
	s.source = datatype.Source(r.U8())
	switch {
	case r.Err() != nil:
		return formatError("%v", r.Err())
	case s.funcs == 0 || max(s.funcs, s.rows) > symtab.MaxTable || s.types > maxTypes || !s.source.Known():
		return formatError("%d functions, %d rows, %d bytes of types", s.funcs, s.rows, s.types)
	}
	return nil
}
