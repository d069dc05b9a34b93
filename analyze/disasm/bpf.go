package disasm

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/cilium/ebpf/asm"

	"symbolize/ingest/object/bpf"
)

// BPFInst is one BPF instruction as text.
type BPFInst struct {
	Index int    // in units of 8 bytes, from the start of the code
	Size  int    // 1, or 2 for a load of 64 bits
	Text  string // as the kernel's verifier and bpftool print it (kernel/bpf/disasm.c)
	Bad   bool   // an unknown instruction: Text begins with BUG_
}

// BPFNames name what BPF instructions refer to. A nil function, or "", gives the number.
type BPFNames struct {
	// Helper names the kernel's function that a call refers to: a distance from the symbol
	// __bpf_call_base.
	Helper func(distance int32) string
	// KFunc names a kernel function that is not a helper: by its distance, or, on machines where it may
	// be too far, by the number of its type in the kernel's BTF.
	KFunc func(number int32) string
	// Map names the map with this ID.
	Map func(id uint32) string
	// Function names function i of the program.
	Function func(i int32) string
	// Symbol names what an instruction refers to, by its Index, before all others.
	Symbol func(index int) string
}

// BPFHelper returns the name of a helper by its number in programs before the verifier, "" if it is
// not known (enum bpf_func_id in include/uapi/linux/bpf.h).
func BPFHelper(number int32) string {
	camel, ok := strings.CutPrefix(asm.BuiltinFunc(number).String(), "Fn")
	if !ok || number <= 0 {
		return ""
	}
	var name strings.Builder
	name.WriteString("bpf")
	for _, c := range camel {
		if unicode.IsUpper(c) {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToLower(c))
	}
	return name.String()
}

// bpfInsn is an instruction with the names for it.
type bpfInsn struct {
	bpf.Insn
	symbol string
	names  *BPFNames
}

// Codes and modes besides those of package bpf (Documentation/bpf/standardization/instruction-set.rst).
const (
	bpfMayGoto = 0xe5 // BPF_JMP | BPF_JCOND
	bpfExit    = 0x95

	bpfABS, bpfIND, bpfMEM, bpfMEMSX, bpfNOSPEC = 0x20, 0x40, 0x60, 0x80, 0xc0
)

// Values of the source register besides those of package bpf (BPF_PSEUDO_…).
const (
	bpfFunc, bpfMapIdxValue = 4, 6

	bpfPseudoKFunc = 2
)

// bpfTailCall is the number of a helper that has no address, because it is a jump.
const bpfTailCall = 12

var (
	bpfClasses = [8]string{"ld", "ldx", "st", "stx", "alu", "jmp", "jmp32", "alu64"}
	bpfALUs    = [16]string{"+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "neg", "%=", "^=", "=",
		"s>>=", "endian"}
	bpfJumps = [16]string{"jmp", "==", ">", ">=", "&", "!=", "s>", "s>=", "call", "exit", "<", "<=",
		"s<", "s<="}
	bpfSizes   = [4]string{"u32", "u16", "u8", "u64"}
	bpfSigned  = [4]string{"s32", "s16", "s8", "s64"}
	bpfAtomics = map[int32]string{0x00: "add", 0x40: "or", 0x50: "and", 0xa0: "xor"}
)

// BPF disassembles BPF instructions, of 8 bytes each, after the kernel's verifier. A rest of fewer
// than 8 bytes is left out.
func BPF(code []byte, bigEndian bool, names *BPFNames) []BPFInst {
	if names == nil {
		names = new(BPFNames)
	}
	var list []BPFInst
	for at := 0; at+bpf.InsnSize <= len(code); {
		in := bpfInsn{Insn: bpf.DecodeInsn(code[at:], bigEndian), names: names}
		x := BPFInst{Index: at / bpf.InsnSize, Size: in.Size}
		if names.Symbol != nil {
			in.symbol = names.Symbol(x.Index)
		}
		text, ok := in.text()
		x.Text, x.Bad = fmt.Sprintf("(%02x) %s", in.Code, text), !ok
		if !ok {
			x.Text = "BUG_" + bpfClasses[in.Code&7] + fmt.Sprintf("_%02x", in.Code)
		}
		list = append(list, x)
		at += x.Size * bpf.InsnSize
	}
	return list
}

