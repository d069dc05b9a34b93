package flow

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/x86"
)

// Registers of x86-64 by their DWARF numbers (System V ABI, AMD64 supplement, figure 3.36).
const (
	rax reg = iota
	rdx
	rcx
	rbx
	rsi
	rdi
	rbp
	rsp
	r8
	r9
	r10
	r11
)

// dwarfOf has the DWARF numbers of registers by their numbers in instructions.
var dwarfOf = [8]reg{rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi}

var x86Machine = machine{
	decode: decodeX86, table: x86Table, registers: 16, sp: rsp, fp: rbp, result: rax,
	clobbered: bits(rax, rdx, rcx, rsi, rdi, r8, r9, r10, r11), few: bits(rax, rcx, rdx),
	entry: -8, shortest: 1, immediate: true,
}

func bits(list ...reg) (m uint32) {
	for _, r := range list {
		m |= r.bit()
	}
	return m
}

// bit is the register in a mask; nothing for no register.
func (r reg) bit() uint32 {
	if r >= numRegs {
		return 0
	}
	return 1 << r
}

func general(n byte) reg {
	if n < 8 {
		return dwarfOf[n]
	}
	if n < 16 {
		return reg(n)
	}
	return noReg
}

// x86Insn is an instruction of x86-64 while it is decoded.
type x86Insn struct {
	in *x86.Inst
	x  insn
}

func decodeX86(b []byte, at addr.Addr) (insn, bool) {
	in, ok := x86.Decode(b)
	if !ok {
		return insn{}, false
	}
	d := x86Insn{in: &in, x: newInsn(at, in.Len)}
	d.x.width = uint8(in.OperandSize())
	if in.Memory() {
		d.memory()
	}
	switch {
	case in.VEX:
		d.vex()
	case in.Map == x86.OneByte:
		d.one()
	case in.Map == x86.TwoByte:
		d.two()
	case in.General:
		d.other()
	}
	return d.x, true
}

// memory sets the memory operand.
func (d *x86Insn) memory() {
	in, m := d.in, &d.x.mem
	d.x.access = uint8(in.Access())
	m.disp, m.segment, m.scale = in.Disp, in.Segment, in.Scale
	m.base, m.index = general(in.Base), general(in.Index)
	if in.RIP {
		m.disp += int64(d.x.at) + int64(in.Len)
	}
	m.absolute = m.base == noReg && m.index == noReg
	if in.Short {
		m.base, m.index, m.absolute, m.segment = noReg, noReg, false, 0 // no compiler's address
	}
}

// general is the register that an operand is, or of bytes is a part of.
func (d *x86Insn) general(n byte) reg {
	if d.x.width == 1 && !d.in.REX && n >= 4 && n < 8 {
		n -= 4 // ah, ch, dh, bh
	}
	return general(n)
}

// from makes r/m the source.
func (d *x86Insn) from() {
	if d.in.Mod == 3 {
		d.x.form, d.x.src = regForm, d.general(d.in.RM)
	} else {
		d.x.form = memForm
	}
}

// to makes r/m the destination of an operation; of memory nothing is known then.
func (d *x86Insn) to(o op) {
	if d.in.Mod != 3 {
		d.x.op, d.x.writes = opKill, true
		if o == opMove {
			d.x.op = opStore
		}
		return
	}
	d.x.op, d.x.dst = o, d.general(d.in.RM)
	d.x.a = d.x.dst
	d.narrow()
}

// into makes the register of ModRM the destination.
func (d *x86Insn) into(o op) {
	d.x.op, d.x.dst = o, d.general(d.in.Reg)
	d.x.a = d.x.dst
	d.narrow()
}

// narrow makes operations on parts of registers unknown.
func (d *x86Insn) narrow() {
	if d.x.width < 4 {
		d.x.op, d.x.kill = opKill, d.x.kill|d.x.dst.bit()
	}
}

func (d *x86Insn) kills(list ...reg) { d.x.kill |= bits(list...) }

