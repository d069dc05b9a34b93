package disasm

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/cilium/ebpf/asm"

	"symbolize/ingest/decode"
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

const bpfInsnSize = 8

// bpfInsn is struct bpf_insn (include/uapi/linux/bpf.h).
type bpfInsn struct {
	code     uint8
	dst, src uint8
	off      int16
	imm      int32
	next     int32 // imm of the next instruction, for loads of 64 bits
	symbol   string
	names    *BPFNames
}

// Classes, modes and operations of codes (Documentation/bpf/standardization/instruction-set.rst).
const (
	bpfLD, bpfLDX, bpfST, bpfSTX, bpfALU, bpfJMP, bpfJMP32, bpfALU64 = 0, 1, 2, 3, 4, 5, 6, 7

	bpfLoad64  = 0x18 // BPF_LD | BPF_IMM | BPF_DW
	bpfCall    = 0x85
	bpfCallX   = 0x8d // through a register
	bpfJA      = 0x05
	bpfJA32    = 0x06
	bpfGotoX   = 0x0d
	bpfMayGoto = 0xe5 // BPF_JMP | BPF_JCOND
	bpfExit    = 0x95

	bpfABS, bpfIND, bpfMEM, bpfMEMSX, bpfATOMIC, bpfNOSPEC = 0x20, 0x40, 0x60, 0x80, 0xc0, 0xc0

	bpfFetch = 1 // of the operations of BPF_ATOMIC
)

// Values of the source register that change what an instruction means (BPF_PSEUDO_…).
const (
	bpfMapFD, bpfMapValue, bpfBTFID, bpfFunc, bpfMapIdx, bpfMapIdxValue = 1, 2, 3, 4, 5, 6

	bpfPseudoCall, bpfPseudoKFunc = 1, 2
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
	for at := 0; at+bpfInsnSize <= len(code); {
		b := code[at:]
		in := bpfInsn{code: b[0], dst: b[1] & 15, src: b[1] >> 4,
			off: int16(decode.U16(b[2:], bigEndian)), imm: int32(decode.U32(b[4:], bigEndian)), names: names}
		if bigEndian {
			in.dst, in.src = in.src, in.dst
		}
		x := BPFInst{Index: at / bpfInsnSize, Size: 1}
		if names.Symbol != nil {
			in.symbol = names.Symbol(x.Index)
		}
		if in.code == bpfLoad64 && len(b) >= 2*bpfInsnSize {
			in.next = int32(decode.U32(b[bpfInsnSize+4:], bigEndian))
			x.Size = 2
		}
		text, ok := in.text()
		x.Text, x.Bad = fmt.Sprintf("(%02x) %s", in.code, text), !ok
		if !ok {
			x.Text = "BUG_" + bpfClasses[in.code&7] + fmt.Sprintf("_%02x", in.code)
		}
		list = append(list, x)
		at += x.Size * bpfInsnSize
	}
	return list
}

// text is the text of an instruction; not ok if it is unknown.
func (in *bpfInsn) text() (text string, ok bool) {
	switch in.code & 7 {
	case bpfALU, bpfALU64:
		return in.alu()
	case bpfSTX:
		return in.storeRegister()
	case bpfST:
		switch in.code & 0xe0 {
		case bpfMEM:
			return fmt.Sprintf("*(%s *)(r%d %+d) = %d", in.size(), in.dst, in.off, in.imm), true
		case bpfNOSPEC:
			return "nospec", true
		}
	case bpfLDX:
		sizes := bpfSizes
		switch in.code & 0xe0 {
		case bpfMEMSX:
			sizes = bpfSigned
			fallthrough
		case bpfMEM:
			return fmt.Sprintf("r%d = *(%s *)(r%d %+d)", in.dst, sizes[in.code>>3&3], in.src, in.off), true
		}
	case bpfLD:
		switch {
		case in.code == bpfLoad64:
			return fmt.Sprintf("r%d = %s", in.dst, in.constant()), true
		case in.code&0xe0 == bpfABS:
			return fmt.Sprintf("r0 = *(%s *)skb[%d]", in.size(), in.imm), true
		case in.code&0xe0 == bpfIND:
			return fmt.Sprintf("r0 = *(%s *)skb[r%d + %d]", in.size(), in.src, in.imm), true
		}
	case bpfJMP, bpfJMP32:
		return in.jump()
	}
	return "", false
}

func (in *bpfInsn) size() string { return bpfSizes[in.code>>3&3] }

// register is the letter of the registers of an instruction.
func (in *bpfInsn) register() byte {
	if c := in.code & 7; c == bpfALU || c == bpfJMP32 {
		return 'w'
	}
	return 'r'
}

