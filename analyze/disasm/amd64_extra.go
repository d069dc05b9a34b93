package disasm

import (
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"symbolize/ingest/addr"
)

// form is the operands of an instruction that x86asm lacks.
type form uint8

const (
	bare  form = iota // none: the ModRM byte is part of the opcode
	rm                // r/m, in memory or a register
	rmReg             // to r/m from a register (AT&T order: reg, rm)
	regRM             // to a register from r/m
)

// size is the effect of REX.W on an instruction.
type size uint8

const (
	plainName size = iota
	sized          // the name has a letter for it
	long           // nothing: operands have 64 bits
)

// extraOp is an instruction that x86asm v0.32 lacks.
type extraOp struct {
	prefix byte // mandatory prefix 66, f2 or f3; 0 for none
	opmap  int  // 1 for 0f, 2 for 0f 38
	opcode byte
	digit  int8 // reg field of ModRM, −1 for any
	mem    int8 // r/m must be: 1 memory, 0 a register, −1 either
	modrm  byte // for bare: the byte
	form   form
	name   string
	size   size
}

// extraOps are from Intel's manual (volume 2, and 3D for extensions) and AMD's (volume 3). The
// kernel uses clac, stac, rdpid, the shadow stack's and pkru's; libraries the rest.
var extraOps = []extraOp{
	{0, 1, 0x01, -1, 0, 0xca, bare, "clac", plainName},
	{0, 1, 0x01, -1, 0, 0xcb, bare, "stac", plainName},
	{0, 1, 0x01, -1, 0, 0xcf, bare, "encls", plainName},
	{0, 1, 0x01, -1, 0, 0xd7, bare, "enclu", plainName},
	{0, 1, 0x01, -1, 0, 0xc0, bare, "enclv", plainName},
	{0, 1, 0x01, -1, 0, 0xc1, bare, "vmcall", plainName},
	{0, 1, 0x01, -1, 0, 0xc2, bare, "vmlaunch", plainName},
	{0, 1, 0x01, -1, 0, 0xc3, bare, "vmresume", plainName},
	{0, 1, 0x01, -1, 0, 0xc4, bare, "vmxoff", plainName},
	{0, 1, 0x01, -1, 0, 0xd0, bare, "xgetbv", plainName},
	{0, 1, 0x01, -1, 0, 0xd1, bare, "xsetbv", plainName},
	{0, 1, 0x01, -1, 0, 0xd4, bare, "vmfunc", plainName},
	{0, 1, 0x01, -1, 0, 0xd5, bare, "xend", plainName},
	{0, 1, 0x01, -1, 0, 0xd6, bare, "xtest", plainName},
	{0, 1, 0x01, -1, 0, 0xd8, bare, "vmrun", plainName},
	{0, 1, 0x01, -1, 0, 0xd9, bare, "vmmcall", plainName},
	{0, 1, 0x01, -1, 0, 0xda, bare, "vmload", plainName},
	{0, 1, 0x01, -1, 0, 0xdb, bare, "vmsave", plainName},
	{0, 1, 0x01, -1, 0, 0xdc, bare, "stgi", plainName},
	{0, 1, 0x01, -1, 0, 0xdd, bare, "clgi", plainName},
	{0, 1, 0x01, -1, 0, 0xe8, bare, "serialize", plainName},
	{0xf3, 1, 0x01, -1, 0, 0xe8, bare, "setssbsy", plainName},
	{0xf3, 1, 0x01, -1, 0, 0xea, bare, "saveprevssp", plainName},
	{0, 1, 0x01, -1, 0, 0xee, bare, "rdpkru", plainName},
	{0, 1, 0x01, -1, 0, 0xef, bare, "wrpkru", plainName},
	{0, 1, 0x01, -1, 0, 0xfc, bare, "clzero", plainName},
	{0xf3, 1, 0x01, 5, 1, 0, rm, "rstorssp", plainName},
	{0xf3, 1, 0x1e, 1, 0, 0, rm, "rdssp", sized},
	{0, 1, 0x1c, 0, 1, 0, rm, "cldemote", plainName},
	{0xf3, 1, 0xae, 4, -1, 0, rm, "ptwrite", sized},
	{0xf3, 1, 0xae, 5, 0, 0, rm, "incssp", sized},
	{0xf3, 1, 0xae, 6, 1, 0, rm, "clrssbsy", plainName},
	{0xf3, 1, 0xae, 6, 0, 0, rm, "umonitor", long},
	{0xf2, 1, 0xae, 6, 0, 0, rm, "umwait", plainName},
	{0x66, 1, 0xae, 6, 0, 0, rm, "tpause", plainName},
	{0x66, 1, 0xae, 6, 1, 0, rm, "clwb", plainName},
	{0x66, 1, 0xae, 7, 1, 0, rm, "clflushopt", plainName},
	{0, 1, 0xc7, 3, 1, 0, rm, "xrstors", plainName},
	{0, 1, 0xc7, 4, 1, 0, rm, "xsavec", plainName},
	{0, 1, 0xc7, 5, 1, 0, rm, "xsaves", plainName},
	{0xf3, 1, 0xc7, 7, 0, 0, rm, "rdpid", long},
	{0, 1, 0xc7, 7, 0, 0, rm, "rdseed", plainName},
	{0, 1, 0x78, -1, -1, 0, rmReg, "vmread", long},
	{0, 1, 0x79, -1, -1, 0, regRM, "vmwrite", long},
	{0x66, 2, 0x80, -1, 1, 0, regRM, "invept", long},
	{0x66, 2, 0x81, -1, 1, 0, regRM, "invvpid", long},
	{0x66, 2, 0x82, -1, 1, 0, regRM, "invpcid", long},
	{0x66, 2, 0xf5, -1, 1, 0, rmReg, "wruss", sized},
	{0, 2, 0xf6, -1, 1, 0, rmReg, "wrss", sized},
	{0x66, 2, 0xf6, -1, -1, 0, regRM, "adcx", plainName},
	{0xf3, 2, 0xf6, -1, -1, 0, regRM, "adox", plainName},
	{0x66, 2, 0xf8, -1, 1, 0, regRM, "movdir64b", long},
	{0xf2, 2, 0xf8, -1, 1, 0, regRM, "enqcmd", long},
	{0xf3, 2, 0xf8, -1, 1, 0, regRM, "enqcmds", long},
	{0, 2, 0xf9, -1, 1, 0, rmReg, "movdiri", plainName},
}

