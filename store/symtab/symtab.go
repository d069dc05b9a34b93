package symtab

import (
	"errors"
	"fmt"

	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// Version is the newest table format that this package writes, for tables with demangled names;
// other tables have version 1. The package reads every version from 1 to this one.
const Version = 2

// plainVersion is the version of tables without demangled names.
const plainVersion = 1

// Maxima of a table. A header with more is refused before anything is allocated.
const (
	// MaxName bounds a function's name, in bytes; Builder drops longer ones. The
	// longest seen in the wild has 20,731.
	MaxName = 1 << 20
	// MaxBlock bounds the raw size of a chunk or string block, in bytes. Blocks are cut at 64 KiB;
	// one item that is larger makes a larger block.
	MaxBlock = 16 << 20
	// MaxTable bounds ranges, functions and strings of one table.
	MaxTable = 1 << 28
)

// Errors of this package wrap one of these.
var (
	// ErrFormat marks bytes that are no valid table: not written by this package, or
	// damaged.
	ErrFormat = errors.New("symbol table is damaged")
	// ErrVersion marks a table of an unknown version, or with unknown flags: a newer program
	// wrote it.
	ErrVersion = errors.New("symbol table has a newer format")
)

func formatError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// readError returns the error of a reader of a table, nil for none.
func readError(r *decode.Reader) error {
	if err := r.Err(); err != nil {
		return formatError("%v", err)
	}
	return nil
}

// Flags are properties of a symbol. The zero value is a sized, typed, strong, global one. Only
// Unsized and Nameless are kept in a table; the others serve the choice among aliases in Builder.
type Flags uint8

// The flags, heaviest first in the choice among aliases.
const (
	// Nameless is for lines without a function, see DebugFunc. Builder.Add ignores it.
	Nameless Flags = 16

	Unsized Flags = 8 // st_size 0: ends at the next symbol or the section's end
	NoType  Flags = 4 // STT_NOTYPE: a label
	Weak    Flags = 2 // STB_WEAK
	Local   Flags = 1 // STB_LOCAL
)

// Func is one physical function: Start and Size in bytes are its symbol's, regardless of other
// functions inside.
type Func struct {
	Start addr.Addr
	Size  uint64
	Name  string // mangled, as in the symbol table
	Flags Flags
}

// Piece is one range of a table, and its function.
type Piece struct {
	Range  addr.Range
	Number uint32 // of the function: 0, 1, … in the order of first ranges
	Func   Func
}

// NameID is the number of a name in its table.
type NameID uint32

// FileID is the number of a source file in its table.
type FileID uint32

// NoName and NoFile are the absence of a name and of a known file.
const (
	NoName NameID = 1<<32 - 1
	NoFile FileID = 1<<32 - 1
)

// Hit is the result for one address. Start and Size describe the function, which contains the
// address if OK.
type Hit struct {
	Start addr.Addr
	Size  uint64
	Func  uint32 // number of the function in this table, dense from 0
	Name  NameID
	Flags Flags
	OK    bool // false: no function covers the address, and all else is zero
}

// BlockKind is the kind of a block.
type BlockKind uint8

// The kinds of blocks. Their numbers are part of the store's key format.
const (
	Chunk   BlockKind = iota // ranges, with their calls and segments
	Strings                  // names and paths
)

// String returns "chunk" or "string block".
func (k BlockKind) String() string {
	if k == Chunk {
		return "chunk"
	}
	return "string block"
}

// Blocks returns the blocks of a Table, as Encoded has them.
type Blocks interface {
	// Block returns block i of a kind. The bytes must stay unchanged until the next
	// call.
	Block(kind BlockKind, i int) ([]byte, error)
}

// Encoded is a table in its stored form. It is its own Blocks.
type Encoded struct {
	Header  []byte
	Chunks  [][]byte // empty if the table is small: then all is in Header
	Strings [][]byte
	// Digest is over the content (ranges, functions, names), independent of its
	// division and compression.
	Digest [32]byte
	// Version is the format of the header.
	Version uint32
	Funcs   int    // functions
	Named   uint64 // bytes of code that have a name
}

// Size returns the bytes of Header, Chunks and Strings together.
func (e *Encoded) Size() int64 {
	return int64(len(e.Header)) + bytesOf(e.Chunks) + bytesOf(e.Strings)
}

// Block returns a block; an index out of range is an error.
func (e *Encoded) Block(kind BlockKind, i int) ([]byte, error) {
	list := e.Chunks
	if kind == Strings {
		list = e.Strings
	}
	if i < 0 || i >= len(list) {
		return nil, formatError("%s %d of %d", kind, i, len(list))
	}
	return list[i], nil
}
