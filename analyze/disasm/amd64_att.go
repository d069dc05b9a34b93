package disasm

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"symbolize/ingest/addr"
)

// attText writes an instruction as objdump of binutils 2.40 does. x86asm's GNUSyntax follows one of
// 2014: with suffixes on calls and returns, signed constants, and memory operands that leave out
// zeros and ones.
func attText(x *x86asm.Inst, code []byte, pc addr.PC) (op, args string) {
	op, args = splitOp(x86asm.GNUSyntax(*x, uint64(pc), nil))
	op = attOp(op, x)
	if x.Op == x86asm.NOP && code[len(code)-1] == 0x90 && code[0] == 0x66 {
		// Padding of more than one byte is written in its form before 64 bits.
		return strings.Repeat("data16 ", len(code)-2) + "xchg", "%ax,%ax"
	}
	if args == "" {
		return op, ""
	}
	args = strings.ReplaceAll(args, " {", "{")
	list := splitArgs(args)
	for i, a := range list {
		star := strings.HasPrefix(a, "*")
		a = strings.TrimPrefix(a, "*")
		switch {
		case strings.HasPrefix(a, "$"):
			a = attImm(a, x)
		case strings.HasPrefix(a, "%") && !strings.Contains(a, ":"):
			if a == "%st" && (len(list) == 1 || i == 0 && list[1] == "%st") {
				a = "%st(0)"
			}
		case isMemArg(x):
			var seg string
			a, seg = attMem(a, x, code)
			if seg != "" {
				op = addPrefix(op, seg)
			}
		}
		if star {
			a = "*" + a
		}
		list[i] = a
	}
	return attPredicate(op, list)
}

// isMemArg reports whether an instruction has a memory operand.
func isMemArg(x *x86asm.Inst) bool {
	for _, a := range x.Args {
		if _, ok := a.(x86asm.Mem); ok {
			return true
		}
	}
	return false
}

// attOps are mnemonics that binutils has changed, or that x86asm writes in Intel's way.
var attOps = map[string]string{
	"callq": "call", "retq": "ret", "jmpq": "jmp", "pushq": "push", "popq": "pop",
	"leaveq":  "leave",
	"xbeginq": "xbegin", "sysretq": "sysretl", "movsxd": "movslq", "cdqe": "cltq",
	"cqo": "cqto", "cdq": "cltd", "cwde": "cwtl", "cwd": "cwtd", "cbw": "cbtw", "pushfq": "pushf",
	"popfq": "popf", "lretq": "lret", "icebp": "int1", "repn": "repnz", "enterq": "enter",
}

// attOp gives a mnemonic, with its prefixes, its present form.
func attOp(op string, x *x86asm.Inst) string {
	words := strings.Fields(op)
	n := len(words) - 1
	words[n] = cmp.Or(attOps[words[n]], words[n])
	switch {
	case isBMI(x.Op):
		words[n] = strings.TrimRight(words[n], "lq")
	case x.Op == x86asm.MOV && isImm64(x):
		words[n] = "movabs"
	case x.Op == x86asm.SYSRET && x.DataSize == 64:
		return "sysretq"
	}
	for i, w := range words[:n] {
		switch w {
		case "data32":
			words[i] = "data16"
		case "repn":
			words[i] = "repnz"
		case "rep":
			if !isString(x.Op) {
				words[i] = "repz"
			}
		case "ds":
			if _, reg := x.Args[0].(x86asm.Reg); x.Op == x86asm.JMP || x.Op == x86asm.CALL && reg {
				words[i] = "notrack"
			}
		}
	}
	return strings.Join(words, " ")
}

// isBMI reports whether GNUSyntax gives an instruction a suffix although its operands are
// registers.
func isBMI(op x86asm.Op) bool {
	switch op {
	case x86asm.ANDN, x86asm.BEXTR, x86asm.BLSI, x86asm.BLSMSK, x86asm.BLSR, x86asm.BZHI,
		x86asm.MULX, x86asm.PDEP, x86asm.PEXT, x86asm.RORX, x86asm.SARX, x86asm.SHLX, x86asm.SHRX:
		return true
	}
	return false
}

