package flate

import "math/bits"

// Limits of the format, RFC 1951 section 3.2.
const (
	maxCodeBits  = 15
	maxLitCodes  = 286
	maxDistCodes = 30
	numLengths   = 19 // symbols of the code for code lengths
	lengthBits   = 7  // of the longest of its codes
	endOfBlock   = 256
	firstLength  = 257
)

// Index bits of the first table. Longer codes continue in a second table. A complete code has at
// least two longer codes for each entry of the first table that refers to a second table, which
// bounds the size of second tables. All sizes are powers of two, so that masked indexes need no
// check.
const (
	litBits  = 11
	distBits = 9
	litMore  = 4096 // ≥ 288/2 << (maxCodeBits − litBits)
	distMore = 1024 // ≥ 32/2 << (maxCodeBits − distBits)
)

// An entry describes the code at the start of the input:
//
//	bits  0–7   length in bits, extra bits included
//	bits  8–14  length of the code
//	bits 15–29  literal, base of the length or of the distance
//	bits 30, 31 kind
//
// In an entryMore the value is the start of the second table, and bits 0–7 are the number
// of further index bits.
type entry uint32

const (
	entryMatch   entry = 0 << 30 // a length or a distance
	entryLiteral entry = 1 << 30
	entryMore    entry = 2 << 30 // the code continues in the second table
	entryStop    entry = 3 << 30 // the end of the block if the value is 1, else an error
	entryKind    entry = 3 << 30
	entryEnd     entry = 1 << 15
)

func (e entry) bits() uint  { return uint(e & 0xff) }
func (e entry) value() int  { return int(e >> 15 & (1<<15 - 1)) }
func (e entry) kind() entry { return e & entryKind }

// full returns the sum of base and extra bits for the code at the start of b.
func (e entry) full(b uint64) int {
	return e.value() + int(b&(1<<(e&63)-1)>>(e>>8&63))
}

// Tables of a block.
type (
	litTable struct {
		first [1 << litBits]entry
		more  [litMore]entry
	}
	distTable struct {
		first [1 << distBits]entry
		more  [distMore]entry
	}
)

// The entries of all symbols of the three alphabets, without the lengths of codes.
var (
	litEntries, distEntries = symbolEntries()
	lengthEntries           = func() (e [numLengths]entry) {
		for i := range e {
			e[i] = entryLiteral | entry(i)<<15
		}
		return e
	}()
)

// symbolEntries computes the tables of RFC 1951 section 3.2.5.
func symbolEntries() (lit [288]entry, dist [32]entry) {
	for i := range lit {
		lit[i] = entryStop // 286 and 287 have codes but must not occur
		if i < endOfBlock {
			lit[i] = entryLiteral | entry(i)<<15
		}
	}
	lit[endOfBlock] |= entryEnd
	base, extra := 3, 0
	for i := range 28 {
		if i >= 8 && i%4 == 0 {
			extra++
		}
		lit[firstLength+i] = entryMatch | entry(base)<<15 | entry(extra)
		base += 1 << extra
	}
	lit[firstLength+28] = entryMatch | 258<<15
	base, extra = 1, 0
	for i := range dist {
		dist[i] = entryStop
		if i >= 4 && i%2 == 0 {
			extra++
		}
		if i < maxDistCodes {
			dist[i] = entryMatch | entry(base)<<15 | entry(extra)
		}
		base += 1 << extra
	}
	return lit, dist
}

// build makes the tables from the lengths of codes by symbol. It returns false if the code is
// incomplete. One code of one bit is accepted, and an empty code, which is an error only when used.
// first has 1<<width entries.
func build(first, more []entry, width uint, lengths []uint8, symbols []entry) bool {
	var count [maxCodeBits + 1]int
	for _, n := range lengths {
		count[n]++
	}
	count[0] = 0
	var next [maxCodeBits + 2]int // index in sorted of the next symbol of a length
	left, used := 1, 0
	for n := 1; n <= maxCodeBits; n++ {
		if left = left<<1 - count[n]; left < 0 {
			return false
		}
		next[n+1] = next[n] + count[n]
		used += count[n]
	}
	if left > 0 && used > 1 || used == 1 && count[1] != 1 {
		return false
	}
	if left > 0 { // incomplete code
		for i := range first {
			first[i] = entryStop
		}
	}
	var sorted [288]uint16
	for sym, n := range lengths {
		if n > 0 {
			sorted[next[n]] = uint16(sym)
			next[n]++
		}
	}
	fill(first, more, width, lengths, sorted[:used], symbols)
	return true
}

// fill enters symbols, sorted by the length of their codes, into the tables.
func fill(first, more []entry, width uint, lengths []uint8, sorted []uint16,
	symbols []entry) {
	if len(sorted) == 0 {
		return
	}
	longest := uint(lengths[sorted[len(sorted)-1]])
	code, n := uint(0), uint(0)          // the bits of a code in the order of the input
	start, end, prefix := 0, 0, ^uint(0) // of the current second table
	for _, sym := range sorted {
		if n > 0 {
			code = increment(code, n)
		}
		n = uint(lengths[sym])
		e := symbols[sym] + entry(n)<<8 + entry(n)
		if n <= width {
			for i := code; i < 1<<width; i += 1 << n {
				first[i] = e
			}
			continue
		}
		if p := code & (1<<width - 1); p != prefix {
			prefix, start = p, end
			end += 1 << (longest - width)
			first[p] = entryMore | entry(start)<<15 | entry(longest-width)
		}
		for i := code >> width; i < 1<<(longest-width); i += 1 << (n - width) {
			more[start+int(i)] = e
		}
	}
}

// increment adds one to a code of n bits; its first bit is the lowest bit.
func increment(code, n uint) uint {
	up := bits.Reverse64(uint64(code)) + 1<<(64-n)
	return uint(bits.Reverse64(up))
}
