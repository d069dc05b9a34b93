package flow

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/btf"
)

// source is the value of an instruction's source.
func (f *function) source(s *state, x *insn) value {
	switch x.form {
	case regForm:
		if x.src < numRegs {
			return s.regs[x.src]
		}
	case immForm:
		return f.immediate(x.imm)
	case memForm:
		return f.load(s, x, int64(x.width))
	case threadForm, cpuForm, taskForm:
		return f.system(x.form)
	}
	return lost(whyArithmetic)
}

// system is the value of a register that the system reserves.
func (f *function) system(from form) value {
	kernel := f.object.Kernel()
	switch {
	case from == threadForm && !kernel:
		return value{kind: threadOff}
	case from == cpuForm && kernel:
		return value{kind: perCPU}
	case from == taskForm && kernel:
		if id, ok := f.layouts.types.ByName(btf.KindStruct, "task_struct"); ok {
			return value{kind: pointer, t: f.layouts.of(id)}
		}
	}
	return lost(whyLoaded)
}

// immediate is a constant, or the address of a variable in a program at a fixed address.
func (f *function) immediate(v int64) value {
	if f.machine.immediate && (v > tableBase || v < -tableBase) {
		if _, ok := f.object.Global(addr.Addr(v)); ok {
			return value{kind: globalAt, off: v}
		}
	}
	return value{kind: constant, off: v}
}

// step executes an instruction.
func (f *function) step(s *state, x *insn) {
	if x.pair {
		f.pair(s, x)
	} else {
		f.execute(s, x)
	}
	if b := x.mem.base; x.update != 0 && b < numRegs {
		f.set(s, b, f.addConstant(s.regs[b], x.update))
	}
	for r := range reg(numRegs) {
		if x.kill&r.bit() != 0 {
			s.regs[r] = lost(whyArithmetic)
		}
	}
}

// pair executes a load or a store of two registers.
func (f *function) pair(s *state, x *insn) {
	first, second := x.halves()
	if x.form != memForm {
		f.write(s, &first)
		f.write(s, &second)
		return
	}
	v, w := lost(whyArithmetic), lost(whyArithmetic)
	if x.op == opMove { // both, before one replaces the base
		v, w = f.move(s, &first), f.move(s, &second)
	}
	f.set(s, first.dst, v)
	f.set(s, second.dst, w)
}

// execute is step of what is not a pair.
func (f *function) execute(s *state, x *insn) {
	switch x.op {
	case opKill, opStore:
		f.write(s, x)
	case opMove:
		f.set(s, x.dst, f.move(s, x))
	case opExtend:
		f.set(s, x.dst, f.extend(s, x))
	case opAddr:
		v := f.address(s, x)
		if x.width != 8 {
			v = lost(whyArithmetic)
		}
		f.set(s, x.dst, v)
	case opAdd, opSub:
		f.set(s, x.dst, f.add(s, x))
	case opShift:
		f.set(s, x.dst, f.shift(s, x))
	case opField:
		f.set(s, x.dst, f.field(s, x))
	case opMul:
		f.set(s, x.dst, multipleOf(max(x.imm, 0), 0, 0))
	case opMulAdd:
		f.set(s, x.dst, f.multiplyAdd(s, x))
	case opInsert:
		f.set(s, x.dst, f.insert(s, x))
	case opAnd:
		f.set(s, x.dst, f.and(s, x))
	case opSelect:
		v := lost(whyArithmetic)
		if x.width == 8 && x.a < numRegs {
			v, _ = f.meet(s.regs[x.a], f.source(s, x))
		}
		f.set(s, x.dst, v)
	case opSwap:
		if x.dst < numRegs && x.src < numRegs {
			s.regs[x.dst], s.regs[x.src] = s.regs[x.src], s.regs[x.dst]
		}
	case opPush:
		f.push(s, f.source(s, x))
	case opPop:
		f.pop(s, x.dst)
	case opLeave:
		f.set(s, f.machine.sp, s.regs[f.machine.fp])
		f.pop(s, f.machine.fp)
	case opCall:
		f.call(s, x)
	}
}