func isString(op x86asm.Op) bool {
	switch op {
	case x86asm.INSB, x86asm.INSW, x86asm.INSD, x86asm.OUTSB, x86asm.OUTSW, x86asm.OUTSD,
		x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ, x86asm.LODSB, x86asm.LODSW,
		x86asm.LODSD, x86asm.LODSQ, x86asm.STOSB, x86asm.STOSW, x86asm.STOSD, x86asm.STOSQ:
		return true
	}
	return false
}

// isImm64 reports whether a MOV holds a constant or address of 8 bytes.
func isImm64(x *x86asm.Inst) bool {
	switch op := byte(x.Opcode >> 24); {
	case op >= 0xa0 && op <= 0xa3:
		return x.AddrSize == amd64Mode
	case op >= 0xb8 && op <= 0xbf:
		return x.DataSize == amd64Mode
	}
	return false
}

// addPrefix adds a prefix before the mnemonic, after existing ones.
func addPrefix(op, prefix string) string {
	at := strings.LastIndexByte(op, ' ') + 1
	return op[:at] + prefix + " " + op[at:]
}

// splitArgs cuts operands at the commas outside parentheses.
func splitArgs(s string) []string {
	var list []string
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, s[from:i])
				from = i + 1
			}
		}
	}
	return append(list, s[from:])
}

// attImm writes a constant as the operand's size has it: unsigned.
func attImm(a string, x *x86asm.Inst) string {
	v, err := strconv.ParseInt(a[1:], 0, 64)
	if err != nil || v >= 0 {
		return a
	}
	u := uint64(v)
	if bits := immBits(x); bits < 64 {
		u &= 1<<bits - 1
	}
	return "$" + hexText(u)
}

// immBits returns how wide the operation on a constant is.
func immBits(x *x86asm.Inst) int {
	switch a := x.Args[0].(type) {
	case x86asm.Mem:
		return 8 * x.MemBytes
	case x86asm.Reg:
		switch {
		case a >= x86asm.AL && a <= x86asm.R15B:
			return 8
		case a >= x86asm.AX && a <= x86asm.R15W:
			return 16
		case a >= x86asm.EAX && a <= x86asm.R15L:
			return 32
		case a >= x86asm.RAX && a <= x86asm.R15:
			return 64
		}
		return 8 // of vectors: a selector
	}
	if x.Op == x86asm.PUSH && x.DataSize == 16 {
		return 16
	}
	return 64
}

// attMem writes a memory operand in full. A segment that 64-bit mode ignores is
// returned apart: it is a prefix of the instruction.
func attMem(a string, x *x86asm.Inst, code []byte) (operand, prefix string) {
	seg, rest := "", a
	if i := strings.IndexByte(a, ':'); i >= 0 {
		seg, rest = a[:i+1], a[i+1:]
		if ignored := strings.Trim(seg, "%:"); !isString(x.Op) && !isCompareString(x.Op) {
			switch ignored {
			case "cs", "ds", "es", "ss":
				seg, prefix = "", ignored
			case "fs", "gs":
				if !slices.ContainsFunc(code[:legacyPrefixes(code)], isFSGS) {
					seg = "" // x86asm mistakes a byte of EVEX for one
				}
			}
		}
	}
	disp, inner, ok := strings.Cut(rest, "(")
	if !ok {
		return seg + absolute(disp), prefix
	}
	inner, tail, _ := strings.Cut(inner, ")")
	parts := strings.Split(inner, ",")
	if len(parts) == 2 && parts[1] != "%riz" && parts[1] != "%eiz" {
		parts = append(parts, "1")
	} else if len(parts) == 2 {
		parts = parts[:1]
	}
	if disp == "" && (parts[0] == "" || hasDisp(code)) {
		disp = "0x0"
	}
	return seg + disp + "(" + strings.Join(parts, ",") + ")" + tail, prefix
}

