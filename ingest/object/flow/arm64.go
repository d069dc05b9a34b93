package flow

import (
	"encoding/binary"

	"symbolize/ingest/addr"
)

// Registers of arm64: their numbers are DWARF's ("DWARF for the Arm 64-bit Architecture", 4.1). In
// instructions 31 is the stack pointer or zero.
const (
	armLink = reg(30)
	armSP   = reg(31)
)

// armCall has the registers that calls may change, x0 to x18 and the link ("Procedure Call Standard for the
// Arm 64-bit Architecture", 6.1.1). Code that linkers insert changes x16 and x17.
const armCall = 1<<19 - 1 | 1<<armLink

var arm64Machine = machine{
	decode: decodeARM64, table: arm64Table, registers: 32, sp: armSP, fp: 29, result: 0,
	clobbered: armCall, linked: bits(16, 17, armLink), few: bits(0, 1, armLink),
	shortest: 4,
}

// arm64Insn is an instruction of A64 while it is decoded (Arm ARM, C4.1).
type arm64Insn struct {
	w uint32
	x insn
}

func decodeARM64(b []byte, at addr.Addr) (insn, bool) {
	if len(b) < 4 {
		return insn{}, false
	}
	d := arm64Insn{w: binary.LittleEndian.Uint32(b), x: newInsn(at, 4)}
	d.widths()
	switch d.bits(25, 4) {
	case 0, 2: // SME, SVE
		if d.w>>16 == 0 {
			d.x.jump = stop // udf
			break
		}
		d.scalable()
	case 1, 3:
		return insn{}, false
	case 8, 9:
		d.immediates()
	case 10, 11:
		d.branches()
	case 5, 13:
		d.registers()
	case 7, 15:
		d.vectors()
	default:
		d.memory()
	}
	return d.x, true
}

// bits returns n bits of the instruction from bit low on.
func (d *arm64Insn) bits(low, n uint) uint32 { return d.w >> low & (1<<n - 1) }

// signed is bits as a signed number.
func (d *arm64Insn) signed(low, n uint) int64 { return int64(int32(d.w<<(32-n-low)) >> (32 - n)) }

// general is the register at a bit, or none for zero.
func (d *arm64Insn) general(low uint) reg {
	if r := reg(d.bits(low, 5)); r != armSP {
		return r
	}
	return noReg
}

// stacked is the register at a bit, or the stack pointer.
func (d *arm64Insn) stacked(low uint) reg { return reg(d.bits(low, 5)) }

// widths sets the width of data processing.
func (d *arm64Insn) widths() { d.x.width = 4 << d.bits(31, 1) }

// loses makes registers unknown; kills the one at bit 0.
func (d *arm64Insn) loses(m uint32) { d.x.kill |= m }
func (d *arm64Insn) kills()         { d.loses(d.general(0).bit()) }

// from makes the register at a bit the source: zero is a number.
func (d *arm64Insn) from(low uint) {
	d.x.form, d.x.src = regForm, d.general(low)
	if d.x.src == noReg {
		d.constant(0)
	}
}

func (d *arm64Insn) constant(v int64) { d.x.form, d.x.imm = immForm, v }

// immediates decodes data processing with immediates.
func (d *arm64Insn) immediates() {
	x := &d.x
	switch d.bits(23, 3) {
	case 0, 1:
		x.op, x.dst, x.width, x.mem.absolute = opAddr, d.general(0), 8, true
		distance := d.signed(5, 19)<<2 | int64(d.bits(29, 2))
		x.mem.disp = int64(x.at) + distance
		if d.w>>31 != 0 {
			x.mem.disp = int64(x.at&^0xfff) + distance<<12
		}
	case 2:
		d.constant(int64(d.bits(10, 12)) << (12 * d.bits(22, 1)))
		d.sum(d.stacked(0), d.stacked(5))
	case 4:
		d.logicalImmediate()
	case 5:
		d.wide()
	case 6:
		d.field()
	default:
		d.kills()
	}
}

// sum decodes add and sub, with the source set. With flags, a result in register 31 is dropped.
func (d *arm64Insn) sum(dst, a reg) {
	x := &d.x
	x.op, x.dst, x.a = opAdd, dst, a
	if d.bits(30, 1) != 0 {
		x.op = opSub
	}
	if d.bits(29, 1) != 0 && dst == armSP {
		x.op, x.dst = opCompare, noReg
	}
}

// logicalImmediate decodes and, orr, eor and ands of an immediate.
func (d *arm64Insn) logicalImmediate() {
	x, v := &d.x, d.mask()
	x.dst, x.a = d.stacked(0), d.general(5)
	switch d.bits(29, 2) {
	case 0:
		x.op = opAnd
		if v > 0 && v&(v+1) == 0 && x.dst != armSP {
			for x.op = opField; v>>x.shift != 0; x.shift++ {
			}
			return
		}
	case 1:
		if x.a == noReg {
			x.op = opMove
			break
		}
		x.op, x.kill = opKill, x.dst.bit()
	case 3:
		x.op, x.dst = opAnd, d.general(0)
	default:
		x.op, x.kill = opKill, x.dst.bit()
	}
	d.constant(v)
}