// set sets a register. The stack pointer is the stack's, or not known.
func (f *function) set(s *state, r reg, v value) {
	if r >= numRegs {
		return
	}
	if r == f.machine.sp && v.kind != stackAt {
		v = value{}
	}
	s.regs[r] = v
}

func (f *function) push(s *state, v value) {
	if sp := &s.regs[f.machine.sp]; sp.kind == stackAt {
		sp.off -= 8
		s.put(sp.off, 8, v)
	}
}

func (f *function) pop(s *state, dst reg) {
	sp := &s.regs[f.machine.sp]
	v := lost(whyEntry)
	if sp.kind == stackAt {
		if w, ok := s.slot(sp.off); ok {
			v = w
		}
		sp.off += 8
	}
	f.set(s, dst, v)
}

// write notes what an instruction writes to the stack.
func (f *function) write(s *state, x *insn) {
	if !x.writes || x.mem.segment != 0 {
		return
	}
	a := f.address(s, x)
	if a.kind != stackAt {
		return
	}
	if a.indexed { // any word of the array from here on
		from, _ := s.find(a.off - 7)
		s.slots = s.slots[:from]
		return
	}
	v := lost(whyArithmetic)
	if x.op == opStore && x.width == 8 {
		v = f.source(s, x)
	}
	s.put(a.off, int64(x.access), v)
}

// move is the value that a move copies.
func (f *function) move(s *state, x *insn) value {
	if x.form == regForm && x.src < numRegs {
		f.identify(s, x.src, x)
	}
	v := f.source(s, x)
	switch {
	case x.width == 8:
		if v.origin != computed {
			v.origin = computed
		}
		return v
	case x.width == 4 && (v.scalar() || v.kind == number || v.kind == unknown && x.form == regForm):
		return v
	case x.width == 4 && v.kind == globalAt && x.form == immForm:
		return v
	}
	return lost(whyArithmetic)
}

// extend is a value that is extended: factors and numbers stay, if no bits are lost.
func (f *function) extend(s *state, x *insn) value {
	if x.form != regForm || x.width < 4 || x.src >= numRegs {
		return lost(whyArithmetic)
	}
	f.identify(s, x.src, x)
	v := s.regs[x.src]
	if v.scalar() || v.kind == unknown {
		return v
	}
	return lost(whyArithmetic)
}

// add is a sum or a difference.
func (f *function) add(s *state, x *insn) value {
	if x.a >= numRegs {
		return lost(whyArithmetic)
	}
	v := s.regs[x.a]
	if x.width != 8 {
		if v.kind == number || x.form == immForm && v.kind == multiple && gcd(v.off, x.imm) > 1 {
			if v.kind == multiple {
				return value{kind: multiple, off: gcd(v.off, x.imm), steps: steps{biased: true}}
			}
			return v.withBias()
		}
		if x.form != regForm || x.src >= numRegs {
			w := lost(whyArithmetic)
			w.biased = x.form == immForm
			return w
		}
	}
	sign := int64(1)
	if x.op == opSub {
		sign = -1
	}
	if x.form == immForm {
		return f.addConstant(v, sign*x.imm)
	}
	if x.form == regForm && x.src < numRegs {
		if id, factor := f.identify(s, x.a, x); id != 0 {
			if id2, factor2 := f.identify(s, x.src, x); id == id2 {
				sum := factor + sign*factor2<<x.shift
				v, w := s.regs[x.a], s.regs[x.src]
				return multipleOf(max(gcd(sum, 0), gcd(v.factorOf(), w.factorOf()<<x.shift)), id, sum)
			}
		}
		v = s.regs[x.a]
	}
	w := f.source(s, x)
	if x.shift != 0 {
		w = shifted(w, int64(x.shift))
	}
	if x.width != 8 {
		if v.scalar() && w.scalar() && gcd(v.off, w.off) > 1 {
			return value{kind: multiple, off: gcd(v.off, w.off)}
		}
		return lost(whyArithmetic)
	}
	return f.addValues(v, w, sign)
}

