package flow

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/bpf"
)

// Registers of BPF: r0 to r9 can change, r10 is the frame pointer, which is the end of the frame ("BPF
// Instruction Set Architecture", RFC 9669, 2). A call changes r0 to r5.
const (
	bpfFrame     = reg(10)
	bpfRegisters = 11
	bpfCalled    = 1<<6 - 1
)

// bpfMachine is code of BPF as the kernel has it before it compiles it. Its addresses are numbers of instructions
// times bpf.InsnSize.
var bpfMachine = machine{
	decode: decodeBPF, table: func(*graph, int) []addr.Addr { return nil }, registers: bpfRegisters,
	sp: bpfFrame, fp: bpfFrame, result: 0, clobbered: bpfCalled, linked: bpfCalled, few: bpfCalled,
	shortest: bpf.InsnSize,
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

// Operations of arithmetic and of jumps, and the source that is a register (RFC 9669, 4).
const (
	bpfSource = 8

	bpfAdd, bpfSub, bpfMul, bpfAnd, bpfShift, bpfMove = 0, 1, 2, 5, 6, 11

	bpfExit = 9
)

// bpfInsn is an instruction of BPF while it is decoded.
type bpfInsn struct {
	bpf.Insn
	x insn
}

func decodeBPF(b []byte, at addr.Addr) (insn, bool) {
	if len(b) < bpf.InsnSize {
		return insn{}, false
	}
	d := bpfInsn{bpf.DecodeInsn(b, false), newInsn(at, bpf.InsnSize)}
	if d.Dst >= bpfRegisters || d.Src >= bpfRegisters {
		return insn{}, false
	}
	switch class := d.Code & 7; class {
	case bpf.ClassLD:
		return d.wide(b)
	case bpf.ClassLDX, bpf.ClassST, bpf.ClassSTX:
		d.memory(class)
	case bpf.ClassALU, bpf.ClassALU64:
		d.arithmetic(class)
	default:
		d.branch(class)
	}
	return d.x, true
}

func (d *bpfInsn) dst() reg { return reg(d.Dst) }
func (d *bpfInsn) src() reg { return reg(d.Src) }

// wide decodes loads of 64 bits. Others of this class, which read packets, are calls then.
func (d *bpfInsn) wide(b []byte) (insn, bool) {
	x := &d.x
	switch {
	case d.Code != bpf.CodeLoadWide:
		x.op, x.kill = opKill, bpfCalled
		return *x, true
	case d.Size < 2:
		return insn{}, false
	}
	x.size, x.dst, x.width = 2*bpf.InsnSize, d.dst(), 8
	switch d.Src {
	case 0:
		x.op, x.form, x.imm = opMove, immForm, int64(d.Next)<<32|int64(uint32(d.Imm))
	case bpf.SrcMap:
		x.op, x.mem.absolute, x.mem.disp = opAddr, true, int64(BPFMap(uint32(d.Imm)))-bpfValues(b[2*bpf.InsnSize:], d.Dst)
	case bpf.SrcMapValue:
		x.op, x.mem.absolute, x.mem.disp = opAddr, true, int64(BPFMap(uint32(d.Imm)))+int64(uint32(d.Next))
	default:
		x.kill = d.dst().bit()
	}
	return *x, true
}

// bpfValues returns where in the kernel's object of an array its values begin: the verifier replaces a look-up
// by an addition of this to the map, behind its load. It is 0 for other maps.
func bpfValues(b []byte, r uint8) int64 {
	if len(b) < bpf.InsnSize {
		return 0
	}
	in := bpf.DecodeInsn(b, false)
	if in.Code != bpfAdd<<4|bpf.ClassALU64 || in.Dst != r || in.Src != 0 {
		return 0
	}
	return int64(in.Imm)
}

// memory decodes loads and stores.
func (d *bpfInsn) memory(class byte) {
	x := &d.x
	size := [4]uint8{4, 2, 1, 8}[d.Code>>3&3]
	x.access, x.width, x.mem.base, x.mem.disp = size, size, d.dst(), int64(d.Off)
	switch class {
	case bpf.ClassLDX:
		x.op, x.form, x.dst, x.mem.base = opMove, memForm, d.dst(), d.src()
	case bpf.ClassST:
		x.op, x.form, x.imm, x.writes = opStore, immForm, int64(d.Imm), true
	default:
		x.op, x.form, x.src, x.writes = opStore, regForm, d.src(), true
		if d.Code&0xe0 == bpf.ModeAtomic {
			d.atomic()
		}
	}
}

// atomic decodes operations that read and write memory at once: those that fetch change a register.
func (d *bpfInsn) atomic() {
	x := &d.x
	x.op, x.form, x.src = opKill, noForm, noReg
	switch {
	case d.Imm == bpf.AtomicCompareExchange:
		x.kill = 1
	case d.Imm&bpf.AtomicFetch != 0 && d.Imm < 1<<8:
		x.kill = d.src().bit()
	case d.Imm == bpf.AtomicLoadAcquire: // a load that acquires; base and destination are as of loads
		x.op, x.form, x.dst, x.mem.base, x.writes = opMove, memForm, d.dst(), d.src(), false
	}
}

// arithmetic decodes operations on registers.
func (d *bpfInsn) arithmetic(class byte) {
	x := &d.x
	x.width, x.dst, x.a = 8, d.dst(), d.dst()
	if class == bpf.ClassALU {
		x.width = 4
	}
	x.form, x.imm = immForm, int64(d.Imm)
	if d.Code&bpfSource != 0 {
		x.form, x.src = regForm, d.src()
	}
	switch d.Code >> 4 {
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
		if x.form == regForm && d.Off > 1 { // from a signed number of so many bits
			x.op, x.width = opExtend, uint8(d.Off/8)
		}
	default:
		x.op = opKill
	}
	if x.form == regForm && (x.op == opShift || x.op == opMul) {
		x.op = opKill
	}
	if x.op == opKill {
		x.dst, x.form, x.kill = noReg, noForm, d.dst().bit()
	}
}

// branch decodes jumps, calls and the end.
func (d *bpfInsn) branch(class byte) {
	x := &d.x
	to := func(n int64) addr.Addr { return x.at + addr.Addr(bpf.InsnSize*(n+1)) }
	switch {
	case d.Code == bpf.CodeCallRegister:
		x.op, x.jump, x.stack = opCall, callThrough, true
	case d.Code == bpf.CodeJumpRegister:
		x.jump, x.form, x.src = indirect, regForm, d.dst()
	case d.Code == bpf.CodeJump32:
		x.jump, x.target = always, to(int64(d.Imm))
	case d.Code&^bpfSource == bpf.CodeJump:
		x.jump, x.target = always, to(int64(d.Off))
	case d.Code&^bpfSource == bpf.CodeCall:
		x.op, x.jump, x.stack, x.target = opCall, callTo, true, bpfHelperAt|addr.Addr(uint32(d.Imm))
		if d.Src == bpf.SrcFunction {
			x.target = bpfFunctionAt | addr.Addr(uint32(d.Imm))
		}
	case class == bpf.ClassJMP && d.Code>>4 == bpfExit:
		x.jump, x.stack = stop, true
	default:
		x.jump, x.target = branch, to(int64(d.Off))
	}
}