// killsRM makes r/m unknown.
func (d *x86Insn) killsRM() {
	if d.in.Mod == 3 {
		d.kills(d.general(d.in.RM))
	} else {
		d.x.writes = true
	}
}

func (d *x86Insn) immediate(v int64) { d.x.form, d.x.imm = immForm, v }

// one decodes opcodes of one byte.
func (d *x86Insn) one() {
	in, x := d.in, &d.x
	switch op := in.Op; {
	case op < 0x40:
		d.arithmetic(op>>3, op&7)
	case op >= 0x50 && op < 0x60:
		x.stack, x.width = true, 8
		x.op, x.form, x.src = opPush, regForm, general(in.Low)
		if op >= 0x58 {
			x.op, x.form, x.dst = opPop, noForm, x.src
		}
	case op == 0x63:
		d.from()
		x.width = 4
		x.op, x.dst = opExtend, general(in.Reg)
	case op == 0x68 || op == 0x6a:
		x.stack, x.op = true, opPush
		d.immediate(in.Imm)
	case op == 0x69 || op == 0x6b:
		d.from()
		x.imm = in.Imm
		d.into(opMul)
	case op >= 0x70 && op < 0x80, op >= 0xe0 && op < 0xe4:
		x.jump, x.target = branch, x.end()+addr.Addr(in.Imm)
		if op >= 0xe0 && op < 0xe3 {
			d.kills(rcx)
		}
	case op >= 0x80 && op < 0x84:
		d.immediate(in.Imm)
		d.group(in.Reg & 7)
	case op == 0x84 || op == 0x85:
		x.reads = in.Memory()
	case op == 0x86 || op == 0x87:
		d.swap()
	case op == 0x88 || op == 0x89:
		x.form, x.src = regForm, d.general(in.Reg)
		d.to(opMove)
	case op == 0x8a || op == 0x8b:
		d.from()
		d.into(opMove)
	case op == 0x8d:
		d.into(opAddr)
		x.access = 0
	default:
		d.rest(op)
	}
}

// rest decodes the other opcodes of one byte.
func (d *x86Insn) rest(op byte) {
	in, x := d.in, &d.x
	switch {
	case op == 0x8f:
		x.stack, x.op, x.width = true, opPop, 8
		if in.Mod == 3 {
			x.dst = general(in.RM)
		} else {
			x.writes = true
		}
	case op > 0x90 && op < 0x98 || op == 0x90 && in.Low != 0:
		x.op, x.dst, x.src = opSwap, rax, general(in.Low)
		x.width = 8
	case op == 0x98:
		x.op, x.form, x.dst, x.src, x.width = opExtend, regForm, rax, rax, 4
	case op == 0x99:
		d.kills(rdx)
	case op == 0x9c:
		x.stack, x.op = true, opPush
	case op == 0x9d:
		x.stack, x.op = true, opPop
	case op >= 0xa0 && op < 0xa4:
		d.kills(rax)
	case op == 0xa8 || op == 0xa9 || op == 0x90 || op == 0x9b || op == 0xf5 || op >= 0xf8 && op < 0xfe:
	case op >= 0xa4 && op < 0xb0, op >= 0x6c && op < 0x70:
		x.text = true
		d.kills(rsi, rdi, rcx, rax)
	case op >= 0xb0 && op < 0xb8:
		x.dst = d.general(in.Low)
		d.narrow()
	case op >= 0xb8 && op < 0xc0:
		x.op, x.dst = opMove, general(in.Low)
		d.constant(in.Imm)
		d.narrow()
	case op == 0xc0 || op == 0xc1 || op >= 0xd0 && op < 0xd4:
		d.shift(op)
	case op == 0xc2 || op == 0xc3 || op == 0xca || op == 0xcb || op == 0xcf:
		x.stack, x.jump = true, stop
	case op == 0xc6 || op == 0xc7:
		d.constant(in.Imm)
		d.to(opMove)
	case op == 0xc9:
		x.stack, x.op = true, opLeave
	case op == 0xcc || op == 0xf4:
		x.jump = stop
	case op >= 0xd8 && op < 0xe0:
		x.writes = in.Memory()
		d.kills(rax)
	case op == 0xe8:
		x.stack, x.op, x.jump, x.target = true, opCall, callTo, x.end()+addr.Addr(in.Imm)
	case op == 0xe9 || op == 0xeb:
		x.jump, x.target = always, x.end()+addr.Addr(in.Imm)
	case op == 0xf6 || op == 0xf7:
		d.unary()
	case op >= 0xfe:
		d.step()
	default:
		d.kills(rax, rdx)
	}
}

