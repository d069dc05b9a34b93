package calls

import (
	"symbolize/ingest/addr"
	"symbolize/ingest/object/x86"
)

// insn is an instruction as far as calls, jumps and addresses of functions need it.
type insn struct {
	size        int
	kind        insnKind
	target      addr.Addr // of direct calls and jumps; of memory by the instruction's address
	memory      bool      // an operand is memory at target
	scaled      bool      // a jump through a table of eight-byte words at the absolute address target
	conditional bool      // of a jump
	// The rest is for x86-64 alone.
	notrack bool  // prefix of jumps through tables of a switch
	class   class // effect on the frame pointer
	imm     int64 // an immediate of four or eight bytes, else 0
	move    bool  // movslq
	add     bool  // add of registers
}

type insnKind uint8

const (
	plain insnKind = iota
	call
	callIndirect
	jump // also conditional
	jumpIndirect
	ret
)

// class is what an instruction does to the frame pointer of x86-64.
type class uint8

const (
	leaves   class = iota
	saves          // push %rbp
	sets           // mov %rsp,%rbp; lea n(%rsp),%rbp
	restores       // mov n(%rsp),%rbp; pop %rbp; leave
	replaces       // gives it another value
	touches        // any other use as an operand, perhaps only as a source
)

// decodeX86 decodes one instruction of x86-64 at the start of b; false if there is none, or if it is
// cut off.
func decodeX86(b []byte, at addr.Addr) (in insn, ok bool) {
	x, ok := x86.Decode(b)
	if !ok {
		return in, false
	}
	in.size = x.Len
	next := at + addr.Addr(x.Len)
	switch {
	case x.Rel:
		in.kind, in.target = jump, next+addr.Addr(x.Imm)
		near := x.Map == x86.OneByte
		if near && x.Op == 0xe8 {
			in.kind = call
		}
		in.conditional = in.kind == jump && !(near && (x.Op == 0xe9 || x.Op == 0xeb))
	case x.ImmSize >= 4:
		in.imm = x.Imm
	}
	if x.RIP {
		in.target, in.memory = next+addr.Addr(x.Disp), x.Segment == 0
	}
	if x.Map == x86.OneByte {
		flow(&in, &x)
	}
	in.class = framePointer(&x)
	return in, true
}

// flow recognizes calls and jumps through registers and memory.
func flow(in *insn, x *x86.Inst) {
	switch x.Op {
	case 0xff:
		switch x.Reg & 7 {
		case 2, 3:
			in.kind = callIndirect
		case 4, 5:
			in.kind, in.notrack = jumpIndirect, x.NoTrack
			if x.Memory() && x.Base == x86.None && !x.RIP && x.Index != x86.None && x.Scale == 8 {
				in.scaled, in.target = true, addr.Addr(x.Disp)
			}
		}
	case 0xc2, 0xc3, 0xca, 0xcb, 0xcf:
		in.kind = ret
	case 0x63:
		in.move = true
	case 0x01, 0x03:
		in.add = x.ModRM && x.Mod == 3
	}
}

// Numbers of registers.
const (
	rsp = 4
	rbp = 5
)

// framePointer returns the effect of an instruction on the frame pointer.
func framePointer(x *x86.Inst) class {
	if !x.ModRM {
		return implicit(x)
	}
	if !x.General {
		return leaves
	}
	one, memory := x.Map == x86.OneByte, x.Mod != 3
	ofStack := memory && x.Base == rsp
	switch {
	case !one || x.VEX || !x.Wide:
	case x.Op == 0x89 && !memory && x.RM == rbp && x.Reg == rsp,
		x.Op == 0x8b && !memory && x.Reg == rbp && x.RM == rsp,
		x.Op == 0x8d && x.Reg == rbp && ofStack:
		return sets
	case x.Op == 0x8b && x.Reg == rbp && ofStack:
		return restores
	case x.Op == 0x89 && x.Reg == rbp && ofStack:
		return leaves // saved
	}
	if one && !x.VEX && !x.Small && (x.Op == 0x89 && !memory && x.RM == rbp && x.Reg != rbp ||
		(x.Op == 0x8b || x.Op == 0x8d || x.Op == 0x63) && x.Reg == rbp && (memory || x.RM != rbp) ||
		x.Op == 0x31 && !memory && x.RM == rbp && x.Reg == rbp) ||
		x.Map == x86.TwoByte && !x.VEX && (x.Op == 0xb6 || x.Op == 0xb7 || x.Op == 0xbe || x.Op == 0xbf) &&
			x.Reg == rbp {
		return replaces
	}
	if x.Reg == rbp && !isGroup(x) || !memory && x.RM == rbp || x.VEX && x.VVVV == rbp {
		return touches
	}
	return leaves
}

// implicit is framePointer of instructions without a ModRM byte.
func implicit(x *x86.Inst) class {
	op, isRBP := x.Op, x.Low == rbp
	switch {
	case x.Map == x86.TwoByte && op&0xf8 == 0xc8 && isRBP:
		return touches // bswap
	case x.Map != x86.OneByte:
		return leaves
	case op == 0xc9, op&0xf8 == 0x58 && isRBP:
		return restores
	case op&0xf8 == 0x50 && isRBP:
		return saves
	case op&0xf8 == 0xb8 && isRBP:
		return replaces
	case (op&0xf8 == 0xb0 || op&0xf8 == 0x90) && isRBP, op == 0xc8:
		return touches
	}
	return leaves
}

// isGroup reports whether the register field of an opcode's ModRM byte selects an operation.
func isGroup(x *x86.Inst) bool {
	switch op := x.Op; {
	case x.VEX:
		return false
	case x.Map == x86.OneByte:
		switch op {
		case 0x80, 0x81, 0x83, 0x8f, 0xc0, 0xc1, 0xc6, 0xc7, 0xd0, 0xd1, 0xd2, 0xd3, 0xf6, 0xf7, 0xfe, 0xff:
			return true
		}
	case x.Map == x86.TwoByte:
		return op <= 0x01 || op == 0xae || op == 0xba || op == 0xc7 || op&0xf0 == 0x90
	}
	return false
}
