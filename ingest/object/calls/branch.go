package calls

import (
	stdelf "debug/elf"

	"symbolize/ingest/addr"
)

// BranchKind is how control leaves an instruction.
type BranchKind uint8

// The kinds.
const (
	NoBranch BranchKind = iota
	CallBranch
	Jump            // to Target
	ConditionalJump // to Target, or to the next instruction
	IndirectJump
	Return
)

// Branch is an instruction by how control leaves it.
type Branch struct {
	Len    int
	Kind   BranchKind
	Target addr.Addr // of jumps to one
}

// DecodeBranch decodes the instruction at the start of b, which is at an address, of x86-64 or arm64;
// false if it cannot be decoded.
func DecodeBranch(machine stdelf.Machine, b []byte, at addr.Addr) (Branch, bool) {
	if machine != stdelf.EM_X86_64 && machine != stdelf.EM_AARCH64 {
		return Branch{}, false
	}
	in, ok := decodeInsn(machine, b, at)
	kind := [...]BranchKind{plain: NoBranch, call: CallBranch, callIndirect: CallBranch, jump: Jump,
		jumpIndirect: IndirectJump, ret: Return}[in.kind]
	if in.conditional {
		kind = ConditionalJump
	}
	return Branch{in.size, kind, in.target}, ok
}
