package disasm

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strings"
	"sync"

	"golang.org/x/arch/arm64/arm64asm"

	"symbolize/ingest/addr"
)

// arm64 decodes A64.
type arm64 struct{}

const arm64Len = 4 // bytes of every instruction

// Decode implements Decoder.
func (arm64) Decode(code []byte, pc addr.PC) iter.Seq[Inst] {
	return decodeAll(code, pc, arm64One)
}

// arm64Mutex guards arm64asm.Decode, which notes in a global table which formats it has met.
var arm64Mutex sync.Mutex

func arm64One(code []byte, pc addr.PC) Inst {
	if len(code) < arm64Len {
		return badBytes(code[:1])
	}
	word := binary.LittleEndian.Uint32(code)
	if text := arm64Extra(word); text != "" {
		return Inst{Len: arm64Len, Text: text}
	}
	arm64Mutex.Lock()
	x, err := arm64asm.Decode(code)
	arm64Mutex.Unlock()
	if err != nil || x.Op == 0 {
		return Inst{Len: arm64Len, Text: fmt.Sprintf("%s0x%08x", padOp(".inst"), word), Bad: true}
	}
	inst := Inst{Len: arm64Len, Call: x.Op == arm64asm.BL || x.Op == arm64asm.BLR}
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
