package flow

import (
	"encoding/binary"

	"symbolize/ingest/addr"
)

// Registers of BPF: r0 to r9 can change, r10 is the frame pointer, which is the end of the frame ("BPF
// Instruction Set Architecture", RFC 9669, 2). A call changes r0 to r5.
const (
	bpfFrame     = reg(10)
	bpfRegisters = 11
	bpfCalled    = 1<<6 - 1
)

// BPFInsnSize is the size of a BPF instruction, bytes; loads of 64 bits have two.
const BPFInsnSize = 8

// bpfMachine is code of BPF as the kernel has it before it compiles it. Its addresses are numbers of instructions
// times BPFInsnSize.
var bpfMachine = machine{
	decode: decodeBPF, table: func(*graph, int) []addr.Addr { return nil }, registers: bpfRegisters,
	sp: bpfFrame, fp: bpfFrame, result: 0, clobbered: bpfCalled, linked: bpfCalled, few: bpfCalled,
	shortest: BPFInsnSize,
}

// Places that instructions of BPF programs name by numbers are addresses of their own.
const (
	bpfMapAt      = 1 << 61 // of the values of a map
	bpfFunctionAt = 1 << 60 // of a function of the program
	bpfHelperAt   = 1 << 59 // of a function of the kernel
	bpfMapShift   = 29      // bits for the place in the values
)

// BPFMap returns the address of the values of a map, by its number in the kernel.
func BPFMap(id uint32) addr.Addr { return bpfMapAt | addr.Addr(id&(1<<30-1))<<bpfMapShift }

// BPFMapOf returns the map, and the place in its values, of an address that BPFMap began; false for others.
func BPFMapOf(a addr.Addr) (id uint32, at uint64, ok bool) {
	if a>>bpfMapShift&^(1<<30-1) != bpfMapAt>>bpfMapShift {
		return 0, 0, false
	}
	return uint32(a >> bpfMapShift & (1<<30 - 1)), uint64(a & (1<<bpfMapShift - 1)), true
}

// BPFFunctionOf returns the function of the program that is called at an address; false for others.
func BPFFunctionOf(a addr.Addr) (n int, ok bool) {
	n = int(a &^ bpfFunctionAt)
	return n, a&bpfFunctionAt != 0 && n < 1<<32
}

// Classes, modes and operations of instructions (RFC 9669, 3 to 5).
const (
	bpfLD, bpfLDX, bpfST, bpfSTX, bpfALU, bpfJMP, bpfJMP32, bpfALU64 = 0, 1, 2, 3, 4, 5, 6, 7

	bpfWide   = 0x18 // a load of 64 bits
	bpfAtomic = 0xc0
	bpfSource = 8 // the source is a register

	bpfAdd, bpfSub, bpfMul, bpfAnd, bpfShift, bpfMove = 0, 1, 2, 5, 6, 11

	bpfAlways, bpfCall, bpfExit                   = 0, 8, 9
	bpfAlways32, bpfCallRegister, bpfJumpRegister = 0x06, 0x8d, 0x0d

	bpfFetch, bpfExchange = 0x01, 0xf1
)

// Sources of loads of 64 bits, and of calls (RFC 9669, 5.4).
const (
	bpfByMap, bpfByValue, bpfByFunction = 1, 2, 1
)

// bpfInsn is an instruction of BPF while it is decoded.
type bpfInsn struct {
	code     byte
	dst, src reg
	off      int64
	imm      int64
	x        insn
}

func decodeBPF(b []byte, at addr.Addr) (insn, bool) {
	if len(b) < BPFInsnSize {
		return insn{}, false
	}
	d := bpfInsn{code: b[0], dst: reg(b[1] & 15), src: reg(b[1] >> 4),
		off: int64(int16(binary.LittleEndian.Uint16(b[2:]))), imm: int64(int32(binary.LittleEndian.Uint32(b[4:]))),
		x: newInsn(at, BPFInsnSize)}
	if d.dst >= bpfRegisters || d.src >= bpfRegisters {
		return insn{}, false
	}
	switch class := d.code & 7; class {
	case bpfLD:
		return d.wide(b)
	case bpfLDX, bpfST, bpfSTX:
		d.memory(class)
	case bpfALU, bpfALU64:
		d.arithmetic(class)
	default:
		d.branch(class)
	}
	return d.x, true
}