// addConstant is v + d.
func (f *function) addConstant(v value, d int64) value {
	switch v.kind {
	case pointer:
		return f.within(v.moved(d), d)
	case constant, stackAt, globalAt, threadOff:
		return v.moved(d)
	case number:
		return v.withBias()
	case multiple:
		if g := gcd(v.off, d); g > 1 {
			return value{kind: multiple, off: g, steps: steps{biased: true}}
		}
	}
	return lost(whyArithmetic).withBias()
}

// addValues is v + sign × w.
func (f *function) addValues(v, w value, sign int64) value {
	switch {
	case w.kind == constant && v.kind != multiple:
		return f.addConstant(v, sign*w.off)
	case v.scalar() && w.scalar():
		if g := gcd(v.off, w.off); g > 1 {
			return value{kind: multiple, off: g}
		}
		return lost(whyArithmetic)
	case sign < 0:
		if v.kind == pointer || v.kind == globalAt {
			if w.addresses() {
				return lost(whyArithmetic)
			}
			return v.index(w, 1)
		}
		return lost(whyArithmetic)
	case v.kind == constant:
		return f.addConstant(w, v.off)
	case v.addresses() && w.addresses():
		return f.twoAddresses(v, w, 0)
	case v.kind == perCPU, w.kind == perCPU:
		return lost(whyArithmetic)
	case v.addresses():
		return v.index(w, 1)
	case w.addresses():
		return w.index(v, 1)
	}
	return lost(whyArithmetic)
}

func (f *function) shift(s *state, x *insn) value {
	if x.a >= numRegs || x.imm <= 0 || x.imm >= 32 {
		return lost(whyArithmetic)
	}
	id, factor := f.identify(s, x.a, x)
	w := shifted(s.regs[x.a], x.imm)
	if w.kind == multiple && id != 0 && factor < 1<<20 && factor > -(1<<20) {
		w.id, w.factor = id, factor<<uint(x.imm)
	}
	return w
}

// shifted is v << n, without its number.
func shifted(v value, n int64) value {
	m := v.factorOf()
	switch {
	case m > 1<<30 || m < -(1<<30):
		return lost(whyArithmetic)
	case v.kind == constant:
		return value{kind: constant, off: m << uint(n)}
	}
	return value{kind: multiple, off: m << uint(n), steps: steps{biased: v.biased}}
}

// field is a multiple of the lowest bits of a value: those of one value have one number.
func (f *function) field(s *state, x *insn) value {
	if x.a >= numRegs || x.imm >= 32 {
		return lost(whyArithmetic)
	}
	id, factor := f.identify(s, x.a, x)
	if id != 0 {
		id = (id ^ uint64(factor)<<8 ^ uint64(x.shift)) * 0x9e3779b97f4a7c15 // of its own
	}
	return multipleOf(1<<uint(x.imm), id, 1<<uint(x.imm))
}

// multiplyAdd is a sum with a product: a known factor gives the multiple.
func (f *function) multiplyAdd(s *state, x *insn) value {
	if x.src >= numRegs || x.second >= numRegs {
		return lost(whyArithmetic)
	}
	v, w := s.regs[x.src], s.regs[x.second]
	p := lost(whyArithmetic)
	if n, ok := product(v.factorOf(), w.factorOf()); ok {
		p = multipleOf(n, 0, 0)
		if v.kind == constant && w.kind == constant {
			p = value{kind: constant, off: n}
		}
	}
	switch {
	case x.a >= numRegs:
		return p
	case x.width == 8:
		return f.addValues(s.regs[x.a], p, 1)
	}
	return lost(whyArithmetic)
}

// insert replaces 16 bits of a constant.
func (f *function) insert(s *state, x *insn) value {
	if x.dst >= numRegs || s.regs[x.dst].kind != constant {
		return lost(whyArithmetic)
	}
	v := s.regs[x.dst]
	v.off = v.off&^(0xffff<<x.shift) | x.imm<<x.shift
	return v
}

