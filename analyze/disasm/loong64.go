package disasm

import (
	"encoding/binary"
	"strings"

	"golang.org/x/arch/loong64/loong64asm"

	"symbolize/ingest/addr"
)

// loong64 decodes an instruction of LoongArch.
func loong64(code []byte, pc addr.PC) Inst {
	formatsMutex.Lock()
	x, err := loong64asm.Decode(code)
	formatsMutex.Unlock()
	if err != nil {
		return badWord(".word", binary.LittleEndian.Uint32(code))
	}
	op, args, _ := strings.Cut(loong64asm.GNUSyntax(x), " ")
	inst := Inst{Len: wordLen}
	switch x.Op {
	case loong64asm.JIRL:
		inst.Call = x.Args[0] == loong64asm.R1 // which has the return address
		inst.Jump = !inst.Call
	case loong64asm.BL:
		inst.Call = true
	case loong64asm.B, loong64asm.BEQ, loong64asm.BNE, loong64asm.BLT, loong64asm.BGE,
		loong64asm.BLTU, loong64asm.BGEU, loong64asm.BEQZ, loong64asm.BNEZ, loong64asm.BCEQZ,
		loong64asm.BCNEZ:
		inst.Jump = true
	}
	if distance, ok := loong64Distance(&x); ok {
		// The target is the last operand.
		inst.setTarget(padOp(op)+args[:strings.LastIndexByte(args, ' ')+1], pc+addr.PC(distance))
		return inst
	}
	inst.Text = join(op, args)
	return inst
}

// loong64Distance returns the distance to the target of a direct branch.
func loong64Distance(x *loong64asm.Inst) (int64, bool) {
	if x.Op != loong64asm.JIRL { // its distance counts from a register
		for _, a := range x.Args {
			if d, ok := a.(loong64asm.OffsetSimm); ok {
				return int64(d.Imm), true
			}
		}
	}
	return 0, false
}
