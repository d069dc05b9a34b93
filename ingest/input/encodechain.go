package input

import "encoding/binary"

// chainHead is the size of the number of words, which precedes the bitmap.
const chainHead = 2

// maxWords is the most words of a part of a chain; a record holds fewer.
const maxWords = 1<<16 - 1

// encodeChain appends the words of a part of a chain in about half their size, the form in
// which chains are kept and compared: the number of words; a bit for each, set if its
// difference from the word before takes 8 bytes; the differences, most of which fit into 4.
// Different words have different forms.
func encodeChain(dst, words []byte) []byte {
	n := min(len(words)/8, maxWords)
	start := len(dst)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
	bitmap := len(dst)
	for range (n + 7) / 8 {
		dst = append(dst, 0)
	}
	last := uint64(0)
	for i := range n {
		word := binary.LittleEndian.Uint64(words[8*i:])
		delta := word - last
		last = word
		if int64(int32(delta)) == int64(delta) {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(delta))
			continue
		}
		dst[bitmap+i/8] |= 1 << (i % 8)
		dst = binary.LittleEndian.AppendUint64(dst, delta)
	}
	if n == 0 {
		return dst[:start]
	}
	return dst
}

// decodeChain appends the words of a part that encodeChain encoded.
func decodeChain(dst, b []byte) []byte {
	if len(b) < chainHead {
		return dst
	}
	n := int(binary.LittleEndian.Uint16(b))
	bitmap, b := b[chainHead:], b[chainHead+(n+7)/8:]
	last := uint64(0)
	for i := range n {
		if bitmap[i/8]>>(i%8)&1 == 0 {
			last += uint64(int64(int32(binary.LittleEndian.Uint32(b))))
			b = b[4:]
		} else {
			last += binary.LittleEndian.Uint64(b)
			b = b[8:]
		}
		dst = binary.LittleEndian.AppendUint64(dst, last)
	}
	return dst
}
