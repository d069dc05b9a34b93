// Package calltab is the format of tables of calls: which functions the code of an object calls, and
// whose frame the frame pointer is at each address (ingest/object/calls, which finds them). A table is
// read where it is asked.
//
// The outer form and its conventions are shared with store/symtab: numbers are LEB128, signed ones in
// zigzag, unknown tags are skipped, unknown flags and newer versions are refused. A small table has its
// blocks in its header.
//
//	header  = magic "CALTAB" | version u8 | flags u8 | { tag | length | payload }
//
// Tags of a header, one of each but the last:
//
//	1 summary  functions | bytes of code in them | imports | exports | resolvers | linker
//	2 chunks   per chunk: functions | distance of its start from that of the one before | raw size | stored
//	3 symbols  per block of symbols: raw size | stored
//	4 inline   the stored bytes of all blocks: chunks, then symbols
//
// stored is as in store/symtab. A chunk has the functions and states from its start to that of the next.
// Its lists are columns, so that they compress, and a column has the items of each function together:
//
//	functions  distances from the end of the one before or the chunk's start | lengths | flags u8 |
//	           numbers of calls, of jumps, of callers, of states
//	calls      distances of return addresses from the one before or the function's start |
//	           kinds u8, with 4 for an own frame and 8 for one that is passed on | targets
//	jumps      kinds u8 | targets
//	callers    distances of their numbers, from that of the function
//	states     distances from the one before or the function's start, of the first function the chunk's |
//	           states u8
//
// The target of a Local call or jump is the number of its function, as the distance from the number of
// the function with the call; of a Resolved one the number of its resolver, of an Indirect one 0. The states
// of a function begin with that at its start. The first block of symbols has
//
//	symbols    versions: n | { length | text } | imports | resolvers: { n | { function } }
//	import     hash of the name u64 | version u16
//
// and the next ones have exports, by hash, exportsPerBlock in each:
//
//	export     hash u64 | function + 1, or its resolver's number + 1, u32 | version u16 | flags u16
//
// Hashes are the first 8 bytes of SHA-256, integers of fixed size little-endian.
package calltab

import (
	"encoding/binary"
	"fmt"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
	"symbolize/ingest/object/calls"
	"symbolize/store/symtab"
)

// Version is the format that this package writes, and the only one that it reads.
const Version = 2

const (
	magic           = "CALTAB"
	chunkFuncs      = 128
	maxSpan         = 1 << 31  // bytes of code of a chunk
	inlineSize      = 8 << 10  // bytes of blocks that are kept in the header
	exportsPerBlock = 32 << 10 // of exportSize bytes
	importSize      = 10
	exportSize      = 16
	// maxCallers is how many callers of a function are listed, so that it has few.
	maxCallers = 8
)

// Tags of a header.
const (
	tagSummary = 1 + iota
	tagChunks
	tagSymbols
	tagInline
)

// Bits of the flags of a function.
const (
	flagOpen = 1 << iota
	flagUnknown
	flagLeaps
	flagClosed
	knownFlags = 1<<iota - 1
)

// Bits of the kind of a call.
const (
	kindOwn    = 4
	kindPasses = 8
)

// Bits of the flags of an export.
const (
	flagHidden = 1 << iota
	flagResolver
)

// digestDomain separates digests of tables from other hashes.
const digestDomain = "symbolize calltab 2\n"

// Target is where a call or a jump goes.
type Target struct {
	// N is the number of a function of the table (Local), of an import (Imported), or of a resolver
	// (Resolved).
	N    int32
	Kind calls.TargetKind
	// Own and Passes are of calls, see calls.Table.FrameAt.
	Own, Passes bool
}

// Call is a call of a function.
type Call struct {
	Return addr.Addr // the address behind it
	Target
}

// Symbol is a name, hashed, with its version, "" for none.
type Symbol struct {
	Name    uint64
	Version string
}

// Export is a function that the object exports.
type Export struct {
	Version  string
	Hidden   bool  // not the default version
	Resolver bool  // N is the number of a resolver, which returns the function to be called
	N        int32 // of a function of the table, -1 for none
}

func formatError(format string, args ...any) error {
	return fmt.Errorf("table of calls: %w: %s", symtab.ErrFormat, fmt.Sprintf(format, args...))
}

// summary describes a table.
type summary struct {
	funcs, covered, imports, exports, resolvers uint64
	linker                                      bool
}

func (s *summary) append(b []byte) []byte {
	for _, n := range []uint64{s.funcs, s.covered, s.imports, s.exports, s.resolvers} {
		b = binary.AppendUvarint(b, n)
	}
	if s.linker {
		return append(b, 1)
	}
	return append(b, 0)
}

func (s *summary) read(b []byte) error {
	r := decode.New("summary", b, 0, false)
	for _, n := range []*uint64{&s.funcs, &s.covered, &s.imports, &s.exports, &s.resolvers} {
		*n = r.Uvarint()
	}
	s.linker = r.U8() == 1
	switch {
	case r.Err() != nil:
		return formatError("%v", r.Err())
	case s.funcs == 0 || max(s.funcs, s.imports, s.exports, s.resolvers) > symtab.MaxTable:
		return formatError("%d functions, %d imports, %d exports, %d resolvers", s.funcs, s.imports, s.exports,
			s.resolvers)
	}
	return nil
}
