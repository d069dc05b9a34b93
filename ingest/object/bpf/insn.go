package bpf

import "symbolize/ingest/decode"

// Insn is an instruction, struct bpf_insn (include/uapi/linux/bpf.h).
type Insn struct {
	Code     uint8
	Dst, Src uint8
	Off      int16
	Imm      int32
	// Size is how many of InsnSize bytes it has: 2 of a whole load of 64 bits, with the upper half in Next.
	Size int
	Next int32
}

// Classes of codes, the lowest three bits (RFC 9669, 3).
const (
	ClassLD = iota
	ClassLDX
	ClassST
	ClassSTX
	ClassALU
	ClassJMP
	ClassJMP32
	ClassALU64
)

// Codes, and a mode of stores, that more than the class tells (RFC 9669, 4 and 5).
const (
	CodeLoadWide     = 0x18
	CodeJump         = 0x05
	CodeJump32       = 0x06 // by Imm
	CodeJumpRegister = 0x0d
	CodeCall         = 0x85
	CodeCallRegister = 0x8d

	ModeAtomic = 0xc0
)

// What Imm of an instruction with ModeAtomic is. The others have AtomicFetch if they set a register.
const (
	AtomicFetch           = 0x01
	AtomicCompareExchange = 0xf1
	AtomicLoadAcquire     = 0x100
)

// Src of loads of 64 bits: Imm is the number of a map, or Next also is a place in its only value. Src of calls: Imm is
// the number of a function of the program.
const (
	SrcMap      = 1
	SrcMapValue = 2
	SrcFunction = 1
)

// DecodeInsn decodes the instruction at the beginning of code, which has at least InsnSize bytes.
func DecodeInsn(code []byte, bigEndian bool) Insn {
	in := Insn{Code: code[0], Dst: code[1] & 15, Src: code[1] >> 4, Off: int16(decode.U16(code[2:], bigEndian)),
		Imm: int32(decode.U32(code[4:], bigEndian)), Size: 1}
	if bigEndian {
		in.Dst, in.Src = in.Src, in.Dst
	}
	if in.Code == CodeLoadWide && len(code) >= 2*InsnSize {
		in.Size, in.Next = 2, int32(decode.U32(code[InsnSize+4:], bigEndian))
	}
	return in
}