func (in *bpfInsn) alu() (string, bool) {
	const div, neg, mod, mov, end = 3, 8, 9, 11, 13
	op, r, fromRegister := in.code>>4, in.register(), in.code&8 != 0
	name := bpfALUs[op]
	switch {
	case op == end && in.code&7 == bpfALU64:
		return fmt.Sprintf("r%d = bswap%d r%d", in.dst, in.imm, in.dst), true
	case op == end:
		order := "le"
		if fromRegister {
			order = "be"
		}
		return fmt.Sprintf("r%d = %s%d r%d", in.dst, order, in.imm, in.dst), true
	case op == neg:
		return fmt.Sprintf("%c%d = -%c%d", r, in.dst, r, in.dst), true
	case op == mov && fromRegister && r == 'r' && in.off == 1: // BPF_ADDR_SPACE_CAST
		return fmt.Sprintf("r%d = addr_space_cast(r%d, %d, %d)", in.dst, in.src, uint32(in.imm)>>16,
			uint16(in.imm)), true
	case op == mov && fromRegister && r == 'r' && in.off == -1: // BPF_ADDR_PERCPU
		return fmt.Sprintf("r%d = &(void __percpu *)(r%d)", in.dst, in.src), true
	case name == "":
		return "", false
	}
	if (op == div || op == mod) && in.off == 1 {
		name = "s" + name
	}
	if !fromRegister {
		return fmt.Sprintf("%c%d %s %d", r, in.dst, name, in.imm), true
	}
	extended := ""
	if op == mov && (in.off == 8 || in.off == 16 || in.off == 32) {
		extended = fmt.Sprintf("(s%d)", in.off)
	}
	return fmt.Sprintf("%c%d %s %s%c%d", r, in.dst, name, extended, r, in.src), true
}

func (in *bpfInsn) storeRegister() (string, bool) {
	const xchg, cmpxchg, loadAcquire, storeRelease = 0xe1, 0xf1, 0x100, 0x110
	where := fmt.Sprintf("(%s *)(r%d %+d)", in.size(), in.dst, in.off)
	if in.code&0xe0 == bpfMEM {
		return fmt.Sprintf("*%s = r%d", where, in.src), true
	}
	if in.code&0xe0 != bpfATOMIC {
		return "", false
	}
	width := ""
	if in.size() == "u64" {
		width = "64"
	}
	op := bpfAtomics[in.imm&^bpfFetch]
	switch {
	case in.imm == xchg:
		return fmt.Sprintf("r%d = atomic%s_xchg(%s, r%d)", in.src, width, where, in.src), true
	case in.imm == cmpxchg:
		return fmt.Sprintf("r0 = atomic%s_cmpxchg(%s, r0, r%d)", width, where, in.src), true
	case in.imm == loadAcquire:
		return fmt.Sprintf("r%d = load_acquire((%s *)(r%d %+d))", in.dst, in.size(), in.src, in.off), true
	case in.imm == storeRelease:
		return fmt.Sprintf("store_release(%s, r%d)", where, in.src), true
	case op == "":
		return "", false
	case in.imm&bpfFetch != 0:
		return fmt.Sprintf("r%d = atomic%s_fetch_%s(%s, r%d)", in.src, width, op, where, in.src), true
	}
	return fmt.Sprintf("lock *%s %s r%d", where, bpfALUs[in.imm>>4&15], in.src), true
}

// constant is the operand of a load of 64 bits.
func (in *bpfInsn) constant() string {
	switch in.src {
	case bpfMapFD:
		return "map[" + in.mapName() + "]"
	case bpfMapValue:
		return fmt.Sprintf("map[%s][0]+%d", in.mapName(), in.next)
	case bpfMapIdxValue:
		return fmt.Sprintf("map[idx:%d]+%d", in.imm, in.next)
	case bpfFunc:
		return fmt.Sprintf("subprog[%+d]", in.imm)
	}
	if in.symbol != "" {
		return in.symbol
	}
	return fmt.Sprintf("0x%x", uint64(uint32(in.next))<<32|uint64(uint32(in.imm)))
}

func (in *bpfInsn) mapName() string {
	if in.symbol != "" {
		return in.symbol
	}
	if in.names.Map != nil {
		if name := in.names.Map(uint32(in.imm)); name != "" {
			return name
		}
	}
	return fmt.Sprintf("id:%d", uint32(in.imm))
}

func (in *bpfInsn) jump() (string, bool) {
	switch in.code {
	case bpfCall:
		return in.call(), true
	case bpfCallX:
		return fmt.Sprintf("callx r%d", in.dst), true
	case bpfJA:
		return fmt.Sprintf("goto pc%+d", in.off), true
	case bpfJA32:
		return fmt.Sprintf("gotol pc%+d", in.imm), true
	case bpfGotoX:
		return fmt.Sprintf("gotox r%d", in.dst), true
	case bpfMayGoto:
		return fmt.Sprintf("may_goto pc%+d", in.off), true
	case bpfExit:
		return "exit", true
	}
	op, r := bpfJumps[in.code>>4], in.register()
	switch {
	case op == "" || in.code>>4 == 0 || op == "call" || op == "exit":
		return "", false
	case in.code&8 != 0:
		return fmt.Sprintf("if %c%d %s %c%d goto pc%+d", r, in.dst, op, r, in.src, in.off), true
	}
	return fmt.Sprintf("if %c%d %s 0x%x goto pc%+d", r, in.dst, op, uint32(in.imm), in.off), true
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
		return f(in.imm)
	}
	switch in.src {
	case bpfPseudoCall:
		text := fmt.Sprintf("call pc%+d", in.off)
		if s := name(in.names.Function); s != "" {
			text += "#" + s
		}
		return text
	case bpfPseudoKFunc:
		if s := name(in.names.KFunc); s != "" {
			return fmt.Sprintf("call %s#%d", s, in.imm)
		}
		return fmt.Sprintf("call kernel function#%d", in.imm)
	}
	if in.imm == bpfTailCall {
		return fmt.Sprintf("call bpf_tail_call#%d", in.imm)
	}
	if s := name(in.names.Helper); s != "" {
		return fmt.Sprintf("call %s#%d", s, in.imm)
	}
	return fmt.Sprintf("call unknown#%d", in.imm)
}
