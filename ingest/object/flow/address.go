package flow

import "symbolize/ingest/addr"

// valueOf is the value of a variable or member of a type.
func (n *analysis) valueOf(t *typ, o origin) value {
	if t.pointer() {
		return value{kind: pointer, t: n.layouts.target(t), origin: o}
	}
	if t.group() && t.size == 8 { // an iterator, a smart pointer
		for _, leaf := range n.layouts.leavesOf(t, 0, 8) {
			if leaf.Exact && leaf.t.pointer() {
				return value{kind: pointer, t: n.layouts.target(leaf.t), origin: o}
			}
		}
	}
	return value{kind: number, t: t, origin: o}
}

// fieldValue is the value of size bytes at an offset of a type.
func (n *analysis) fieldValue(t *typ, off, size int64) value {
	best := lost(whyLoaded)
	for _, leaf := range n.layouts.leavesOf(t, off, size) {
		if !leaf.Exact {
			continue
		}
		v := n.valueOf(leaf.t, computed)
		switch {
		case v.kind == pointer && best.kind == pointer:
			if same(best.t, v.t) || v.t.empty() {
				continue
			}
			if !best.t.empty() {
				return lost(whyLoaded) // members of a union disagree
			}
			best = v
		case v.kind == pointer || best.kind == unknown:
			best = v
		}
	}
	return best
}

// address is the value of a memory operand's address.
func (f *function) address(s *state, x *insn) value {
	m := &x.mem
	switch {
	case m.absolute:
		return value{kind: globalAt, off: m.disp}
	case m.base == noReg && m.index == noReg:
		return lost(whyArithmetic)
	case m.index == noReg:
		return f.based(s, m)
	case m.base == noReg:
		return f.scaledOnly(s, x)
	}
	return f.basedIndexed(s, x)
}

// based is the address base + disp.
func (f *function) based(s *state, m *memory) value {
	v := s.regs[m.base]
	switch {
	case v.addresses():
		if m.disp == 0 {
			return v
		}
		return v.moved(m.disp)
	case v.kind == constant:
		return value{kind: globalAt, off: v.off + m.disp}
	case f.object.Kernel() && m.disp < -0x10000:
		return value{kind: globalAt, off: m.disp, steps: steps{indexed: true, stride: 1}}
	}
	return lost(v.why).withBias()
}

// within returns a pointer to an element of an array, if a multiple of its size was added.
func (f *function) within(v value, d int64) value {
	if v.kind != pointer || v.t.size <= 0 || v.off >= 0 && v.off < v.t.size || d%v.t.size != 0 {
		return v
	}
	if f.bare && v.t.group() && !f.neighbour(v.t, v.off) { // a structure around it
		return v
	}
	v.off = mod(v.off, v.t.size)
	return v.strided(v.t.size)
}

// tableBase is the least displacement that is an address of a table, not a member.
const tableBase = 0x10000

// scaledOnly is the address index × scale + disp.
func (f *function) scaledOnly(s *state, x *insn) value {
	m := &x.mem
	v := s.regs[m.index]
	if m.scale == 1 && v.addresses() {
		return v.moved(m.disp)
	}
	if m.disp > tableBase || m.disp < -tableBase {
		return value{kind: globalAt, off: m.disp}.index(v, int64(m.scale))
	}
	p, ok := product(v.factorOf(), int64(m.scale))
	if g := gcd(p, m.disp); ok && g > 1 {
		w := value{kind: multiple, off: g, steps: steps{biased: v.biased || m.disp != 0}}
		if m.disp == 0 {
			if id, factor := f.identify(s, m.index, x); id != 0 {
				w.id, w.factor = id, factor*int64(m.scale)
			}
		}
		return w
	}
	return lost(whyArithmetic)
}

