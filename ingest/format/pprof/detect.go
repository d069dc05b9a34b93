package pprof

import "encoding/binary"

// Detect reports whether the first fields of a file can be those of a profile.proto: known numbers,
// with the wire types that they have, in bounds.
func Detect(head []byte) bool {
	const varint, bytes = 0, 2
	fields := 0
	for b := head; len(b) > 0; fields++ {
		number, wire := b[0]>>3, b[0]&7
		isVarint := number == 7 || number == 8 || number >= 9 && number <= 10 || number >= 12 &&
			number <= 15
		isBytes := number >= 1 && number <= 6 || number == 11 || number == 13
		if b[0] >= 0x80 || !(wire == varint && isVarint) && !(wire == bytes && isBytes) {
			return false
		}
		v, n := binary.Uvarint(b[1:])
		if n <= 0 {
			break // cut off by the size of head
		}
		b = b[1+n:]
		if wire == bytes {
			if v > uint64(len(b)) {
				return fields > 0 || len(head) == 512
			}
			b = b[v:]
		}
	}
	return fields > 0
}
