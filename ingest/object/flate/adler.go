package flate

import "encoding/binary"

// Adler-32, RFC 1950 section 8.2: the modulus, and how many words of eight bytes fit into sums of
// 16 bits before the second sum (255 × 22 × 23 / 2) overflows.
const (
	adlerMod   = 65521
	adlerWords = 22
)

// adler updates a checksum. It adds bytes four at a time in lanes of two words; the standard
// library adds them one by one.
func adler(sum uint32, p []byte) uint32 {
	const low = 0x00ff00ff00ff00ff
	a, b := uint64(sum&0xffff), uint64(sum>>16)
	for len(p) >= 8 {
		n := min(len(p)/8, adlerWords)
		var even, odd, evens, odds uint64 // evens, odds: sums of the values of even, odd
		for q := p[:8*n]; len(q) >= 8; q = q[8:] {
			w := binary.LittleEndian.Uint64(q)
			evens += even
			odds += odd
			even += w & low
			odd += w >> 8 & low
		}
		p = p[8*n:]
		b += a*uint64(8*n) + 8*(lanes(evens, 1, 1, 1, 1)+lanes(odds, 1, 1, 1, 1)) +
			lanes(even, 8, 6, 4, 2) + lanes(odd, 7, 5, 3, 1)
		a += lanes(even, 1, 1, 1, 1) + lanes(odd, 1, 1, 1, 1)
		a %= adlerMod
		b %= adlerMod
	}
	for _, c := range p {
		a += uint64(c)
		b += a
	}
	return uint32(b%adlerMod<<16 | a%adlerMod)
}

// lanes returns the weighted sum of the four lanes of v, the lowest first.
func lanes(v, w0, w1, w2, w3 uint64) uint64 {
	return v&0xffff*w0 + v>>16&0xffff*w1 + v>>32&0xffff*w2 + v>>48*w3
}