// basedIndexed is the address base + index × scale + disp.
func (f *function) basedIndexed(s *state, x *insn) value {
	m := &x.mem
	b, i := s.regs[m.base], s.regs[m.index]
	if m.part && i.addresses() {
		i = lost(whyArithmetic)
	}
	scale := int64(m.scale)
	switch {
	case b.addresses() && i.kind == constant:
		if p, ok := product(i.off, scale); ok {
			return b.moved(p + m.disp)
		}
		return lost(whyArithmetic)
	case b.addresses() && m.scale == 1 && i.addresses():
		return f.twoAddresses(b, i, m.disp)
	case b.addresses():
		v := b.moved(m.disp).index(i, scale)
		if b.kind == perCPU {
			v.indexed = false
		}
		return v
	case m.scale == 1 && i.addresses():
		return i.moved(m.disp).index(b, 1)
	case b.kind == constant && b.off > tableBase:
		return value{kind: globalAt, off: b.off + m.disp}.index(i, scale)
	case m.disp < -tableBase || m.disp > tableBase<<4:
		return value{kind: globalAt, off: m.disp, steps: steps{indexed: true, stride: 1}}
	}
	return f.sum(s, x, b, i)
}

// twoAddresses is the sum of what both look like addresses: the distance of this CPU's variables and
// a variable; else one is no address, and nothing says which.
func (f *function) twoAddresses(a, b value, d int64) value {
	switch {
	case a.kind == perCPU && (b.kind == globalAt || b.kind == pointer):
		return b.moved(d)
	case b.kind == perCPU && (a.kind == globalAt || a.kind == pointer):
		return a.moved(d)
	case a.kind == threadOff && b.kind == threadOff && !a.indexed && !b.indexed && (a.off == 0 || b.off == 0):
		return a.moved(b.off + d) // a distance, and the thread pointer
	case a.origin == declared && b.origin != declared:
		return a.moved(d).strided(1)
	case b.origin == declared && a.origin != declared:
		return b.moved(d).strided(1)
	}
	return lost(whyArithmetic)
}

// sum is a sum of numbers: lea as arithmetic.
func (f *function) sum(s *state, x *insn, b, i value) value {
	m := &x.mem
	scale := int64(m.scale)
	ip, ok := product(i.factorOf(), scale)
	g := gcd(gcd(b.factorOf(), ip), m.disp)
	if m.base == m.index {
		p, fits := product(b.factorOf(), scale+1)
		ok, g = fits, gcd(p, m.disp)
	}
	if !ok {
		return lost(whyArithmetic)
	}
	if m.disp == 0 {
		bi, bf := f.identify(s, m.base, x)
		ii, inf := f.identify(s, m.index, x)
		if bi != 0 && bi == ii {
			if t, ok := product(inf, scale); ok {
				return multipleOf(max(gcd(bf+t, 0), g), bi, bf+t)
			}
		}
	}
	w := lost(whyArithmetic)
	if g > 1 {
		w = value{kind: multiple, off: g}
	}
	w.biased = m.disp != 0 || b.biased || i.biased
	return w
}

// identify gives the unknown value of a register a number, so that sums of its multiples have a factor.
func (f *function) identify(s *state, r reg, x *insn) (uint64, int64) {
	v := &s.regs[r]
	switch v.kind {
	case unknown, number, multiple:
	default:
		return 0, 0
	}
	if v.id == 0 {
		v.id, v.factor = uint64(x.at)<<5|uint64(r)|1<<63, 1
	}
	return v.id, v.factor
}

// frameAt returns the variable in the frame at CFA + off; object is set if there is none, but a pointer's
// value is the address of an object.
func (f *function) frameAt(s *state, vars []frameVar, off int64) (best *frameVar, at int64) {
	for i := range vars {
		v := &vars[i]
		base := v.off
		if v.base != noReg {
			if v.base >= numRegs || s.regs[v.base].kind != stackAt || s.regs[v.base].indexed {
				continue
			}
			base += s.regs[v.base].off
		}
		if off < base || off >= base+v.size {
			continue
		}
		if best == nil || v.tells(best, f.layouts) {
			best, at = v, off-base+v.piece
		}
	}
	return best, at
}

