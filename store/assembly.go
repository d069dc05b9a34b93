package store

import (
	"fmt"
	"strconv"

	"symbolize/store/calltab"
	"symbolize/store/symtab"
	"symbolize/store/unwindtab"
)

// The names of a source's parts, in their order: the header of the table, its blocks from 0, and
// the captured input, if one was kept.
const (
	PartTable   = "table"
	PartChunk   = "chunk-"
	PartStrings = "strings-"
	PartRaw     = "raw"
)

// Assembly puts a source together from its parts.
type Assembly struct {
	src  NewSource
	size int
}

// NewAssembly returns an Assembly without parts of the source that a manifest describes.
func NewAssembly(info *SourceInfo) *Assembly {
	return &Assembly{src: NewSource{Info: *info}}
}

// limitOf returns the size limit of the next part. A name that cannot come next is an error.
func (a *Assembly) limitOf(name string) (int64, error) {
	if t := a.src.Table; t == nil {
		if name == PartTable {
			return maxTableHeader, nil
		}
	} else {
		switch name {
		case PartRaw:
			if a.src.Raw == nil {
				return MaxSource, nil
			}
		case PartChunk + strconv.Itoa(len(t.Chunks)), PartStrings + strconv.Itoa(len(t.Strings)):
			return int64(symtab.MaxBlock), nil
		}
	}
	return 0, fmt.Errorf("%q is not the part that comes next", name)
}

// Add adds the next part and keeps it.
func (a *Assembly) Add(name string, b []byte) error {
	limit, err := a.limitOf(name)
	if err != nil {
		return err
	}
	if a.size += len(b); int64(len(b)) > limit || a.size > MaxSource {
		return fmt.Errorf("%q: source of over %d bytes: %w", name, MaxSource, ErrTooLarge)
	}
	switch t := a.src.Table; {
	case t == nil:
		a.src.Table = &symtab.Encoded{Header: b, Digest: a.src.Info.Digest}
	case name == PartRaw:
		a.src.Raw = b
	case name[0] == PartChunk[0]:
		t.Chunks = append(t.Chunks, b)
	default:
		t.Strings = append(t.Strings, b)
	}
	return nil
}

// Source returns the source, after reading its whole table: it has the blocks that its header lists
// and the digest of the source.
func (a *Assembly) Source() (*NewSource, error) {
	e := a.src.Table
	if e == nil {
		return nil, Damagef("no table")
	}
	var t blockTable
	var err error
	switch a.src.Info.Kind {
	case Unwind:
		t, err = unwindtab.Open(e.Header, e)
	case Calls:
		t, err = calltab.Open(e.Header, e)
	default:
		t, err = symtab.Open(e.Header, e)
	}
	if err != nil {
		return nil, err
	}
	if t.NumBlocks(symtab.Chunk) != len(e.Chunks) || t.NumBlocks(symtab.Strings) != len(e.Strings) {
		return nil, Damagef("%d chunks and %d string blocks, header says otherwise", len(e.Chunks),
			len(e.Strings))
	}
	sum, err := t.Digest()
	if err != nil {
		return nil, err
	}
	if sum != e.Digest {
		return nil, Damagef("table has digest %x", sum)
	}
	e.Funcs, e.Named = t.NumFuncs(), t.Named()
	return &a.src, nil
}

// blockTable is a table of either format.
type blockTable interface {
	NumBlocks(symtab.BlockKind) int
	Digest() ([32]byte, error)
	NumFuncs() int
	Named() uint64
}
