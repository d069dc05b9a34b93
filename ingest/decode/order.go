package decode

import "encoding/binary"

// Order is a byte order that reads, writes and appends numbers.
type Order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// OrderOf returns a byte order. Loops over many numbers use U16, U32 and U64, which are inlined.
func OrderOf(bigEndian bool) Order {
	if bigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// U16 returns the first 2 bytes of b as a number.
func U16(b []byte, bigEndian bool) uint16 {
	if bigEndian {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

// U32 returns the first 4 bytes of b as a number.
func U32(b []byte, bigEndian bool) uint32 {
	if bigEndian {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

// U64 returns the first 8 bytes of b as a number.
func U64(b []byte, bigEndian bool) uint64 {
	if bigEndian {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}
