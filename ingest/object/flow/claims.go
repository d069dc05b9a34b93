package flow

import (
	"cmp"
	"slices"
	"sort"

	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
)

// claim is the value of a register by a variable.
type claim struct {
	reg  reg
	v    value
	weak bool // from a place for a whole scope
}

// frameVar is a variable in memory: at base + off, from the CFA if base is noReg.
type frameVar struct {
	base  reg
	off   int64
	size  int64
	piece int64 // of the variable, from its beginning, that is there
	depth int
	t     *typ
	whole bool // as of Variable: it is there in all of its scope, so that its address may be known to others
	// object is set if no variable is there, but a pointer's value is its address.
	object bool
}

// span is a range of addresses at which the same variables are in scope.
type span struct {
	addr.Range
	claims []claim
	frame  []frameVar
}

// maxClaims bounds the claims of all spans of a function.
const maxClaims = 1 << 18

// spans makes the spans of a function's variables; false if they would be too many.
func (n *analysis) spans(f *Function) ([]span, bool) {
	vars := slices.DeleteFunc(f.Variables, func(v Variable) bool { return v.Start >= v.End })
	slices.SortStableFunc(vars, func(a, b Variable) int { return cmp.Compare(a.Start, b.Start) })
	cuts, list, active := n.cuts[:0], n.list[:0], n.active[:0]
	for i := range vars {
		cuts = append(cuts, vars[i].Start, vars[i].End)
	}
	slices.Sort(cuts)
	n.cuts, n.claims, n.frames = cuts, n.claims[:0], n.frames[:0]
	cuts = slices.Compact(cuts)
	next, total := 0, 0
	for i := 0; i+1 < len(cuts); i++ {
		r := addr.Range{Start: cuts[i], End: cuts[i+1]}
		active = slices.DeleteFunc(active, func(v Variable) bool { return v.End <= r.Start })
		for ; next < len(vars) && vars[next].Start <= r.Start; next++ {
			active = append(active, vars[next])
		}
		if total += len(active); total > maxClaims {
			return nil, false
		}
		if len(active) > 0 {
			claims, frames := len(n.claims), len(n.frames)
			s := span{Range: r, claims: n.claims[claims:], frame: n.frames[frames:]}
			for k := range active {
				n.claim(&s, &active[k])
			}
			n.claims, n.frames = append(n.claims, s.claims...), append(n.frames, s.frame...)
			s.claims, s.frame = slices.Clip(n.claims[claims:]), slices.Clip(n.frames[frames:])
			list = append(list, s)
		}
	}
	n.list, n.active = list, active
	return list, true
}

// spanAt returns the span at an address.
func spanAt(list []span, a addr.Addr) *span {
	i := sort.Search(len(list), func(i int) bool { return list[i].End > a })
	if i < len(list) && list[i].Start <= a {
		return &list[i]
	}
	return nil
}

// claim adds the values that a variable gives.
func (n *analysis) claim(s *span, v *Variable) {
	t := n.layouts.of(v.Type)
	depth := v.Depth
	if v.Whole {
		depth -= 1 << 20 // as good as its scope: a place from a list is better
	}
	switch v.Kind {
	case InRegister:
		if v.Size > 0 {
			n.claimPiece(s, v, t)
			return
		}
		val := n.valueOf(t, declared)
		s.add(claim{reg: reg(v.Reg), v: val, weak: v.Whole})
	case IsRegister:
		if t.pointer() && reg(v.Reg) != n.machine.sp {
			e := n.layouts.target(t)
			if !e.empty() {
				s.add(claim{reg: reg(v.Reg), weak: true,
					v: value{kind: pointer, t: e, off: -v.Off, origin: derived}})
			}
		}
		n.claimObject(s, reg(v.Reg), v.Off, t)
	case IsCFA:
		n.claimObject(s, noReg, v.Off, t)
	case AtRegister, AtCFA:
		base := noReg
		if v.Kind == AtRegister {
			base = reg(v.Reg)
		}
		size := t.size
		if v.Size > 0 {
			size = min(v.Size, t.size-v.Piece)
		}
		if size > 0 {
			s.frame = append(s.frame, frameVar{base: base, off: v.Off, size: size, piece: v.Piece, depth: depth, t: t,
				whole: v.Whole})
		}
	}
}

// claimObject notes an object without a variable: the value of a pointer is its address.
func (n *analysis) claimObject(s *span, base reg, off int64, t *typ) {
	if !t.pointer() {
		return
	}
	if e := n.layouts.target(t); e.group() && e.size > 0 {
		s.frame = append(s.frame, frameVar{base: base, off: off, size: e.size, t: e, object: true})
	}
}

// claimPiece notes a pointer that is a part of a variable.
func (n *analysis) claimPiece(s *span, v *Variable, t *typ) {
	if v.Size != 8 || v.Whole {
		return
	}
	if val := n.fieldValue(t, v.Piece, 8); val.kind == pointer {
		val.origin = declared
		s.add(claim{reg: reg(v.Reg), v: val})
	}
}

// add adds a claim; of several for a register the more exact one counts.
func (s *span) add(c claim) {
	if int(c.reg) >= numRegs || c.v.kind == unknown {
		return
	}
	for i := range s.claims {
		have := &s.claims[i]
		if have.reg != c.reg {
			continue
		}
		if have.weak && !c.weak || have.weak == c.weak && better(have.v, c.v) {
			*have = c
		}
		return
	}
	s.claims = append(s.claims, c)
}

// better reports whether what a variable says of a register tells more than what is known of it.
func better(a, b value) bool {
	if b.kind != pointer {
		return a.kind == unknown
	}
	switch a.kind {
	case unknown, number, constant, perCPU, multiple:
		return true
	case pointer:
		switch {
		case b.t.empty():
			return false
		case a.t.empty():
			return true
		case b.t.group() && b.t.kind != btf.KindFwd:
			if a.t.group() && a.origin == declared {
				return b.t.size >= a.t.size
			}
			// An element of an array, or the same address in an outer structure.
			return true
		}
		return !a.t.group()
	}
	return false
}

// untyped reports whether nothing is known of what a value points to: operator new returns a void *.
func (v value) untyped() bool {
	return v.kind == unknown || v.kind == number || v.kind == pointer && v.t.empty()
}

// overlay applies the rules and the variables before an instruction.
func (n *analysis) overlay(s *state, c CFA, claims []claim) {
	if reg(c.Reg) == n.machine.sp || reg(c.Reg) == n.machine.fp {
		if s.regs[c.Reg].kind != stackAt || s.regs[c.Reg].off < realigned/2 {
			s.regs[c.Reg] = value{kind: stackAt, off: -c.Off}
		}
	}
	for i := range claims {
		c := &claims[i]
		a := s.regs[c.reg]
		switch {
		case c.reg == n.machine.sp || c.weak && !a.untyped():
		case a.kind == pointer && c.v.kind == pointer && same(a.t, c.v.t):
			switch {
			case c.v.origin == declared && a.off == 0:
				a.origin = declared
				s.regs[c.reg] = a
			case c.v.origin == declared:
				s.regs[c.reg] = c.v
			}
		case better(a, c.v):
			s.regs[c.reg] = c.v
			if c.v.kind == number { // it stays the multiple of another one that it is
				s.regs[c.reg].id, s.regs[c.reg].factor = a.id, a.factor
			}
		}
	}
}
