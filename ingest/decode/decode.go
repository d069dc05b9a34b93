// Package decode has the byte reader for all formats.
//
// A Reader walks a byte slice with a sticky error: after the first read past the end every method
// returns zero and Err has the position and the name. The byte order is carried as a bool: an
// interface there costs three times as much.
package decode

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Error is a decoding error with its file or section, offset and reason.
type Error struct {
	Name   string // file, section or record
	Offset int64  // in that file or section
	Reason string
}

// Error returns "NAME: offset 0x1c8: REASON".
func (e *Error) Error() string {
	return fmt.Sprintf("%s: offset %#x: %s", e.Name, e.Offset, e.Reason)
}

// Reader reads integers and strings from a byte slice it does not own. The zero value is an empty
// reader.
type Reader struct {
	name string
	buf  []byte
	pos  int
	base int64
	big  bool
	err  error
}

// New returns a Reader over buf; its first byte is at offset base of name.
func New(name string, buf []byte, base int64, bigEndian bool) *Reader {
	return &Reader{name: name, buf: buf, base: base, big: bigEndian}
}

// Err returns the first error, an *Error, or nil.
func (r *Reader) Err() error { return r.err }

// BigEndian reports the byte order.
func (r *Reader) BigEndian() bool { return r.big }

// Left returns the number of bytes not yet read; 0 after an error.
func (r *Reader) Left() int { return len(r.buf) - r.pos }

// Offset returns the position of the next byte in the file or section.
func (r *Reader) Offset() int64 { return r.base + int64(r.pos) }

// Fail sets the error, with this reason and the current offset, unless there is one already.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Name: r.name, Offset: r.Offset(), Reason: fmt.Sprintf(format, args...)}
	}
	r.pos = len(r.buf)
}

// Bytes returns the next n bytes, aliasing the underlying slice, or nil.
func (r *Reader) Bytes(n uint64) []byte {
	if n > uint64(len(r.buf)-r.pos) {
		r.Fail("%d bytes wanted, %d left", n, len(r.buf)-r.pos)
		return nil
	}
	b := r.buf[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// Skip skips n bytes.
func (r *Reader) Skip(n uint64) { r.Bytes(n) }

// Seek moves to position pos of the slice (not of the file).
func (r *Reader) Seek(pos uint64) {
	if pos > uint64(len(r.buf)) {
		r.Fail("position %d is past the end at %d", pos, len(r.buf))
		return
	}
	if r.err == nil {
		r.pos = int(pos)
	}
}

// U8 reads one byte.
func (r *Reader) U8() uint8 {
	if r.pos >= len(r.buf) {
		r.Fail("1 byte wanted, 0 left")
		return 0
	}
	v := r.buf[r.pos]
	r.pos++
	return v
}

// U16 reads two bytes.
func (r *Reader) U16() uint16 {
	b := r.Bytes(2)
	if b == nil {
		return 0
	}
	return U16(b, r.big)
}

// U32 reads four bytes.
func (r *Reader) U32() uint32 {
	b := r.Bytes(4)
	if b == nil {
		return 0
	}
	return U32(b, r.big)
}

// U64 reads eight bytes.
func (r *Reader) U64() uint64 {
	b := r.Bytes(8)
	if b == nil {
		return 0
	}
	return U64(b, r.big)
}

// Uvarint reads an unsigned LEB128 of at most 64 bits.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.buf[r.pos:])
	if n <= 0 {
		r.Fail("LEB128 number does not end or is over 64 bits")
		return 0
	}
	r.pos += n
	return v
}

// Varint reads a zig-zag coded signed number as encoding/binary writes it.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.buf[r.pos:])
	if n <= 0 {
		r.Fail("LEB128 number does not end or is over 64 bits")
		return 0
	}
	r.pos += n
	return v
}

// CString reads up to and including a NUL and returns the bytes before it. A missing NUL is an
// error.
func (r *Reader) CString() string {
	i := bytes.IndexByte(r.buf[r.pos:], 0)
	if i < 0 {
		r.Fail("string does not end")
		return ""
	}
	s := string(r.buf[r.pos : r.pos+i])
	r.pos += i + 1
	return s
}

// FixedString reads a field of n bytes and returns it up to its first NUL.
func (r *Reader) FixedString(n uint64) string {
	b := r.Bytes(n)
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// CutUvarint reads an unsigned LEB128 from the front of b and cuts it off. It reports whether there
// is one of at most 64 bits. It is for columns of numbers, most of one byte, where a Reader costs
// too much.
func CutUvarint(b *[]byte) (uint64, bool) {
	if s := *b; len(s) > 0 && s[0] < 0x80 {
		*b = s[1:]
		return uint64(s[0]), true
	}
	return cutUvarintSlow(b)
}

func cutUvarintSlow(b *[]byte) (uint64, bool) {
	v, n := binary.Uvarint(*b)
	if n <= 0 {
		return 0, false
	}
	*b = (*b)[n:]
	return v, true
}
