package gopclntab

// stream reads a table of values by address: pairs of two varints, the change of the value
// (zig-zag) and the number of its instructions. A value change of 0 ends the table, except in the
// first pair.
type stream struct {
	rest    []byte
	quantum uint64
	first   bool
	value   int32  // in force up to end
	end     uint64 // address
}

// stream returns a reader of the table at an offset of pctab for a function that starts at entry.
// Offset 0 is none: it has no values.
func (t *Table) stream(off uint32, entry uint64) stream {
	s := stream{quantum: t.quantum, first: true, value: -1, end: entry}
	if off != 0 && uint64(off) < uint64(len(t.pctab)) {
		s.rest = t.pctab[off:]
	}
	return s
}

// next steps to the next value. False is the end of the table, or damage: a pair that
// covers no code.
func (s *stream) next() bool {
	delta, ok := s.varint()
	if !ok || delta == 0 && !s.first {
		s.rest = nil
		return false
	}
	s.first = false
	n, ok := s.varint()
	step := uint64(n) * s.quantum
	if !ok || n == 0 || step > ^uint64(0)-s.end {
		s.rest = nil
		return false
	}
	s.value += int32(delta>>1) ^ -int32(delta&1)
	s.end += step
	return true
}

// varint reads a number of at most 32 bits.
func (s *stream) varint() (uint32, bool) {
	if len(s.rest) > 0 && s.rest[0] < 0x80 {
		v := uint32(s.rest[0])
		s.rest = s.rest[1:]
		return v, true
	}
	var v uint32
	for i, x := range s.rest[:min(len(s.rest), 5)] {
		v |= uint32(x&0x7f) << (7 * i)
		if x < 0x80 {
			s.rest = s.rest[i+1:]
			return v, true
		}
	}
	return 0, false
}
