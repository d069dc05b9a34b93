package machine

import "debug/elf"

// arm64's registers: "DWARF for the Arm 64-bit Architecture", 4.1. Frames of signals:
// arch/arm64/kernel/signal.c and uapi/asm/sigcontext.h of the kernel; bits of perf:
// uapi/asm/perf_regs.h, which are DWARF's numbers, and 32 for the program counter.
var arm64 = &Arch{
	ELF: elf.EM_AARCH64,
	Names: []KernelName{{Text: "aarch64", Class: elf.ELFCLASS64, JIT: true},
		{Text: "aarch64_be", Class: elf.ELFCLASS64, BigEndian: true, JIT: true}},
	Go:     "arm64",
	OTel:   "arm64",
	Task32: elf.EM_ARM, Task64: elf.EM_AARCH64,

	Word: 8, SP: 31, FP: 29, PC: 30, Registers: arm64RegisterNames,
	Saved:        []uint8{29, 30},
	LinkRegister: true,
	ThreadHeader: 16,
	CodeMask:     1<<48 - 1, // the rest is an authentication code, and a tag
	Signals: []SignalFrame{{PC: 568, SP: 560, Saved: [MaxSaved]int{544, 552},
		Others: registers(0, 28, 312)}},
	Perf:   numbers(0, 32),
	PerfPC: 32,

	Fields: []Field{
		elf.R_AARCH64_NONE: {None: true}, elf.R_AARCH64_NULL: {None: true},
		elf.R_AARCH64_ABS64: {Size: 8}, elf.R_AARCH64_ABS32: {Size: 4},
		elf.R_AARCH64_PREL64: {Size: 8, Relative: true},
		elf.R_AARCH64_PREL32: {Size: 4, Relative: true},
	},
	Dynamic: Dynamic{JumpSlot: uint32(elf.R_AARCH64_JUMP_SLOT),
		GlobDat: uint32(elf.R_AARCH64_GLOB_DAT), Absolute: uint32(elf.R_AARCH64_ABS64),
		Relative: uint32(elf.R_AARCH64_RELATIVE), IRelative: uint32(elf.R_AARCH64_IRELATIVE),
		ThreadOffset: uint32(elf.R_AARCH64_TLS_TPREL64), ThreadDescriptor: uint32(elf.R_AARCH64_TLSDESC)},

	Mapping: "adtx",
	System: System{Number: "syscallno", First: "orig_x0", NumberSize: 4, Arguments: []string{"regs"},
		BPF: 280, Mremap: [2]int32{216, 163}},
}

// arm is 32-bit ARM. A kernel for ARMv8 has another name only for 32-bit programs of arm64.
var arm = &Arch{
	ELF: elf.EM_ARM,
	Names: []KernelName{{Text: "arm", Class: elf.ELFCLASS32},
		{Text: "armv7l", Class: elf.ELFCLASS32, JIT: true},
		{Text: "armv[1-79]*", Class: elf.ELFCLASS32}},
	OTel:   "arm32",
	Task32: elf.EM_ARM,

	Fields: []Field{
		elf.R_ARM_NONE: {None: true}, elf.R_ARM_ABS32: {Size: 4},
		elf.R_ARM_REL32: {Size: 4, Relative: true},
	},

	PageSize:     4 << 10,
	SymbolFlags:  1, // Thumb
	Mapping:      "adtx",
	KernelLinked: true,
}

// registers returns the places of a range of registers of 8 bytes, the first at start.
func registers(first, last uint8, start int) (list []SavedRegister) {
	for reg := first; reg <= last; reg++ {
		list = append(list, SavedRegister{reg, start + 8*int(reg-first)})
	}
	return list
}

// numbers returns the numbers from first to last.
func numbers(first, last uint8) (list []uint8) {
	for n := first; n <= last; n++ {
		list = append(list, n)
	}
	return list
}