// tells reports whether a variable describes a place better than another one.
func (v *frameVar) tells(w *frameVar, l *Layouts) bool {
	switch {
	case v.object != w.object:
		// Raw memory for an object that is built in it.
		other := w
		if w.object {
			other = v
		}
		raw := l.element(other.t).size == 1
		return v.object == raw
	case v.depth != w.depth:
		return v.depth > w.depth
	}
	return v.size > w.size
}

// segmented reports whether a segment's variables are addressed. In a kernel a pointer relative to gs is one to data of
// each processor, with the type of its target.
func (f *function) segmented(x *insn) bool {
	m := &x.mem
	return m.segment != 0 && (m.absolute || m.segment != segmentGS || !f.object.Kernel())
}

// load is the value that an instruction reads from memory.
func (f *function) load(s *state, x *insn, size int64) value {
	if f.segmented(x) {
		return f.loadSegment(s, x, size)
	}
	a := f.address(s, x)
	switch a.kind {
	case stackAt:
		if v, ok := s.slot(a.off); ok && size == 8 && !a.indexed {
			return v
		}
		if f.span != nil {
			if v, off := f.frameAt(s, f.span.frame, a.off); v != nil {
				return f.fieldValue(v.t, off, size)
			}
		}
	case globalAt:
		return f.loadGlobal(a, size)
	case pointer:
		if a.t.size <= 0 || a.off >= 0 && a.off < a.t.size {
			return f.fieldValue(a.t, a.off, size)
		}
		if !a.t.group() || a.indexed && a.stride%a.t.size == 0 || f.neighbour(a.t, a.off) {
			return f.fieldValue(a.t, mod(a.off, a.t.size), size)
		}
	}
	return lost(whyLoaded)
}

// loadGlobal is the value of a variable, or of a slot of the global offset table.
func (f *function) loadGlobal(a value, size int64) value {
	if g, ok := f.object.Global(addr.Addr(a.off)); ok {
		if g.Name == "__per_cpu_offset" && f.object.Kernel() {
			return value{kind: perCPU}
		}
		return f.fieldValue(f.layouts.of(g.Type), a.off-int64(g.At), size)
	}
	if x, ok := f.object.Slot(addr.Addr(a.off)); ok && size == 8 {
		if x.Local {
			return value{kind: threadOff, off: x.At}
		}
		return value{kind: globalAt, off: x.At}
	}
	return lost(whyLoaded)
}

// loadSegment is the value that is read relative to fs or gs: a thread-local variable, or one of this
// CPU in a kernel.
func (f *function) loadSegment(s *state, x *insn, size int64) value {
	g, off, _ := f.segmentVar(s, x)
	switch {
	case g == nil:
		if !f.object.Kernel() && x.mem.segment == segmentFS && x.mem.absolute && x.mem.disp == 0 && size == 8 {
			return value{kind: threadOff} // the thread pointer itself
		}
	case g.Name == "this_cpu_off" && f.object.Kernel():
		return value{kind: perCPU}
	default:
		return f.fieldValue(f.layouts.of(g.Type), off, size)
	}
	return lost(whyLoaded)
}

// The segment prefixes.
const (
	segmentFS = 0x64
	segmentGS = 0x65
)

// segmentVar returns the variable at an operand relative to fs or gs, and the offset in it.
func (f *function) segmentVar(s *state, x *insn) (*Global, int64, bool) {
	m := &x.mem
	if f.object.Kernel() {
		if m.segment != segmentGS || !m.absolute {
			return nil, 0, false
		}
		if g, ok := f.object.Global(addr.Addr(m.disp)); ok {
			return &g, m.disp - int64(g.At), false
		}
		return nil, 0, false
	}
	if m.segment != segmentFS {
		return nil, 0, false
	}
	d, indexed := m.disp, false
	if !m.absolute {
		a := f.address(s, x)
		if a.kind != threadOff && a.kind != globalAt { // a number is as an address here
			return nil, 0, false
		}
		d, indexed = a.off, a.indexed
	}
	if g, ok := f.object.ThreadLocal(d); ok {
		return &g, d - int64(g.At), indexed
	}
	return nil, 0, false
}
