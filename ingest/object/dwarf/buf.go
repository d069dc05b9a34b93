package dwarf

import "symbolize/ingest/decode"

// A buf reads a section, or the part of it up to a limit, from a position on. It is decode.Reader
// without names and messages: the walk makes several of them per entry. After the first read past
// the end bad is true, reads give zero and nothing is left.
type buf struct {
	b   []byte
	off int
	big bool
	bad bool
}

func (r *buf) left() int { return len(r.b) - r.off }

// position returns the position in the section, failed whether a read went past the end.
func (r *buf) position() uint64 { return uint64(r.off) }
func (r *buf) failed() bool     { return r.bad }

func (r *buf) fail() uint64 {
	r.bad = true
	r.off = len(r.b)
	return 0
}

func (r *buf) skip(n uint64) {
	if n > uint64(len(r.b)-r.off) {
		r.fail()
		return
	}
	r.off += int(n)
}

// seek moves to a position of the section.
func (r *buf) seek(pos uint64) {
	if pos > uint64(len(r.b)) {
		r.fail()
		return
	}
	r.off = int(pos)
}

func (r *buf) bytes(n uint64) []byte {
	if n > uint64(len(r.b)-r.off) {
		r.fail()
		return nil
	}
	b := r.b[r.off : r.off+int(n) : r.off+int(n)]
	r.off += int(n)
	return b
}

func (r *buf) u8() uint8 {
	if r.off >= len(r.b) {
		return uint8(r.fail())
	}
	v := r.b[r.off]
	r.off++
	return v
}

func (r *buf) u16() uint16 {
	if len(r.b)-r.off < 2 {
		return uint16(r.fail())
	}
	b := r.b[r.off:]
	r.off += 2
	return decode.U16(b, r.big)
}

func (r *buf) u24() uint32 {
	b := r.bytes(3)
	if b == nil {
		return 0
	}
	if r.big {
		return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
	}
	return uint32(b[2])<<16 | uint32(b[1])<<8 | uint32(b[0])
}

func (r *buf) u32() uint32 {
	if len(r.b)-r.off < 4 {
		return uint32(r.fail())
	}
	b := r.b[r.off:]
	r.off += 4
	return decode.U32(b, r.big)
}

func (r *buf) u64() uint64 {
	if len(r.b)-r.off < 8 {
		return r.fail()
	}
	b := r.b[r.off:]
	r.off += 8
	return decode.U64(b, r.big)
}

// sized reads an unsigned number of 1, 2, 3, 4 or 8 bytes.
func (r *buf) sized(n uint8) uint64 {
	switch n {
	case 1:
		return uint64(r.u8())
	case 2:
		return uint64(r.u16())
	case 3:
		return uint64(r.u24())
	case 4:
		return uint64(r.u32())
	case 8:
		return r.u64()
	}
	return r.fail()
}

// offset reads a section offset of the 32-bit or the 64-bit format.
func (r *buf) offset(is64 bool) uint64 {
	if is64 {
		return r.u64()
	}
	return uint64(r.u32())
}

// uleb reads an unsigned LEB128. Bits over 64 are dropped: assemblers pad with zeros.
func (r *buf) uleb() uint64 {
	if r.off < len(r.b) && r.b[r.off] < 0x80 {
		r.off++
		return uint64(r.b[r.off-1])
	}
	return r.ulebSlow()
}

func (r *buf) ulebSlow() uint64 {
	var v uint64
	for shift, i := uint(0), r.off; i < len(r.b); i, shift = i+1, shift+7 {
		c := r.b[i]
		if shift < 64 {
			v |= uint64(c&0x7f) << shift
		}
		if c < 0x80 {
			r.off = i + 1
			return v
		}
	}
	return r.fail()
}

// sleb reads a signed LEB128.
func (r *buf) sleb() int64 {
	var v int64
	for shift, i := uint(0), r.off; i < len(r.b); i = i + 1 {
		c := r.b[i]
		if shift < 64 {
			v |= int64(c&0x7f) << shift
		}
		shift += 7
		if c < 0x80 {
			r.off = i + 1
			if shift < 64 && c&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
	return int64(r.fail())
}

// skipLEB skips a LEB128 of either sign.
func (r *buf) skipLEB() {
	for i := r.off; i < len(r.b); i++ {
		if r.b[i] < 0x80 {
			r.off = i + 1
			return
		}
	}
	r.fail()
}

// lengthSize is the maximum size of an initial length, in bytes.
const lengthSize = 12

// length reads an initial length and reports whether the format is the 64-bit one. Values from
// 0xfffffff0 to 0xfffffffe are reserved.
func (r *buf) length() (n uint64, is64 bool) {
	n = uint64(r.u32())
	if n < 0xfffffff0 {
		return n, false
	}
	if n != 0xffffffff {
		return r.fail(), false
	}
	return r.u64(), true
}

// cstring returns the bytes up to the next NUL, which must come within maxString bytes, and skips
// both.
func (r *buf) cstring() []byte {
	s, ok := cstringAt(r.b, uint64(r.off))
	if !ok {
		r.fail()
		return nil
	}
	r.off += len(s) + 1
	return s
}