// text is the text of an instruction; not ok if it is unknown.
func (in *bpfInsn) text() (text string, ok bool) {
	switch in.Code & 7 {
	case bpf.ClassALU, bpf.ClassALU64:
		return in.alu()
	case bpf.ClassSTX:
		return in.storeRegister()
	case bpf.ClassST:
		switch in.Code & 0xe0 {
		case bpfMEM:
			return fmt.Sprintf("*(%s *)(r%d %+d) = %d", in.size(), in.Dst, in.Off, in.Imm), true
		case bpfNOSPEC:
			return "nospec", true
		}
	case bpf.ClassLDX:
		sizes := bpfSizes
		switch in.Code & 0xe0 {
		case bpfMEMSX:
			sizes = bpfSigned
			fallthrough
		case bpfMEM:
			return fmt.Sprintf("r%d = *(%s *)(r%d %+d)", in.Dst, sizes[in.Code>>3&3], in.Src, in.Off), true
		}
	case bpf.ClassLD:
		switch {
		case in.Code == bpf.CodeLoadWide:
			return fmt.Sprintf("r%d = %s", in.Dst, in.constant()), true
		case in.Code&0xe0 == bpfABS:
			return fmt.Sprintf("r0 = *(%s *)skb[%d]", in.size(), in.Imm), true
		case in.Code&0xe0 == bpfIND:
			return fmt.Sprintf("r0 = *(%s *)skb[r%d + %d]", in.size(), in.Src, in.Imm), true
		}
	case bpf.ClassJMP, bpf.ClassJMP32:
		return in.jump()
	}
	return "", false
}

func (in *bpfInsn) size() string { return bpfSizes[in.Code>>3&3] }

// register is the letter of the registers of an instruction.
func (in *bpfInsn) register() byte {
	if c := in.Code & 7; c == bpf.ClassALU || c == bpf.ClassJMP32 {
		return 'w'
	}
	return 'r'
}

func (in *bpfInsn) alu() (string, bool) {
	const div, neg, mod, mov, end = 3, 8, 9, 11, 13
	op, r, fromRegister := in.Code>>4, in.register(), in.Code&8 != 0
	name := bpfALUs[op]
	switch {
	case op == end && in.Code&7 == bpf.ClassALU64:
		return fmt.Sprintf("r%d = bswap%d r%d", in.Dst, in.Imm, in.Dst), true
	case op == end:
		order := "le"
		if fromRegister {
			order = "be"
		}
		return fmt.Sprintf("r%d = %s%d r%d", in.Dst, order, in.Imm, in.Dst), true
	case op == neg:
		return fmt.Sprintf("%c%d = -%c%d", r, in.Dst, r, in.Dst), true
	case op == mov && fromRegister && r == 'r' && in.Off == 1: // BPF_ADDR_SPACE_CAST
		return fmt.Sprintf("r%d = addr_space_cast(r%d, %d, %d)", in.Dst, in.Src, uint32(in.Imm)>>16,
			uint16(in.Imm)), true
	case op == mov && fromRegister && r == 'r' && in.Off == -1: // BPF_ADDR_PERCPU
		return fmt.Sprintf("r%d = &(void __percpu *)(r%d)", in.Dst, in.Src), true
	case name == "":
		return "", false
	}
	if (op == div || op == mod) && in.Off == 1 {
		name = "s" + name
	}
	if !fromRegister {
		return fmt.Sprintf("%c%d %s %d", r, in.Dst, name, in.Imm), true
	}
	extended := ""
	if op == mov && (in.Off == 8 || in.Off == 16 || in.Off == 32) {
		extended = fmt.Sprintf("(s%d)", in.Off)
	}
	return fmt.Sprintf("%c%d %s %s%c%d", r, in.Dst, name, extended, r, in.Src), true
}

