package flow

import (
	"cmp"
	"slices"
)

// slot is a word of the stack at CFA + off.
type slot struct {
	off int64
	v   value
}

// maxSlots bounds the slots of a state: of a frame with more the others are not followed.
const maxSlots = 512

// state is what is known before an instruction.
type state struct {
	regs  [numRegs]value
	slots []slot // by offset
}

// copyFrom makes s equal to t, in the memory of s.
func (s *state) copyFrom(t *state) {
	s.regs = t.regs
	s.slots = append(s.slots[:0], t.slots...)
}

// lose forgets registers that a call changes.
func (s *state) lose(m uint32) {
	for r := range reg(numRegs) {
		if m&r.bit() != 0 {
			s.regs[r] = lost(whyCall)
		}
	}
}

func (s *state) find(off int64) (int, bool) {
	return slices.BinarySearchFunc(s.slots, off, func(x slot, off int64) int { return cmp.Compare(x.off, off) })
}

// slot returns the value of a word.
func (s *state) slot(off int64) (value, bool) {
	if i, ok := s.find(off); ok {
		return s.slots[i].v, true
	}
	return value{}, false
}

// put notes that size bytes at an offset were written: v if that is a word with a known value.
func (s *state) put(off, size int64, v value) {
	from, _ := s.find(off - 7)
	to, _ := s.find(off + size)
	s.slots = slices.Delete(s.slots, from, to)
	if size == 8 && v.kind != unknown && len(s.slots) < maxSlots {
		s.slots = slices.Insert(s.slots, from, slot{off, v})
	}
}

// merge makes s what is known on both paths, and reports a change. With widen unequal values are lost
// at once, so that it ends.
func (n *analysis) merge(s, other *state, registers int, widen bool) (changed bool) {
	one := func(a, b value) (value, bool) {
		v, c := n.meet(a, b)
		if c && widen {
			v = lost(whyPaths).withBias()
			c = v != a
		}
		return v, c
	}
	for i := range registers {
		v, c := one(s.regs[i], other.regs[i])
		if c {
			s.regs[i], changed = v, true
		}
	}
	kept, rest := s.slots[:0], other.slots // both are by offset
	for _, x := range s.slots {
		for len(rest) > 0 && rest[0].off < x.off {
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0].off != x.off {
			changed = true
			continue
		}
		v, c := one(x.v, rest[0].v)
		changed = changed || c
		if v.kind != unknown {
			kept = append(kept, slot{x.off, v})
		}
	}
	s.slots = kept
	return changed
}