// and masks: a rounded stack pointer begins a space of its own, a pointer loses the bits of its tag.
func (f *function) and(s *state, x *insn) value {
	if x.a >= numRegs || x.form != immForm || x.width != 8 {
		return lost(whyArithmetic)
	}
	v := s.regs[x.a]
	switch {
	case x.imm >= 0 || x.imm < -4096:
	case x.dst == f.machine.sp && v.kind == stackAt:
		return value{kind: stackAt, off: realigned}
	case v.kind == pointer && x.imm >= -64:
		return v
	case v.kind == multiple || v.kind == unknown || v.kind == number:
		return value{kind: multiple, off: x.imm & -x.imm}
	}
	return lost(whyArithmetic)
}

// call changes what a call may change.
func (f *function) call(s *state, x *insn) {
	changed := f.machine.clobbered
	result := f.results[x.at+addr.Addr(x.size)]
	through := lost(whyCall)
	if x.jump == callTo {
		if result == 0 && f.result != nil {
			result = f.result(x.target)
		}
		e := f.object.Call(x.target)
		switch {
		case e == Nothing:
			return
		case e == Few:
			changed = f.machine.few
		case e >= Through && int(e-Through) < numRegs:
			through = s.regs[e-Through]
		}
		changed &= f.changedBy(x.target, 0) | f.machine.linked
	} else if through = f.source(s, x); through.kind == threadOff {
		s.lose(f.machine.few) // the descriptor of a thread-local variable: it returns its distance
		s.regs[f.machine.result] = through
		return
	}
	if result == 0 && through.kind == pointer && through.t.kind == btf.KindFuncProto {
		result = f.layouts.types.Ref(through.t.own)
	}
	f.escape(s)
	s.lose(changed)
	if result != 0 {
		s.regs[f.machine.result] = f.valueOf(f.layouts.of(result), computed)
	}
}

// Bounds of functions that are called: compilers keep values in registers that a function of the same
// file does not change, though the ABI lets it.
const (
	maxCallee = 4096 // bytes
	maxCalls  = 3    // depth
)

// callee is a function that is called, at a depth of calls. The depth is part of the key, so that an answer does
// not depend on which functions were analyzed before.
type callee struct {
	at    addr.Addr
	depth int
}

// changedBy returns the registers that a function may change: all, if it is not known what it executes, as of
// recursive ones.
func (n *analysis) changedBy(a addr.Addr, depth int) (changed uint32) {
	key := callee{a, depth}
	if known, ok := n.changes[key]; ok {
		return known
	}
	const all = ^uint32(0)
	r, ok := n.object.Extent(a)
	if !ok || r.Start != a || r.End-r.Start > maxCallee || depth > maxCalls {
		return all
	}
	n.changes[key] = all // until it is read to its end
	code := n.object.Bytes(r.Start, int(r.End-r.Start))
	for at := r.Start; len(code) > 0; {
		x, ok := n.machine.decode(code, at)
		switch {
		case !ok, x.jump == callThrough, x.jump == indirect, (x.jump == branch || x.jump == always) && !r.Contains(x.target):
			return all
		case x.jump == callTo:
			switch e := n.object.Call(x.target); {
			case e >= Through:
				return all
			case e == ByABI || e == Few:
				changed |= n.changedBy(x.target, depth+1)
			}
		}
		changed |= x.changed()
		if changed == all {
			return all
		}
		code, at = code[x.size:], at+addr.Addr(x.size)
	}
	n.changes[key] = changed
	return changed
}

// escape drops the slots of variables: a called function may change those that it has addresses of. A
// variable that is there only at some places has no address.
func (f *function) escape(s *state) {
	if f.span == nil || len(f.span.frame) == 0 {
		return
	}
	kept := s.slots[:0]
	for _, x := range s.slots {
		if v, _ := f.frameAt(s, f.span.frame, x.off); v == nil || !v.whole {
			kept = append(kept, x)
		}
	}
	s.slots = kept
}