// mask is the immediate of logical instructions: a run of ones, rotated, in elements of a power of two
// bits (Arm ARM, DecodeBitMasks).
func (d *arm64Insn) mask() int64 {
	n, rotate, ones := d.bits(22, 1), uint(d.bits(16, 6)), uint(d.bits(10, 6))
	size := uint(64)
	if n == 0 {
		for size = 32; size > 1 && ones&size != 0; size >>= 1 {
		}
	}
	ones, rotate = ones&(size-1)+1, rotate&(size-1)
	v := ^uint64(0) >> (64 - ones)
	if rotate != 0 {
		v = v>>rotate | v<<(size-rotate)
	}
	v &= ^uint64(0) >> (64 - size)
	for ; size < 64; size *= 2 {
		v |= v << size
	}
	if d.x.width == 4 {
		v &= 0xffffffff
	}
	return int64(v)
}

// wide decodes movn, movz and movk.
func (d *arm64Insn) wide() {
	x := &d.x
	v, shift := int64(d.bits(5, 16)), uint8(16*d.bits(21, 2))
	x.op, x.dst = opMove, d.general(0)
	switch d.bits(29, 2) {
	case 0:
		v = ^(v << shift)
		if x.width == 4 {
			v = int64(uint32(v))
		}
	case 3:
		x.op, x.shift = opInsert, shift
	default:
		v <<= shift
	}
	d.constant(v)
}

// field decodes sbfm, bfm and ubfm, of which shifts and extensions are cases.
func (d *arm64Insn) field() {
	x := &d.x
	rotate, last, top := d.bits(16, 6), d.bits(10, 6), uint32(8*x.width-1)
	x.dst, x.a = d.general(0), d.general(5)
	switch {
	case d.bits(29, 2) == 1 || x.a == noReg:
		d.kills()
	case rotate == 0: // sxtb, uxth, sxtw …
		x.op, x.form, x.src, x.width = opExtend, regForm, x.a, uint8((last+1)/8)
		if last == top {
			x.op = opMove
		}
	case last < rotate && (last+1 == rotate || last >= 31): // lsl, and of a word sbfiz, ubfiz
		x.op, x.imm = opShift, int64(top+1-rotate)
	case last < rotate:
		x.op, x.shift, x.imm = opField, uint8(last+1)|uint8(d.bits(30, 1)^1)<<7, int64(top+1-rotate)
	default:
		d.kills()
	}
}

// branches decodes jumps, calls, exceptions and system instructions.
func (d *arm64Insn) branches() {
	x := &d.x
	to := func(low, n uint) addr.Addr { return x.at + addr.Addr(d.signed(low, n)*4) }
	switch {
	case d.bits(26, 5) == 5: // b, bl
		x.jump, x.target = always, to(0, 26)
		if d.w>>31 != 0 {
			x.op, x.jump = opCall, callTo
		}
	case d.bits(25, 6) == 0x1a, d.w>>24 == 0x54: // cbz, cbnz; b.cond, bc.cond
		x.jump, x.target = branch, to(5, 19)
	case d.bits(25, 6) == 0x1b: // tbz, tbnz
		x.jump, x.target = branch, to(5, 14)
	case d.w>>25 == 0x6b:
		d.jumpRegister()
	case d.w>>24 == 0xd4:
		d.exception()
	case d.w>>24 == 0xd5:
		d.system()
	default:
		x.jump = stop
	}
}

// jumpRegister decodes br, blr and ret, also with authentication.
func (d *arm64Insn) jumpRegister() {
	x := &d.x
	switch d.bits(21, 2) {
	case 0:
		x.jump = indirect
	case 1:
		x.op, x.jump = opCall, callThrough
	default:
		x.jump = stop
		return
	}
	x.width = 8
	d.from(5)
}

// kernelTrap is the immediate of brk for BUG and WARN of Linux: after the latter control goes on
// (arch/arm64/include/asm/brk-imm.h).
const kernelTrap = 0x800

func (d *arm64Insn) exception() {
	switch op := d.bits(21, 3); {
	case op == 0 && d.bits(0, 2) == 1: // svc
		d.loses(bits(0))
	case op == 0:
		d.loses(armCall) // hvc, smc
	case op == 1 && d.bits(5, 16) == kernelTrap:
	default:
		d.x.jump = stop
	}
}

// System registers, as in instructions.
const (
	tpidrEL0 = 0xde82
	tpidrEL1 = 0xc684
	tpidrEL2 = 0xe682
	spEL0    = 0xc208
)

