package sampler

import "encoding/binary"

// The hash of a stack: two lanes of 64 bits, each of which multiplies by hashFactor and
// folds its upper half down after every word, one after xor, one after addition. Lengths
// go in at the end. It need not resist anybody: who can choose the kernel's stacks has
// other ways.
const (
	hashFactor = 0x9E3779B97F4A7C15 // 2^64 by the golden ratio
	hashSeed   = 0x243F6A8885A308D3 // digits of pi
	foldFirst  = 32
	foldSecond = 29
)

// hashBytes is hashOf for the frames of a stack, which are whole words, in the first Part.
func hashBytes(frames []byte) hash { return hashIn(0, frames) }

// hashIn is hashBytes in a Part.
func hashIn(part uint32, frames []byte) hash {
	words := make([]uint64, 0, len(frames)/8)
	for ; len(frames) >= 8; frames = frames[8:] {
		words = append(words, binary.NativeEndian.Uint64(frames))
	}
	return hashFrom(part, words)
}

// hashOf is the program's hash, in Go.
func hashOf(words []uint64) hash { return hashFrom(0, words) }

func hashFrom(part uint32, words []uint64) hash {
	a, b := uint64(hashSeed), uint64(part)
	mix := func(w uint64) {
		a = (a ^ w) * hashFactor
		a ^= a >> foldFirst
		b = (b + w) * hashFactor
		b ^= b >> foldSecond
	}
	for _, w := range words {
		mix(w)
	}
	mix(uint64(8 * len(words)))
	return hash{a, b}
}
