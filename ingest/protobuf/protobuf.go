// Package protobuf splits messages of Protocol Buffers into fields, and appends fields to messages.
// A message is a sequence of fields: a tag (number << 3 | wire type) as a varint, then by wire type
// a varint, 8 bytes, a varint with so many bytes after it, or 4 bytes. Decoders look at fields in
// place: nothing is copied or allocated. Groups are not supported.
package protobuf

import (
	"encoding/binary"
	"errors"
)

// Wire types.
const (
	Varint  = 0
	Fixed64 = 1
	Bytes   = 2
	Fixed32 = 5
)

// Field is a field of a message.
type Field struct {
	Number uint64
	Wire   int
	Value  uint64 // of a Varint, Fixed64 or Fixed32
	Body   []byte // of Bytes: part of the message, not nil
}

// ErrMalformed is the error of a message that cannot be split.
var ErrMalformed = errors.New("malformed message")

// Cursor visits the fields of a message:
//
//	k := protobuf.Fields(message)
//	for k.Next() {
//		switch k.Number { … }
//	}
//	return k.Err
type Cursor struct {
	Field           // the current one
	Err       error // ErrMalformed if the message is malformed after it
	data      []byte
	start, at int // of the current field, and after it
}

// Fields returns a Cursor before the first field of a message.
func Fields(message []byte) Cursor { return Cursor{data: message} }

// Raw returns the current field with its tag.
func (c *Cursor) Raw() []byte { return c.data[c.start:c.at] }

// At returns the offset after the current field. Its Body ends there.
func (c *Cursor) At() int { return c.at }

// Next moves to the next field. It returns false at the end, and if the message is malformed.
func (c *Cursor) Next() bool {
	n := c.decode(c.data[c.at:])
	if n < 0 {
		c.Err = ErrMalformed
	}
	if n <= 0 {
		return false
	}
	c.start, c.at = c.at, c.at+n
	return true
}

// decode decodes the first field of a message and returns its length: 0 if there is none, and -1 if
// it is malformed.
func (f *Field) decode(b []byte) int {
	if len(b) < 2 { // a tag and a value
		return -len(b)
	}
	tag, n := uint64(b[0]), 1
	if tag >= 0x80 {
		if tag, n = binary.Uvarint(b); n <= 0 {
			return -1
		}
	}
	if tag>>3 == 0 { // no message has such a field, but lost pages are zeros
		return -1
	}
	*f = Field{Number: tag >> 3, Wire: int(tag & 7)}
	switch b := b[n:]; {
	case f.Wire == Fixed64 && len(b) >= 8:
		f.Value = binary.LittleEndian.Uint64(b)
		return n + 8
	case f.Wire == Fixed32 && len(b) >= 4:
		f.Value = uint64(binary.LittleEndian.Uint32(b))
		return n + 4
	case f.Wire != Varint && f.Wire != Bytes || len(b) == 0:
		return -1
	}
	value, size := uint64(b[n]), 1
	if value >= 0x80 {
		if value, size = binary.Uvarint(b[n:]); size <= 0 {
			return -1
		}
	}
	n += size
	if f.Wire == Varint {
		f.Value = value
		return n
	}
	if value > uint64(len(b)-n) {
		return -1
	}
	end := n + int(value)
	f.Body = b[n:end:end]
	return end
}

// Numbers appends the numbers of a repeated varint field, packed or not. It reports false if they
// are malformed.
func Numbers[T int64 | uint64](to []T, f *Field) ([]T, bool) {
	if f.Wire != Bytes {
		return append(to, T(f.Value)), f.Wire == Varint
	}
	for b := f.Body; len(b) > 0; {
		v, n := uint64(b[0]), 1
		if v >= 0x80 {
			if v, n = binary.Uvarint(b); n <= 0 {
				return to, false
			}
		}
		to = append(to, T(v))
		b = b[n:]
	}
	return to, true
}

// AppendVarint is binary.AppendUvarint with a fast path for short numbers.
func AppendVarint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<7:
		return append(b, byte(v))
	case v < 1<<14:
		return append(b, byte(v)|0x80, byte(v>>7))
	case v < 1<<21:
		return append(b, byte(v)|0x80, byte(v>>7)|0x80, byte(v>>14))
	}
	return binary.AppendUvarint(b, v)
}

// AppendField appends a varint field, unless it is zero, the default. Numbers of fields are at most
// 15 here and below.
func AppendField(b []byte, number int, v uint64) []byte {
	if v == 0 {
		return b
	}
	return AppendVarint(append(b, byte(number<<3)), v)
}

// AppendBool appends a field with the value true, unless v is false.
func AppendBool(b []byte, number int, v bool) []byte {
	if !v {
		return b
	}
	return append(b, byte(number<<3), 1)
}

// AppendBytes appends a length-delimited field.
func AppendBytes[T []byte | string](b []byte, number int, v T) []byte {
	b = AppendVarint(append(b, byte(number<<3|Bytes)), uint64(len(v)))
	return append(b, v...)
}