// extra decodes instructions that x86asm lacks: section 11 of the fact sheet on BPF
// images, and those found in libc, OpenSSL and Go.
func (d amd64) extra(code []byte, pc addr.PC) (Inst, bool) {
	if vexLen(code) == 3 {
		return d.tile(code)
	}
	at, opmap, ok := modRM(code)
	if !ok || opmap == 0 {
		return Inst{}, false
	}
	prefixes := code[:legacyPrefixes(code)]
	for i := range extraOps {
		e := &extraOps[i]
		if e.opmap == opmap && e.opcode == code[at-1] && e.fits(prefixes, code[at]) {
			return d.extraInst(e, prefixes, code, at, pc)
		}
	}
	return Inst{}, false
}

// fits reports whether prefixes and ModRM byte match e.
func (e *extraOp) fits(prefixes []byte, modrm byte) bool {
	mandatory := byte(0)
	for _, p := range prefixes {
		switch p {
		case 0xf2, 0xf3:
			mandatory = p
		case 0x66:
			if mandatory == 0 {
				mandatory = p
			}
		case 0xf0:
			return false
		}
	}
	switch {
	case mandatory != e.prefix:
		return false
	case e.form == bare:
		return modrm == e.modrm
	case e.digit >= 0 && int8(modrm>>3&7) != e.digit:
		return false
	}
	return e.mem < 0 || (modrm>>6 != 3) == (e.mem == 1)
}

// extraInst writes e. Its operands are decoded as operands of a multiplication, which has
// the same ModRM byte and the same bytes after it.
func (d amd64) extraInst(e *extraOp, prefixes, code []byte, at int, pc addr.PC) (Inst, bool) {
	if e.form == bare {
		return Inst{Len: at + 1, Text: e.name}, true
	}
	var imul []byte
	for _, p := range prefixes {
		if p != 0x66 && p != 0xf2 && p != 0xf3 {
			imul = append(imul, p)
		}
	}
	rex := byte(0x40)
	if b := code[len(prefixes)]; b&0xf0 == 0x40 {
		rex = b
	}
	wide := rex&8 != 0
	if e.size == long {
		rex |= 8
	}
	imul = append(imul, rex)
	x, imul, n, ok := asIMUL(imul, code[at:])
	if !ok {
		return Inst{}, false
	}
	inst := Inst{Len: at + n}
	if m, ok := x.Args[1].(x86asm.Mem); ok && m.Base == x86asm.RIP {
		inst.Data, inst.HasData = pc+addr.PC(inst.Len)+addr.PC(m.Disp), true
	}
	_, mem := x.Args[1].(x86asm.Mem)
	inst.Text = join(e.fullName(wide, mem && d.syntax == ATT), d.extraArgs(e.form, &x, imul))
	return inst, true
}

// asIMUL decodes a ModRM byte and the bytes after it as operands of `imul rm, reg` with the given
// prefixes. It returns the code of that and the number of bytes it used of rest.
func asIMUL(prefixes, rest []byte) (x x86asm.Inst, imul []byte, n int, ok bool) {
	imul = append(prefixes, 0x0f, 0xaf)
	before := len(imul)
	imul = append(imul, rest...)
	x, err := x86asm.Decode(imul, amd64Mode)
	n = x.Len - before
	if err != nil || x.Op != x86asm.IMUL || n < 1 || n > len(rest) {
		return x, nil, 0, false
	}
	return x, imul[:x.Len], n, true
}

func (e *extraOp) fullName(wide, attMem bool) string {
	switch {
	case wide && strings.HasPrefix(e.name, "x"):
		return e.name + "64"
	case e.size != sized, e.name == "ptwrite" && !attMem:
		return e.name
	case wide:
		return e.name + "q"
	case e.name == "ptwrite":
		return e.name + "l"
	}
	return e.name + "d"
}

// extraArgs writes the operands of a form, which x read as operands of `imul rm, reg`.
func (d amd64) extraArgs(f form, x *x86asm.Inst, code []byte) string {
	if d.syntax == Intel { // destination first
		_, text := splitOp(x86asm.IntelSyntax(*x, 0, nil))
		reg, mem, _ := strings.Cut(text, ",")
		switch mem = strings.TrimSpace(mem); f {
		case rm:
			return mem
		case rmReg:
			return mem + ", " + reg
		}
		return reg + ", " + mem
	}
	_, text := attText(x, code, 0)
	list := splitArgs(text)
	mem, reg := list[0], list[len(list)-1]
	switch f {
	case rm:
		return mem
	case rmReg:
		return reg + "," + mem
	}
	return mem + "," + reg
}
