package disasm

import (
	"fmt"
	"strings"
)

// arm64Hints are instructions of the hint space and near it that arm64asm gives as
// numbers, or not at all. Kernels and compilers begin and end functions with them.
var arm64Hints = map[uint32]string{
	0xd503233f: "paciasp", 0xd50323bf: "autiasp", 0xd503237f: "pacibsp", 0xd50323ff: "autibsp",
	0xd503231f: "paciaz", 0xd503239f: "autiaz", 0xd503241f: "bti", 0xd503245f: "bti    c",
	0xd503249f: "bti    j", 0xd50324df: "bti    jc", 0xd65f0bff: "retaa", 0xd65f0fff: "retab",
	0xd50320ff: "xpaclri", 0xd503229f: "csdb", 0xd50330ff: "sb",
}

// atomics are the operations of LSE (Armv8.1) by o3 and opc.
var atomics = [16]string{"ldadd", "ldclr", "ldeor", "ldset", "ldsmax", "ldsmin", "ldumax",
	"ldumin", "swp"}

// arm64Extra decodes hints, and atomics of Armv8.1 that arm64asm lacks; the BPF JIT emits them. It
// is "" for all others.
func arm64Extra(w uint32) string {
	if name := arm64Hints[w]; name != "" {
		return name
	}
	size, rs, rn, rt := w>>30, w>>16&31, w>>5&31, w&31
	switch {
	case w&0x3f200c00 == 0x38200000: // atomic memory operations
		acquire, release := w>>23&1 == 1, w>>22&1 == 1
		name := atomics[w>>12&15]
		if w>>12&15 == 12 && acquire && !release && rs == 31 {
			return arm64Atomic("ldapr", size, false, false, arm64Reg(size, rt), rn)
		}
		if name == "" {
			return ""
		}
		if rest, ok := strings.CutPrefix(name, "ld"); ok && rt == 31 && !acquire {
			return arm64Atomic("st"+rest, size, false, release, arm64Reg(size, rs), rn)
		}
		return arm64Atomic(name, size, acquire, release,
			arm64Reg(size, rs)+", "+arm64Reg(size, rt), rn)
	case w&0x3fa07c00 == 0x08a07c00: // compare and swap
		return arm64Atomic("cas", size, w>>22&1 == 1, w>>15&1 == 1,
			arm64Reg(size, rs)+", "+arm64Reg(size, rt), rn)
	}
	return ""
}

// arm64Atomic writes an atomic instruction. Size is the logarithm of its bytes.
func arm64Atomic(name string, size uint32, acquire, release bool, regs string, base uint32) string {
	if acquire {
		name += "a"
	}
	if release {
		name += "l"
	}
	if size < 2 {
		name += string("bh"[size])
	}
	return join(name, fmt.Sprintf("%s, [%s]", regs, arm64Base(base)))
}

func arm64Reg(size, n uint32) string {
	width := "w"
	if size == 3 {
		width = "x"
	}
	if n == 31 {
		return width + "zr"
	}
	return fmt.Sprintf("%s%d", width, n)
}

func arm64Base(n uint32) string {
	if n == 31 {
		return "sp"
	}
	return fmt.Sprintf("x%d", n)
}

// arm64SysRegs are the system registers that kernels and libraries read all the time.
var arm64SysRegs = strings.NewReplacer(
	"s3_0_c4_c1_0", "sp_el0", "s3_3_c13_c0_2", "tpidr_el0", "s3_0_c13_c0_4", "tpidr_el1",
	"s3_4_c13_c0_2", "tpidr_el2", "s3_3_c14_c0_2", "cntvct_el0", "s3_3_c4_c2_1", "daif",
	"s3_0_c4_c0_1", "elr_el1", "s3_0_c4_c0_0", "spsr_el1", "s3_0_c5_c2_0", "esr_el1",
	"s3_0_c6_c0_0", "far_el1", "s3_0_c2_c0_0", "ttbr0_el1", "s3_3_c4_c4_0", "fpcr",
	"s3_3_c4_c4_1", "fpsr", "s3_3_c0_c0_1", "ctr_el0", "s3_3_c0_c0_7", "dczid_el0",
	"s3_0_c0_c0_5", "mpidr_el1", "s3_0_c0_c0_0", "midr_el1",
)

// arm64Args spaces operands as objdump does.
func arm64Args(s string) string {
	s = arm64SysRegs.Replace(s)
	return strings.ReplaceAll(strings.ReplaceAll(s, ", ", ","), ",", ", ")
}
