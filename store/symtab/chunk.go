package symtab

import (
	"math"

	"symbolize/ingest/decode"
)

// chunkCursor walks the ranges of one unpacked chunk. After next returns true the
// exported state is the range's; after false err is nil at the end.
type chunkCursor struct {
	gaps, sizes, kinds, extras []byte

	start, end uint64 // of the range
	funcStart  uint64
	funcSize   uint64
	number     uint32 // of the function
	name       uint32
	flags      Flags
	resumed    bool // the range continues a function of an earlier range

	nextFunc, nextStr uint64
	ranges            uint64 // remaining
	entry             chunkEntry
	err               error
}

// open starts the walk over a chunk. Blocks with unknown tags are skipped; debug, if
// not nil, is opened on the chunk's debug information.
func (c *chunkCursor) open(entry chunkEntry, raw []byte, debug *debugCursor) error {
	*c = chunkCursor{
		start: entry.start, end: entry.start, entry: entry, ranges: entry.ranges,
		nextFunc: entry.firstFunc, nextStr: entry.firstStr,
	}
	var payload [][]byte
	r := decode.New("chunk", raw, 0, false)
	if payload, c.err = tagged(r, tagDebug); c.err != nil {
		return c.err
	}
	if payload[tagRanges] == nil {
		r.Fail("no ranges")
	} else {
		r = decode.New("chunk ranges", payload[tagRanges], 0, false)
		var cols [numRangeColumns][]byte
		columns(cols[:]).read(r)
		c.gaps, c.sizes, c.kinds, c.extras = cols[0], cols[1], cols[2], cols[3]
		if r.Err() == nil && uint64(len(c.kinds)) != entry.ranges {
			r.Fail("%d ranges, the directory says %d", len(c.kinds), entry.ranges)
		}
	}
	if c.err = readError(r); c.err == nil && debug != nil {
		c.err = debug.open(payload[tagDebug])
	}
	return c.err
}

// next moves to the next range. The address arithmetic cannot wrap: every range is
// checked against the directory's end.
func (c *chunkCursor) next() bool {
	if c.ranges == 0 || c.err != nil {
		return false
	}
	c.ranges--
	gap, ok1 := decode.CutUvarint(&c.gaps)
	size, ok2 := decode.CutUvarint(&c.sizes)
	limit := c.entry.start + c.entry.span
	if !ok1 || !ok2 || size == 0 || gap > limit-c.end || size > limit-c.end-gap {
		return c.fail("range overruns the chunk")
	}
	kind := c.kinds[0]
	c.kinds = c.kinds[1:]
	c.start = c.end + gap
	c.end = c.start + size
	c.flags, c.resumed = 0, false
	if kind != 0 {
		return c.special(kind, size)
	}
	c.funcStart, c.funcSize = c.start, size
	c.number, c.name = uint32(c.nextFunc), uint32(c.nextStr)
	c.nextFunc++
	c.nextStr++
	return true
}

// special decodes the extras of a range with a kind other than 0.
func (c *chunkCursor) special(kind byte, size uint64) bool {
	if kind&^kindKnown != 0 {
		return c.fail("range of an unknown kind")
	}
	if kind&kindUnsized != 0 {
		c.flags = Unsized
	}
	if kind&kindNameless != 0 {
		if kind&kindOldName != 0 {
			return c.fail("range with a name and without")
		}
		c.flags |= Nameless
		c.name = uint32(NoName)
	} else if kind&kindOldName != 0 {
		back, ok := decode.CutUvarint(&c.extras)
		if !ok || back == 0 || back > c.nextStr {
			return c.fail("string number out of range")
		}
		c.name = uint32(c.nextStr - back)
	} else {
		c.name = uint32(c.nextStr)
		c.nextStr++
	}
	c.funcStart, c.funcSize = c.start, size
	back := uint64(0)
	if kind&kindPart != 0 {
		dist, ok1 := decode.CutUvarint(&c.extras)
		full, ok2 := decode.CutUvarint(&c.extras)
		number, ok3 := decode.CutUvarint(&c.extras)
		if !ok1 || !ok2 || !ok3 || dist > c.start || full > math.MaxUint64-(c.start-dist) ||
			full < dist || full-dist < size || number > c.nextFunc {
			return c.fail("part of a function lies outside it")
		}
		c.funcStart, c.funcSize, back = c.start-dist, full, number
	}
	c.number = uint32(c.nextFunc - back)
	c.resumed = back > 0
	if !c.resumed {
		c.nextFunc++
	}
	return true
}

func (c *chunkCursor) fail(reason string) bool {
	c.err = formatError("chunk at address %#x: %s", c.entry.start, reason)
	return false
}

// close checks, after the last range, the sums of the chunk.
func (c *chunkCursor) close() error {
	e := &c.entry
	switch {
	case c.err != nil:
	case c.ranges != 0:
	case len(c.gaps)+len(c.sizes)+len(c.kinds)+len(c.extras) != 0:
		c.fail("bytes left over")
	case c.nextFunc != e.firstFunc+e.funcs || c.nextStr != e.firstStr+e.strs:
		c.fail("counts differ from the directory")
	case c.end != e.start+e.span:
		c.fail("end differs from the directory")
	}
	return c.err
}