func (in *bpfInsn) storeRegister() (string, bool) {
	const xchg, storeRelease = 0xe1, 0x110
	where := fmt.Sprintf("(%s *)(r%d %+d)", in.size(), in.Dst, in.Off)
	if in.Code&0xe0 == bpfMEM {
		return fmt.Sprintf("*%s = r%d", where, in.Src), true
	}
	if in.Code&0xe0 != bpf.ModeAtomic {
		return "", false
	}
	width := ""
	if in.size() == "u64" {
		width = "64"
	}
	op := bpfAtomics[in.Imm&^bpf.AtomicFetch]
	switch {
	case in.Imm == xchg:
		return fmt.Sprintf("r%d = atomic%s_xchg(%s, r%d)", in.Src, width, where, in.Src), true
	case in.Imm == bpf.AtomicCompareExchange:
		return fmt.Sprintf("r0 = atomic%s_cmpxchg(%s, r0, r%d)", width, where, in.Src), true
	case in.Imm == bpf.AtomicLoadAcquire:
		return fmt.Sprintf("r%d = load_acquire((%s *)(r%d %+d))", in.Dst, in.size(), in.Src, in.Off), true
	case in.Imm == storeRelease:
		return fmt.Sprintf("store_release(%s, r%d)", where, in.Src), true
	case op == "":
		return "", false
	case in.Imm&bpf.AtomicFetch != 0:
		return fmt.Sprintf("r%d = atomic%s_fetch_%s(%s, r%d)", in.Src, width, op, where, in.Src), true
	}
	return fmt.Sprintf("lock *%s %s r%d", where, bpfALUs[in.Imm>>4&15], in.Src), true
}

// constant is the operand of a load of 64 bits.
func (in *bpfInsn) constant() string {
	switch in.Src {
	case bpf.SrcMap:
		return "map[" + in.mapName() + "]"
	case bpf.SrcMapValue:
		return fmt.Sprintf("map[%s][0]+%d", in.mapName(), in.Next)
	case bpfMapIdxValue:
		return fmt.Sprintf("map[idx:%d]+%d", in.Imm, in.Next)
	case bpfFunc:
		return fmt.Sprintf("subprog[%+d]", in.Imm)
	}
	if in.symbol != "" {
		return in.symbol
	}
	return fmt.Sprintf("0x%x", uint64(uint32(in.Next))<<32|uint64(uint32(in.Imm)))
}

func (in *bpfInsn) mapName() string {
	if in.symbol != "" {
		return in.symbol
	}
	if in.names.Map != nil {
		if name := in.names.Map(uint32(in.Imm)); name != "" {
			return name
		}
	}
	return fmt.Sprintf("id:%d", uint32(in.Imm))
}

func (in *bpfInsn) jump() (string, bool) {
	switch in.Code {
	case bpf.CodeCall:
		return in.call(), true
	case bpf.CodeCallRegister:
		return fmt.Sprintf("callx r%d", in.Dst), true
	case bpf.CodeJump:
		return fmt.Sprintf("goto pc%+d", in.Off), true
	case bpf.CodeJump32:
		return fmt.Sprintf("gotol pc%+d", in.Imm), true
	case bpf.CodeJumpRegister:
		return fmt.Sprintf("gotox r%d", in.Dst), true
	case bpfMayGoto:
		return fmt.Sprintf("may_goto pc%+d", in.Off), true
	case bpfExit:
		return "exit", true
	}
	op, r := bpfJumps[in.Code>>4], in.register()
	switch {
	case op == "" || in.Code>>4 == 0 || op == "call" || op == "exit":
		return "", false
	case in.Code&8 != 0:
		return fmt.Sprintf("if %c%d %s %c%d goto pc%+d", r, in.Dst, op, r, in.Src, in.Off), true
	}
	return fmt.Sprintf("if %c%d %s 0x%x goto pc%+d", r, in.Dst, op, uint32(in.Imm), in.Off), true
}

// call is the text of a call: of a function of the program, of a kernel function, of a helper.
func (in *bpfInsn) call() string {
	name := func(f func(int32) string) string {
		if in.symbol != "" {
			return in.symbol
		}
		if f == nil {
			return ""
		}
		return f(in.Imm)
	}
	switch in.Src {
	case bpf.SrcFunction:
		text := fmt.Sprintf("call pc%+d", in.Off)
		if s := name(in.names.Function); s != "" {
			text += "#" + s
		}
		return text
	case bpfPseudoKFunc:
		if s := name(in.names.KFunc); s != "" {
			return fmt.Sprintf("call %s#%d", s, in.Imm)
		}
		return fmt.Sprintf("call kernel function#%d", in.Imm)
	}
	if in.Imm == bpfTailCall {
		return fmt.Sprintf("call bpf_tail_call#%d", in.Imm)
	}
	if s := name(in.names.Helper); s != "" {
		return fmt.Sprintf("call %s#%d", s, in.Imm)
	}
	return fmt.Sprintf("call unknown#%d", in.Imm)
}
