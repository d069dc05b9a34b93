package disasm

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"symbolize/ingest/addr"
)

// amd64 decodes x86-64 in 64-bit mode.
type amd64 struct{ syntax Syntax }

const (
	amd64Mode = 64
	amd64Max  = 15 // bytes of an instruction at most
)

// Decode implements Decoder.
func (d amd64) Decode(code []byte, pc addr.PC) iter.Seq[Inst] {
	return decodeAll(code, pc, d.one)
}

func (d amd64) one(code []byte, pc addr.PC) Inst {
	code = code[:min(len(code), amd64Max)]
	if inst, ok := d.special(code); ok {
		return inst
	}
	x, err := x86asm.Decode(code, amd64Mode)
	known := err == nil && x.Op != 0
	if !known || x.Opcode>>16 == 0x0fae { // a prefix makes others of fences and cache lines
		if inst, ok := d.extra(code, pc); ok {
			return inst
		}
	}
	if known {
		return d.inst(&x, code, pc)
	}
	if inst, ok := d.repeated(code, pc); ok {
		return inst
	}
	if inst, ok := d.alias(code, pc); ok {
		return inst
	}
	return badBytes(code[:max(1, vectorLen(code))])
}

// alias decodes the second encodings of test and shl, which only the processor and
// obfuscators know.
func (d amd64) alias(code []byte, pc addr.PC) (Inst, bool) {
	at, opmap, ok := modRM(code)
	if !ok || opmap != 0 {
		return Inst{}, false
	}
	flip := byte(0) // from the second digit to the first
	switch op, digit := code[at-1], code[at]>>3&7; {
	case op|1 == 0xf7 && digit == 1:
		flip = 1 << 3
	case (op|1 == 0xc1 || op|3 == 0xd3) && digit == 6:
		flip = 2 << 3
	default:
		return Inst{}, false
	}
	other := bytes.Clone(code)
	other[at] ^= flip
	x, err := x86asm.Decode(other, amd64Mode)
	if err != nil || x.Op == 0 {
		return Inst{}, false
	}
	return d.inst(&x, other, pc), true
}

// vectorLen returns the length of an instruction with a VEX, EVEX or XOP prefix, its
// opcode is not known: the prefix determines whether a constant follows. It is 0 for other
// code, and where the instruction is cut off.
func vectorLen(code []byte) int {
	at, opmap, imm := 0, 1, 0
	switch {
	case len(code) > 3 && code[0] == 0x62:
		at, opmap = 4, int(code[1]&7)
	case len(code) > 3 && code[0] == 0x8f && code[1]&0x1f >= 8:
		at, opmap = 3, int(code[1]&0x1f)
	case vexLen(code) == 3:
		at, opmap = 3, int(code[1]&0x1f)
	case vexLen(code) == 2:
		at = 2
	}
	if at == 0 || at >= len(code) {
		return 0
	}
	switch op := code[at]; {
	case opmap == 3, opmap == 8, opmap == 1 && (op|3 == 0x73 || op == 0xc2 || op|2 == 0xc6):
		imm = 1
	case opmap == 10:
		imm = 4
	}
	_, _, n, ok := asIMUL([]byte{0x48}, code[at+1:])
	if n += at + 1 + imm; !ok || n > len(code) {
		return 0
	}
	return n
}

// special decodes instructions that x86asm mistakes for others.
func (amd64) special(code []byte) (Inst, bool) {
	if len(code) >= 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e {
		switch code[3] { // x86asm: a lone rep, then a nop
		case 0xfa:
			return Inst{Len: 4, Text: "endbr64"}, true
		case 0xfb:
			return Inst{Len: 4, Text: "endbr32"}, true
		}
	}
	// x86asm decodes the next byte as a ModRM byte, with its displacement.
	if vex := vexLen(code); vex > 0 && len(code) > vex && code[vex] == 0x77 {
		pp, l := code[vex-1]&3, code[vex-1]>>2&1
		if isMap1 := vex == 2 || code[1]&0x1f == 1; isMap1 && pp == 0 {
			return Inst{Len: vex + 1, Text: [2]string{"vzeroupper", "vzeroall"}[l]}, true
		}
	}
	return Inst{}, false
}