// constant makes an immediate the source: in 32 bits without sign.
func (d *x86Insn) constant(v int64) {
	if d.x.width == 4 {
		v = int64(uint32(v))
	}
	d.immediate(v)
}

// arithmetic decodes the eight operations add, or, adc, sbb, and, sub, xor, cmp in their six forms.
func (d *x86Insn) arithmetic(operation, how byte) {
	in, x := d.in, &d.x
	switch how {
	case 0, 1:
		x.form, x.src = regForm, d.general(in.Reg)
		d.group(operation)
		return
	case 2, 3:
		d.from()
		if operation == 7 {
			x.reads = in.Memory()
			return
		}
		d.into(arithmeticOp(operation))
	case 4, 5:
		if operation == 7 {
			return
		}
		x.op, x.dst, x.a = arithmeticOp(operation), rax, rax
		d.immediate(in.Imm)
		d.narrow()
	}
	d.zero(operation)
}

func arithmeticOp(operation byte) op {
	switch operation {
	case 0:
		return opAdd
	case 4:
		return opAnd
	case 5:
		return opSub
	}
	return opKill
}

// zero recognizes xor and sub of a register with itself.
func (d *x86Insn) zero(operation byte) {
	x := &d.x
	switch {
	case x.dst == noReg || x.width < 4:
	case (operation == 5 || operation == 6) && x.form == regForm && x.src == x.dst:
		x.op = opMove
		d.immediate(0)
	case x.op == opKill:
		x.kill |= x.dst.bit()
	}
}

// group decodes an operation on r/m, with the source set.
func (d *x86Insn) group(operation byte) {
	if operation == 7 {
		d.x.reads = d.in.Memory()
		d.x.form = noForm
		return
	}
	d.to(arithmeticOp(operation))
	d.x.reads = d.in.Memory()
	d.zero(operation)
}

// swap decodes xchg.
func (d *x86Insn) swap() {
	x := &d.x
	x.dst, x.src = d.general(d.in.Reg), d.general(d.in.RM)
	if d.in.Mod == 3 && x.width == 8 {
		x.op = opSwap
		return
	}
	x.op = opKill
	d.kills(x.dst)
	d.killsRM()
}

func (d *x86Insn) shift(op byte) {
	left := d.in.Reg&7 == 4 || d.in.Reg&7 == 6
	d.to(opShift)
	switch {
	case d.x.op != opShift:
	case left && op == 0xc1:
		d.x.imm = d.in.Imm & 63
	case left && op == 0xd1:
		d.x.imm = 1
	default:
		d.x.op = opKill
		d.kills(d.x.dst)
	}
}

// unary decodes test, not, neg, mul, imul, div and idiv.
func (d *x86Insn) unary() {
	switch d.in.Reg & 7 {
	case 0, 1:
		d.x.reads = d.in.Memory()
	case 2, 3:
		d.killsRM()
	default:
		d.kills(rax, rdx)
	}
}

// step decodes inc, dec, and calls, jumps and pushes of r/m.
func (d *x86Insn) step() {
	x := &d.x
	switch d.in.Reg & 7 {
	case 0, 1:
		d.immediate(1 - 2*int64(d.in.Reg&1))
		d.to(opAdd)
		return
	case 2:
		x.op, x.jump = opCall, callThrough
	case 4:
		x.jump = indirect
	case 6:
		x.op = opPush
	default:
		x.jump = stop
	}
	x.stack, x.width = x.jump != indirect, 8
	d.from()
}
