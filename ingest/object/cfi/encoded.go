package cfi

import "symbolize/ingest/decode"

// Encodings of pointers, DW_EH_PE_…: a format in the low four bits, the base of the value
// in the next three, and whether the pointer is indirect.
const (
	formatMask = 0x0f
	formatPtr  = 0x00
	formatULEB = 0x01
	formatU2   = 0x02
	formatU4   = 0x03
	formatU8   = 0x04
	formatSPtr = 0x08
	formatSLEB = 0x09
	formatS2   = 0x0a
	formatS4   = 0x0b
	formatS8   = 0x0c

	baseMask    = 0x70
	basePC      = 0x10
	baseText    = 0x20
	baseData    = 0x30
	baseAligned = 0x50

	indirect = 0x80
	omitted  = 0xff
)

// cursor reads from a section. After a read past the end or of an invalid value, bad is
// set and all reads return 0.
type cursor struct {
	b   []byte
	at  int
	big bool
	bad bool
}

// fixed reads a number of 2, 4 or 8 bytes.
func (c *cursor) fixed(n int) uint64 {
	if c.bad || len(c.b)-c.at < n {
		c.bad = true
		return 0
	}
	b := c.b[c.at : c.at+n]
	c.at += n
	switch n {
	case 2:
		return uint64(decode.U16(b, c.big))
	case 4:
		return uint64(decode.U32(b, c.big))
	}
	return decode.U64(b, c.big)
}

// byte reads a number of one byte.
func (c *cursor) byte() uint8 {
	if c.bad || c.at >= len(c.b) {
		c.bad = true
		return 0
	}
	c.at++
	return c.b[c.at-1]
}

// leb reads a LEB128 number of at most 10 bytes.
func (c *cursor) leb(signed bool) uint64 {
	var v uint64
	for shift := uint(0); shift < 70; shift += 7 {
		x := uint64(c.byte())
		v |= (x & 0x7f) << shift
		if x&0x80 == 0 {
			if signed && x&0x40 != 0 && shift+7 < 64 {
				v |= ^uint64(0) << (shift + 7)
			}
			return v
		}
	}
	c.bad = true
	return 0
}

func (c *cursor) skipLEB() { c.leb(false) }

// name reads a string of at most limit bytes and its NUL.
func (c *cursor) name(limit int) []byte {
	for i, x := range c.b[c.at:min(len(c.b), c.at+limit+1)] {
		if x == 0 {
			s := c.b[c.at : c.at+i]
			c.at += i + 1
			return s
		}
	}
	c.bad = true
	return nil
}

// pointer reads a pointer of an encoding. Indirect ones are no pointers to code.
func (w *walker) pointer(c *cursor, encoding uint8) uint64 {
	if encoding == omitted {
		return 0
	}
	if encoding&baseMask == baseAligned {
		word := uint64(w.wordSize)
		here := uint64(w.s.Addr) + uint64(c.at)
		c.at += int(-here & (word - 1))
		c.bad = c.bad || c.at > len(c.b)
		return c.fixed(w.wordSize)
	}
	here := uint64(w.s.Addr) + uint64(c.at)
	v := w.value(c, encoding&formatMask)
	switch encoding & baseMask {
	case 0:
	case basePC:
		v += here
	case baseText:
		v += uint64(w.s.TextBase)
	case baseData:
		v += uint64(w.s.GOT)
	default: // from the function's start: undefined here
		c.bad = true
	}
	return v
}

// value reads a number of a format, extended to 64 bits.
func (w *walker) value(c *cursor, format uint8) uint64 {
	switch format {
	case formatPtr:
		return c.fixed(w.wordSize)
	case formatSPtr:
		if w.wordSize == 4 {
			return uint64(int64(int32(c.fixed(4))))
		}
		return c.fixed(8)
	case formatU2:
		return c.fixed(2)
	case formatU4:
		return c.fixed(4)
	case formatU8, formatS8:
		return c.fixed(8)
	case formatS2:
		return uint64(int64(int16(c.fixed(2))))
	case formatS4:
		return uint64(int64(int32(c.fixed(4))))
	case formatULEB:
		return c.leb(false)
	case formatSLEB:
		return c.leb(true)
	}
	c.bad = true
	return 0
}
