package pgo

// Discriminators is how a compiler writes discriminators of lines.
type Discriminators uint8

const (
	// Plain discriminators number the blocks of a line, as gcc's.
	Plain Discriminators = iota
	// Packed ones have three parts, as clang's with -fdebug-info-for-profiling: the number of the block,
	// how often its code was duplicated (by unrolling), and the number of the copy. Each part is
	// 1 bit 1 for zero, or 7 or 14 bits that begin with 0 (DebugInfoMetadata.h of LLVM).
	Packed
)

// line returns a line with the number of the block alone, as profiles have it.
func (d Discriminators) line(l line) line {
	l.offset &= 1<<16 - 1
	if d == Packed {
		l.discriminator = firstPart(l.discriminator)
	}
	return l
}

// copies returns how many copies of the code the compiler made: each runs that many times as often in
// the source.
func (d Discriminators) copies(v uint32) uint32 {
	if d != Packed {
		return 1
	}
	switch {
	case v&1 != 0:
		v >>= 1
	case v&0x40 != 0:
		v >>= 14
	default:
		v >>= 7
	}
	return max(firstPart(v), 1)
}

// firstPart decodes the first part of a packed discriminator.
func firstPart(v uint32) uint32 {
	if v&1 != 0 {
		return 0
	}
	v >>= 1
	if v&0x20 == 0 {
		return v & 0x1f
	}
	return v>>1&0xfe0 | v&0x1f
}
