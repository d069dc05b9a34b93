package flow

import "symbolize/ingest/addr"

// reg is a register by its DWARF number.
type reg uint8

// noReg marks a missing register; numRegs is how many a machine can have.
const (
	noReg   = reg(NoRegister)
	numRegs = 32
)

// op is what an instruction does to registers and memory, as far as types follow from it. Flags are not
// followed.
type op uint8

const (
	opKill    op = iota // the registers in kill have unknown values; the memory operand too if it is written
	opMove              // dst = source
	opExtend            // dst = the source of width bytes, extended
	opAddr              // dst = the address of the memory operand
	opAdd               // dst = a + source
	opSub               // dst = a − source << shift
	opShift             // dst = a << imm
	opField             // dst = the lowest shift bits of a << imm
	opMul               // dst = source × imm
	opMulAdd            // dst = a + src × second
	opAnd               // dst = a & source
	opInsert            // dst = dst, with imm in 16 bits at shift
	opSelect            // dst = a or source
	opCompare           // a is compared with source
	opSwap              // dst and src exchange their values
	opStore             // memory = source
	opPush              // push source
	opPop               // pop into dst
	opLeave             // sp = fp; pop fp
	opCall
)

// form is what the source of an instruction is.
type form uint8

const (
	noForm form = iota
	regForm
	immForm
	memForm
	threadForm // the thread pointer of a program
	cpuForm    // the distance of this CPU's variables in a kernel
	taskForm   // the running task in a kernel
)

// jump is how control leaves an instruction.
type jump uint8

const (
	next        jump = iota
	branch           // to target, or on
	always           // to target
	indirect         // jumps to the source
	stop             // returns, traps
	callTo           // calls target, and on
	callThrough      // calls the source, and on
)

// memory is an operand in memory: base + index × scale + disp. The index is no address if it is only a part
// of a register.
type memory struct {
	base, index reg
	scale       uint8
	absolute    bool // without base: disp is the address, or relative to the instruction's end and added
	part        bool
	segment     byte // of x86: 0x64 fs, 0x65 gs
	disp        int64
}

// insn is an instruction.
type insn struct {
	at   addr.Addr
	size uint8
	operation
	inputs
	operand
	control
}

// operation is what an instruction does to registers.
type operation struct {
	op    op
	width uint8 // bytes
	dst   reg
	kill  uint32
}

// inputs are what an operation is done with.
type inputs struct {
	form   form
	shift  uint8
	a      reg
	src    reg
	second reg // of a pair, behind dst or src
	imm    int64
}

// operand is the memory that an instruction accesses.
type operand struct {
	mem    memory
	access uint8 // bytes, 0 for none
	pair   bool  // two operands of half of them, one behind the other
	vague  bool  // there may be an operand of an unknown size
	update int64 // what is added to the base then
	writes bool
	reads  bool // flags follow from a comparison of it: a conditional jump fuses with it
	text   bool // a string instruction: the operands are implicit
}

// control is where an instruction leads to.
type control struct {
	jump   jump
	target addr.Addr
	stack  bool // a push, pop, call or return
}

// newInsn returns an instruction without effects.
func newInsn(at addr.Addr, size int) insn {
	x := insn{at: at, size: uint8(size), operation: operation{dst: noReg},
		inputs: inputs{a: noReg, src: noReg, second: noReg}}
	x.mem.base, x.mem.index = noReg, noReg
	return x
}

// end is the address of the next instruction.
func (x *insn) end() addr.Addr { return x.at + addr.Addr(x.size) }

// halves returns a pair as two instructions.
func (x *insn) halves() (first, second insn) {
	first = *x
	first.pair, first.update, first.access = false, 0, x.access/2
	second = first
	second.mem.disp += int64(first.access)
	if x.form != regForm {
		second.dst = x.second
		return first, second
	}
	second.src = x.second
	for _, y := range []*insn{&first, &second} {
		if y.src == noReg { // zero
			y.form, y.imm = immForm, 0
		}
	}
	return first, second
}

// changed returns the registers that an instruction writes.
func (x *insn) changed() uint32 {
	m := x.kill | x.dst.bit()
	if x.pair && x.form == memForm {
		m |= x.second.bit()
	}
	if x.op == opSwap {
		m |= x.src.bit()
	}
	if x.update != 0 {
		m |= x.mem.base.bit()
	}
	return m
}

// machine is how code of an architecture is read.
type machine struct {
	decode func(b []byte, at addr.Addr) (insn, bool)
	// table returns the targets of an indirect jump, by the number of its instruction.
	table     func(g *graph, i int) []addr.Addr
	registers int
	sp, fp    reg
	// clobbered are the registers that calls may change; those of them that linked has can change on the way
	// to a function. few are the ones that calls with the effect Few change; result is where calls return their
	// value.
	clobbered, linked, few uint32
	result                 reg
	// immediate is set if immediates can be addresses of variables.
	immediate bool
	// entry is the distance of the stack pointer from the CFA at a function's entry.
	entry int64
	// shortest is the length of the shortest instruction.
	shortest int
}