// vexLen returns the length of the VEX prefix at the start of code, 0 for none.
func vexLen(code []byte) int {
	switch {
	case len(code) > 1 && code[0] == 0xc5:
		return 2
	case len(code) > 2 && code[0] == 0xc4:
		return 3
	}
	return 0
}

// repeated decodes an instruction with a repeat prefix that means nothing to it, as
// compilers have used for padding.
func (d amd64) repeated(code []byte, pc addr.PC) (Inst, bool) {
	name := map[byte]string{0xf3: "repz ", 0xf2: "repnz "}[code[0]]
	if name == "" || len(code) < 2 {
		return Inst{}, false
	}
	x, err := x86asm.Decode(code[1:], amd64Mode)
	if err != nil || x.Op == 0 {
		return Inst{}, false
	}
	inst := d.inst(&x, code[1:], pc+1)
	inst.Text = name + inst.Text
	inst.Len++
	return inst, true
}

// inst converts the result of x86asm.
func (d amd64) inst(x *x86asm.Inst, code []byte, pc addr.PC) Inst {
	inst := Inst{Len: x.Len}
	fixMemory(x, code[:x.Len])
	switch x.Op {
	case x86asm.CALL, x86asm.LCALL:
		inst.Call = true
	case x86asm.JMP, x86asm.LJMP, x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JCXZ,
		x86asm.JE, x86asm.JECXZ, x86asm.JG, x86asm.JGE, x86asm.JL, x86asm.JLE, x86asm.JNE,
		x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JRCXZ, x86asm.JS,
		x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE:
		inst.Jump = true
	}
	next := pc + addr.PC(x.Len)
	var op, args string
	if d.syntax == Intel {
		op, args = splitOp(x86asm.IntelSyntax(*x, uint64(pc), nil))
	} else {
		op, args = attText(x, code[:x.Len], pc)
	}
	for _, a := range x.Args {
		switch a := a.(type) {
		case x86asm.Rel:
			inst.setTarget(padOp(op), next+addr.PC(a))
			return inst
		case x86asm.Mem:
			if a.Base == x86asm.RIP {
				inst.Data, inst.HasData = next+addr.PC(a.Disp), true
			}
		}
	}
	inst.Text = join(op, args)
	return inst
}

// fixMemory corrects memory operands that x86asm v0.32 gets wrong: it forgets RIP where
// the instruction has a VEX or EVEX prefix, and the sign of a displacement where a
// constant follows or the address is absolute.
func fixMemory(x *x86asm.Inst, code []byte) {
	if isImm64(x) {
		return
	}
	for i, a := range x.Args {
		m, ok := a.(x86asm.Mem)
		if !ok {
			continue
		}
		if m.Base == 0 && m.Index == 0 && isRIPRelative(code) {
			m.Base = x86asm.RIP
		}
		if m.Disp > math.MaxInt32 && m.Disp <= math.MaxUint32 && x.AddrSize == amd64Mode {
			m.Disp = int64(int32(m.Disp))
		}
		x.Args[i] = m
	}
}

// splitOp cuts an instruction into its mnemonic, with the prefixes, and the rest.
func splitOp(text string) (op, args string) {
	n := 0
	for {
		word, _, more := strings.Cut(text[n:], " ")
		n += len(word)
		if !more {
			return text, ""
		}
		if !isPrefixWord(word) {
			return text[:n], strings.TrimSpace(text[n:])
		}
		n++
	}
}

func isPrefixWord(w string) bool {
	switch w {
	case "lock", "rep", "repe", "repz", "repn", "repne", "repnz", "xacquire", "xrelease", "bnd",
		"notrack", "data16", "data32", "addr16", "addr32", "cs", "ds", "es", "ss", "fs", "gs":
		return true
	}
	return strings.HasPrefix(w, "rex")
}

func hexText(v uint64) string { return fmt.Sprintf("0x%x", v) }
