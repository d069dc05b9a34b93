// Package protobuf splits messages of Protocol Buffers into fields, and appends fields to messages.
// A message is a sequence of fields: a tag (number << 3 | wire type) as a varint, then by wire type
// a varint, 8 bytes, a varint with so many bytes after it, or 4 bytes. Decoders look at fields in
// place: nothing is copied or allocated. Groups are not supported.
package protobuf

import "encoding/binary"

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

// Next splits the first field off a message. It reports false if the message is malformed there.
func Next(b []byte) (f Field, rest []byte, ok bool) {
	if len(b) < 2 { // a tag and a value
		return f, nil, false
	}
	tag, n := uint64(b[0]), 1
	if tag >= 0x80 {
		if tag, n = binary.Uvarint(b); n <= 0 {
			return f, nil, false
		}
	}
	b = b[n:]
	f.Number, f.Wire = tag>>3, int(tag&7)
	switch f.Wire {
	case Varint, Bytes:
		if len(b) == 0 {
			return f, nil, false
		}
		value, n := uint64(b[0]), 1
		if value >= 0x80 {
			if value, n = binary.Uvarint(b); n <= 0 {
				return f, nil, false
			}
		}
		b = b[n:]
		if f.Wire == Varint {
			f.Value = value
			return f, b, true
		}
		if value > uint64(len(b)) {
			return f, nil, false
		}
		f.Body = b[:value:value]
		return f, b[value:], true
	case Fixed64:
		if len(b) < 8 {
			return f, nil, false
		}
		f.Value = binary.LittleEndian.Uint64(b)
		return f, b[8:], true
	case Fixed32:
		if len(b) < 4 {
			return f, nil, false
		}
		f.Value = uint64(binary.LittleEndian.Uint32(b))
		return f, b[4:], true
	}
	return f, nil, false
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
