package disasm

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strings"
	"sync"

	"golang.org/x/arch/loong64/loong64asm"

	"symbolize/ingest/addr"
)

// loong64 decodes LoongArch.
type loong64 struct{}

const loong64Len = 4 // bytes of every instruction

// Decode implements Decoder.
func (loong64) Decode(code []byte, pc addr.PC) iter.Seq[Inst] {
	return decodeAll(code, pc, loong64One)
}

// loong64Mutex guards loong64asm.Decode, which notes in a global table which formats it has met.
var loong64Mutex sync.Mutex

func loong64One(code []byte, pc addr.PC) Inst {
	if len(code) < loong64Len {
		return badBytes(code[:1])
	}
	loong64Mutex.Lock()
	x, err := loong64asm.Decode(code)
	loong64Mutex.Unlock()
	if err != nil {
		word := binary.LittleEndian.Uint32(code)
		return Inst{Len: loong64Len, Text: fmt.Sprintf("%s0x%08x", padOp(".word"), word), Bad: true}
	}
	op, args, _ := strings.Cut(loong64asm.GNUSyntax(x), " ")
	inst := Inst{Len: loong64Len}
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
	if x.Op != loong64asm.JIRL { // whose distance is from a register
		for _, a := range x.Args {
			if d, ok := a.(loong64asm.OffsetSimm); ok {
				return int64(d.Imm), true
			}
		}
	}
	return 0, false
}