// absolute writes an address without registers.
func absolute(disp string) string {
	if disp == "" {
		return "0x0"
	}
	if v, err := strconv.ParseInt(disp, 0, 64); err == nil {
		return hexText(uint64(v))
	}
	return disp
}

func isFSGS(b byte) bool { return b == 0x64 || b == 0x65 }

func isCompareString(op x86asm.Op) bool {
	switch op {
	case x86asm.CMPSB, x86asm.CMPSW, x86asm.CMPSD, x86asm.CMPSQ, x86asm.SCASB, x86asm.SCASW,
		x86asm.SCASD, x86asm.SCASQ, x86asm.XLATB:
		return true
	}
	return false
}

// hasDisp reports whether an instruction with a memory operand encodes a displacement, be it zero.
func hasDisp(code []byte) bool {
	at, _, ok := modRM(code)
	return ok && (code[at]>>6 == 1 || code[at]>>6 == 2 || code[at]&0xc7 == 5)
}

// isRIPRelative reports whether the memory operand of an instruction counts from the end of the
// instruction.
func isRIPRelative(code []byte) bool {
	at, _, ok := modRM(code)
	return ok && code[at]&0xc7 == 5
}

// modRM returns the position of an instruction's ModRM byte, and the map of its opcode: 0 for one
// byte, 1 for 0f, 2 for 0f 38, 3 for 0f 3a.
func modRM(code []byte) (at, opmap int, ok bool) {
	at = legacyPrefixes(code)
	if at < len(code) && code[at]&0xf0 == 0x40 {
		at++
	}
	if at >= len(code) {
		return 0, 0, false
	}
	switch vex := vexLen(code[at:]); {
	case vex == 2:
		at, opmap = at+2, 1
	case vex == 3:
		at, opmap = at+3, int(code[at+1]&0x1f)
	case code[at] == 0x62:
		at += 4
	case code[at] == 0x0f && at+1 < len(code) && code[at+1] == 0x38:
		at, opmap = at+2, 2
	case code[at] == 0x0f && at+1 < len(code) && code[at+1] == 0x3a:
		at, opmap = at+2, 3
	case code[at] == 0x0f:
		at, opmap = at+1, 1
	}
	at++ // the opcode
	return at, opmap, at < len(code)
}

// legacyPrefixes returns how many bytes of prefixes, REX left out, code begins with.
func legacyPrefixes(code []byte) int {
	for i, b := range code {
		switch b {
		case 0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65:
		default:
			return i
		}
	}
	return len(code)
}

// predicates of integer comparisons of AVX-512; "" is written as a number.
var predicates = [8]string{"eq", "lt", "le", "", "neq", "nlt", "nle", ""}

// carryless are the operand halves of multiplications without carries.
var carryless = map[string]string{"$0x0": "lql", "$0x1": "hql", "$0x10": "lqh", "$0x11": "hqh"}

// attPredicate turns "vpcmpub $0x1" into "vpcmpltub": constants that select an
// operation are part of the mnemonic.
func attPredicate(op string, list []string) (string, string) {
	if half := carryless[list[0]]; half != "" && op == "vpclmulqdq" {
		return "vpclmul" + half + "qdq", strings.Join(list[1:], ",")
	}
	kind, ok := strings.CutPrefix(op, "vpcmp")
	if !ok || len(list) < 2 || len(kind) > 2 || !strings.HasPrefix(list[0], "$") {
		return op, strings.Join(list, ",")
	}
	v, err := strconv.ParseUint(list[0][1:], 0, 8)
	if err != nil || v > 7 || predicates[v] == "" {
		return op, strings.Join(list, ",")
	}
	return "vpcmp" + predicates[v] + kind, strings.Join(list[1:], ",")
}