// wide decodes loads of 64 bits. Others of this class, which read packets, are calls then.
func (d *bpfInsn) wide(b []byte) (insn, bool) {
	x := &d.x
	if d.code != bpfWide {
		x.op, x.kill = opKill, bpfCalled
		return *x, true
	}
	if len(b) < 2*BPFInsnSize {
		return insn{}, false
	}
	high := int64(binary.LittleEndian.Uint32(b[BPFInsnSize+4:]))
	x.size, x.dst, x.width = 2*BPFInsnSize, d.dst, 8
	switch d.src {
	case 0:
		x.op, x.form, x.imm = opMove, immForm, high<<32|d.imm&(1<<32-1)
	case bpfByMap:
		x.op, x.mem.absolute, x.mem.disp = opAddr, true, int64(BPFMap(uint32(d.imm)))-bpfValues(b[2*BPFInsnSize:], d.dst)
	case bpfByValue:
		x.op, x.mem.absolute, x.mem.disp = opAddr, true, int64(BPFMap(uint32(d.imm)))+high
	default:
		x.kill = d.dst.bit()
	}
	return *x, true
}

// bpfValues returns where in the kernel's object of an array its values begin: the verifier replaces a look-up
// by an addition of this to the map, behind its load. It is 0 for other maps.
func bpfValues(b []byte, r reg) int64 {
	if len(b) < BPFInsnSize || b[0] != bpfAdd<<4|bpfALU64 || reg(b[1]) != r {
		return 0
	}
	return int64(int32(binary.LittleEndian.Uint32(b[4:])))
}

// memory decodes loads and stores.
func (d *bpfInsn) memory(class byte) {
	x := &d.x
	size := [4]uint8{4, 2, 1, 8}[d.code>>3&3]
	x.access, x.width, x.mem.base, x.mem.disp = size, size, d.dst, d.off
	switch class {
	case bpfLDX:
		x.op, x.form, x.dst, x.mem.base = opMove, memForm, d.dst, d.src
	case bpfST:
		x.op, x.form, x.imm, x.writes = opStore, immForm, d.imm, true
	default:
		x.op, x.form, x.src, x.writes = opStore, regForm, d.src, true
		if d.code&0xe0 == bpfAtomic {
			d.atomic()
		}
	}
}

// atomic decodes operations that read and write memory at once: those that fetch change a register.
func (d *bpfInsn) atomic() {
	x := &d.x
	x.op, x.form, x.src = opKill, noForm, noReg
	switch {
	case d.imm == bpfExchange:
		x.kill = 1
	case d.imm&bpfFetch != 0 && d.imm < 1<<8:
		x.kill = d.src.bit()
	case d.imm == 1<<8: // a load that acquires; base and destination are as of loads
		x.op, x.form, x.dst, x.mem.base, x.writes = opMove, memForm, d.dst, d.src, false
	}
}

// arithmetic decodes operations on registers.
func (d *bpfInsn) arithmetic(class byte) {
	x := &d.x
	x.width, x.dst, x.a = 8, d.dst, d.dst
	if class == bpfALU {
		x.width = 4
	}
	x.form, x.imm = immForm, d.imm
	if d.code&bpfSource != 0 {
		x.form, x.src = regForm, d.src
	}
	switch d.code >> 4 {
	case bpfAdd:
		x.op = opAdd
	case bpfSub:
		x.op = opSub
	case bpfAnd:
		x.op = opAnd
	case bpfShift:
		x.op = opShift
	case bpfMul:
		x.op = opMul
	case bpfMove:
		x.op = opMove
		// With offset -1 it adds the place of this processor's variables, with 1 the place of an arena.
		if x.form == regForm && d.off > 1 { // from a signed number of so many bits
			x.op, x.width = opExtend, uint8(d.off/8)
		}
	default:
		x.op = opKill
	}
	if x.form == regForm && (x.op == opShift || x.op == opMul) {
		x.op = opKill
	}
	if x.op == opKill {
		x.dst, x.form, x.kill = noReg, noForm, d.dst.bit()
	}
}

// branch decodes jumps, calls and the end.
func (d *bpfInsn) branch(class byte) {
	x := &d.x
	to := func(n int64) addr.Addr { return x.at + addr.Addr(BPFInsnSize*(n+1)) }
	switch {
	case d.code == bpfCallRegister:
		x.op, x.jump, x.stack = opCall, callThrough, true
	case d.code == bpfJumpRegister:
		x.jump, x.form, x.src = indirect, regForm, d.dst
	case d.code == bpfAlways32:
		x.jump, x.target = always, to(d.imm)
	case class == bpfJMP && d.code>>4 == bpfAlways:
		x.jump, x.target = always, to(d.off)
	case class == bpfJMP && d.code>>4 == bpfCall:
		x.op, x.jump, x.stack, x.target = opCall, callTo, true, bpfHelperAt|addr.Addr(uint32(d.imm))
		if d.src == bpfByFunction {
			x.target = bpfFunctionAt | addr.Addr(uint32(d.imm))
		}
	case class == bpfJMP && d.code>>4 == bpfExit:
		x.jump, x.stack = stop, true
	default:
		x.jump, x.target = branch, to(d.off)
	}
}
