package unwindtab

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/decode"
)

// Chunk is a decoded chunk: six bytes a row, and an index. It is immutable.
type Chunk struct {
	start  addr.Addr
	starts []uint32 // of rows, from start
	rules  []uint16
	// index has, by starts >> shift, the last row that begins at or before such an address;
	// one entry more than there are blocks.
	index []uint16
	shift uint8
}

// decode fills in the rows. limit bounds the distance of the last row from the first; it is the
// distance of the next chunk, which no row reaches.
func (c *Chunk) decode(raw []byte, numRules int, limit uint64) bool {
	// counts becomes the place of each rule's next row in the order of the lengths.
	places := make([]uint32, numRules+1)
	for i := range c.rules {
		r, ok := decode.CutUvarint(&raw)
		if !ok || r >= uint64(numRules) {
			return false
		}
		c.rules[i] = uint16(r)
		if i+1 < len(c.rules) {
			places[r+1]++
		}
	}
	for i := 1; i < len(places); i++ {
		places[i] += places[i-1]
	}
	lengths := make([]uint32, len(c.rules)-1)
	for i := range lengths {
		n, ok := decode.CutUvarint(&raw)
		if !ok || n == 0 || n > maxSpan {
			return false
		}
		lengths[i] = uint32(n)
	}
	at := uint64(0)
	for i := range lengths {
		r := c.rules[i]
		at += uint64(lengths[places[r]])
		places[r]++
		if at >= limit {
			return false
		}
		c.starts[i+1] = uint32(at)
	}
	return len(raw) == 0
}

// makeIndex makes the index, with about as many entries as a fourth of the rows.
func (c *Chunk) makeIndex() {
	last := c.starts[len(c.starts)-1]
	for c.shift = 6; last>>c.shift > uint32(len(c.starts)/4+1); {
		c.shift++
	}
	c.index = make([]uint16, last>>c.shift+2)
	row := 0
	for i := range c.index {
		block := uint64(i) << c.shift
		for row+1 < len(c.starts) && uint64(c.starts[row+1]) <= block {
			row++
		}
		c.index[i] = uint16(row)
	}
}

// Rule returns the number of the rule for an address that ChunkOf finds in this chunk.
func (c *Chunk) Rule(a addr.Addr) uint32 {
	off := uint64(a - c.start)
	block := off >> c.shift
	if block >= uint64(len(c.index)-1) {
		return uint32(c.rules[len(c.rules)-1])
	}
	lo, hi := int(c.index[block]), int(c.index[block+1])
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if uint64(c.starts[mid]) <= off {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return uint32(c.rules[lo])
}

// Size returns the bytes of memory that the chunk uses.
func (c *Chunk) Size() int { return 6*len(c.starts) + 2*len(c.index) + 128 }
