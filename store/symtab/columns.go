package symtab

import "encoding/binary"

// Columns of a chunk's debug block, in the order of the format.
const (
	colFiles       = iota // per file that the chunk uses
	colSubNames           // per subprogram that the chunk uses
	colSubFiles           //
	colSubLines           //
	colPieceSubs          // per range
	colPieceCalls         //
	colPieceSegs          //
	colUps                // per call
	colCallSubs           //
	colCallFiles          //
	colCallLines          //
	colCallColumns        // … or none at all
	colLengths            // per segment but the last of its range
	colSegCalls           // per segment
	colSegFiles           //
	colSegLines           //
	colSegColumns         // … or none at all
	numColumns
)

// columns are the columns of one block.
type columns [numColumns][]byte

func (c *columns) put(i int, v uint64) { c[i] = binary.AppendUvarint(c[i], v) }

func (c *columns) reset() {
	for i := range c {
		c[i] = c[i][:0]
	}
}

func (c *columns) len() int {
	n := 0
	for i := range c {
		n += len(c[i])
	}
	return n
}

// append appends the block in encoded form: the lengths of all columns but the last,
// then the columns.
func (c *columns) append(b []byte) []byte {
	for i := range c[:numColumns-1] {
		b = binary.AppendUvarint(b, uint64(len(c[i])))
	}
	for i := range c {
		b = append(b, c[i]...)
	}
	return b
}

func (c *columns) encodedLen() int {
	n := c.len()
	for i := range c[:numColumns-1] {
		n += uvarintLen(len(c[i]))
	}
	return n
}

func zigzag(d int64) uint64   { return uint64(d<<1) ^ uint64(d>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// call is an inlined call of a range, with the table's numbers.
type call struct {
	parent       int32 // call that it is in; -1: none
	sub          uint32
	file         FileID
	line, column uint32
}

// segment is a part of a range in which call, file, line, and column are the same.
type segment struct {
	size         uint64
	call         int32 // the innermost one; -1: none
	file         FileID
	line, column uint32
}

// Values of colSegFiles before file numbers.
const (
	sameFile  = 0 // as the last segment of that call; at first that of its declaration
	noFile    = 1
	firstFile = 2
)

// lineState is the base of the next line number of a call or function.
type lineState struct {
	file FileID
	line uint32 // of segments
	call uint32 // of calls in it
}
