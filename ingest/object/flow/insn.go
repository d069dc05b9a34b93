package flow

import "symbolize/ingest/addr"

// reg is a register by its DWARF number.
type reg uint8

// noReg marks a missing register; numRegs is how many a machine can have.
const (
	noReg   = reg(0xff)
	numRegs = 32
)

// op is what an instruction does to registers and memory, as far as types follow from it. Flags are not
// followed.
type op uint8

const (
	opKill   op = iota // the registers in kill have unknown values; the memory operand too if it is written
	opMove             // dst = source
	opExtend           // dst = the source of width bytes, extended
	opAddr             // dst = the address of the memory operand
	opAdd              // dst = a + source
	opSub              // dst = a − source
	opShift            // dst = a << imm
	opMul              // dst = source × imm
	opAnd              // dst = a & source
	opSelect           // dst = a or source
	opSwap             // dst and src exchange their values
	opStore            // memory = source
	opPush             // push source
	opPop              // pop into dst
	opLeave            // sp = fp; pop fp
	opCall
)

// form is what the source of an instruction is.
type form uint8

const (
	noForm form = iota
	regForm
	immForm
	memForm
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

// memory is an operand in memory: base + index × scale + disp.
type memory struct {
	base, index reg
	scale       uint8
	absolute    bool // without base: disp is the address, or relative to the instruction's end and added
	segment     byte // of x86: 0x64 fs, 0x65 gs
	disp        int64
}

// insn is an instruction.
type insn struct {
	at   addr.Addr
	size uint8
	operation
	operand
	control
}

// operation is what an instruction does to registers.
type operation struct {
	op    op
	form  form
	width uint8 // bytes
	dst   reg
	a     reg
	src   reg
	imm   int64
	kill  uint32
}

// operand is the memory that an instruction accesses.
type operand struct {
	mem    memory
	access uint8 // bytes, 0 for none
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

// end is the address of the next instruction.
func (x *insn) end() addr.Addr { return x.at + addr.Addr(x.size) }

// machine is how code of an architecture is read.
type machine struct {
	decode    func(b []byte, at addr.Addr) (insn, bool)
	registers int
	sp, fp    reg
	// clobbered are the registers that calls may change; result is where they return their value.
	clobbered uint32
	result    reg
	// entry is the distance of the stack pointer from the CFA at a function's entry.
	entry int64
	// shortest is the length of the shortest instruction.
	shortest int
}
