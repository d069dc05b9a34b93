package disasm

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"

	"symbolize/ingest/addr"
)

// arm64 decodes an instruction of A64.
func arm64(code []byte, pc addr.PC) Inst {
	word := binary.LittleEndian.Uint32(code)
	if text := arm64Extra(word); text != "" {
		return Inst{Len: wordLen, Text: text}
	}
	formatsMutex.Lock()
	x, err := arm64asm.Decode(code)
	formatsMutex.Unlock()
	if err != nil || x.Op == 0 {
		return badWord(".inst", word)
	}
	inst := Inst{Len: wordLen, Call: x.Op == arm64asm.BL || x.Op == arm64asm.BLR}
	op, args, _ := strings.Cut(arm64asm.GNUSyntax(x), " ")
	args = arm64Args(strings.TrimSpace(args))
	switch x.Op {
	case arm64asm.B, arm64asm.BR, arm64asm.CBZ, arm64asm.CBNZ, arm64asm.TBZ, arm64asm.TBNZ:
		inst.Jump = true
	}
	rel, ok := arm64Rel(&x)
	switch {
	case !ok:
		inst.Text = join(op, args)
		return inst
	case inst.Call || inst.Jump:
		// The target is the last operand.
		inst.setTarget(padOp(op)+args[:strings.LastIndexByte(args, ' ')+1], pc+addr.PC(rel))
		return inst
	}
	base := pc
	if x.Op == arm64asm.ADRP {
		base &^= 0xfff
	}
	inst.Data, inst.HasData = base+addr.PC(rel), true
	inst.Text = join(op, args[:strings.LastIndexByte(args, ' ')+1]+fmt.Sprintf("%x", inst.Data))
	return inst
}

// arm64Rel returns the distance of a PC-relative operand; it is the last one of all
// instructions that have one.
func arm64Rel(x *arm64asm.Inst) (int64, bool) {
	for _, a := range x.Args {
		if rel, ok := a.(arm64asm.PCRel); ok {
			return int64(rel), true
		}
	}
	return 0, false
}