// system decodes mrs; hints, barriers and the rest change nothing that is followed.
func (d *arm64Insn) system() {
	x := &d.x
	switch {
	case d.bits(22, 1) != 0: // mrrs
		x.kill = d.general(0).bit() | reg(d.bits(0, 5)+1).bit()
		return
	case d.bits(21, 1) == 0:
		if d.w&0xfffff01f == 0xd503201f && d.bits(8, 4) == 1 {
			x.kill = bits(17) // signs x17
		}
		return
	}
	x.op, x.dst, x.width = opMove, d.general(0), 8
	switch d.bits(5, 16) {
	case tpidrEL0:
		x.form = threadForm
	case tpidrEL1, tpidrEL2:
		x.form = cpuForm
	case spEL0:
		x.form = taskForm
	}
}

// registers decodes data processing of registers.
func (d *arm64Insn) registers() {
	x := &d.x
	switch op := d.bits(21, 4); {
	case d.bits(28, 1) == 0 && op&8 == 0:
		d.logical()
	case d.bits(28, 1) == 0 && op&1 == 0:
		d.shiftedSum()
	case d.bits(28, 1) == 0:
		d.extendedSum()
	case op == 2: // ccmp
	case op == 4 && d.bits(10, 2) == 0 && d.bits(30, 1) == 0: // csel
		x.op, x.dst, x.a = opSelect, d.general(0), d.general(5)
		d.from(16)
		if x.a == noReg {
			x.a = x.src
			d.constant(0)
		}
	case op >= 8:
		d.multiply(op & 7)
	default:
		d.kills()
	}
}

// logical decodes and, orr, eor, ands with a shifted register.
func (d *arm64Insn) logical() {
	x := &d.x
	x.dst = d.general(0)
	if d.bits(29, 2) == 1 && d.bits(21, 1) == 0 && d.general(5) == noReg && d.bits(10, 6) == 0 {
		x.op = opMove
		d.from(16)
		return
	}
	d.kills()
}

// shiftedSum decodes add and sub with a shifted register. A sum is the address of an array's element.
func (d *arm64Insn) shiftedSum() {
	x := &d.x
	a, n := d.general(5), d.bits(10, 6)
	d.from(16)
	d.sum(d.stacked(0), a)
	if x.dst == armSP {
		x.dst = noReg
	}
	switch {
	case x.op == opCompare:
	case d.bits(22, 2) != 0 || n >= 32 || a == noReg:
		d.other()
	case n > 0 && n < 8 && x.op == opAdd && x.width == 8 && x.form == regForm:
		x.op, x.mem.base, x.mem.index, x.mem.scale = opAddr, a, x.src, 1<<n
	default:
		x.shift = uint8(n)
	}
}

// other makes the result unknown.
func (d *arm64Insn) other() {
	d.x.op, d.x.form = opKill, noForm
	d.x.kill |= d.x.dst.bit()
}

// extendedSum decodes add and sub with a register that is extended.
func (d *arm64Insn) extendedSum() {
	x := &d.x
	option, n := d.bits(13, 3), d.bits(10, 3)
	d.from(16)
	d.sum(d.stacked(0), d.stacked(5))
	switch {
	case x.op == opCompare:
	case option&3 == 3 && n == 0:
	case option&3 < 2 || x.form != regForm:
		x.form, x.src = regForm, noReg
	case x.op == opAdd && x.width == 8:
		x.op, x.mem.base, x.mem.index, x.mem.scale = opAddr, x.a, x.src, 1<<n
		x.mem.part = option&1 == 0
	default:
		x.shift = uint8(n)
	}
}

// multiply decodes madd, smaddl, umaddl, and kills the results of others.
func (d *arm64Insn) multiply(op uint32) {
	x := &d.x
	x.dst = d.general(0)
	if d.bits(15, 1) != 0 || op != 0 && op != 1 && op != 5 {
		d.kills()
		return
	}
	x.op, x.a, x.src, x.second = opMulAdd, d.general(10), d.general(5), d.general(16)
}

// vectors decodes floating point and vectors: those with a general register as result.
func (d *arm64Insn) vectors() {
	switch {
	case d.w&0x5f20fc00 == 0x1e200000: // fcvt*, fmov
		if op := d.bits(16, 3); op != 2 && op != 3 && op != 7 {
			d.kills()
		}
	case d.w&0x5f200000 == 0x1e000000 && d.bits(17, 2) == 0: // fcvtz* to fixed point
		d.kills()
	case d.w&0xbfe0fc00 == 0x0e003c00, d.w&0xbfe0fc00 == 0x0e002c00: // umov, smov
		d.kills()
	}
}

// scalable decodes SVE and SME: any register that could be the result is unknown. Their operands in memory
// have no known size.
func (d *arm64Insn) scalable() {
	x := &d.x
	d.kills()
	if d.w&0xffa0f000 == 0x04205000 && d.bits(0, 5) == uint32(armSP) { // addvl, addpl
		x.kill |= armSP.bit()
	}
	x.vague = d.w>>31 != 0
}
