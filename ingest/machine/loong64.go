package machine

import "debug/elf"

// loong64's registers: the LoongArch ABI for DWARF numbers r0 to r31 so. Bits of perf:
// arch/loongarch/include/uapi/asm/perf_regs.h, the program counter and r1 to r31. Relocations:
// "ELF for the LoongArch Architecture".
//
// Functions with a frame pointer, r22, have it where their caller's stack pointer was, and store
// the return address and the caller's frame pointer below it.
var loong64 = &Arch{
	ELF:    elf.EM_LOONGARCH,
	Names:  []KernelName{{Text: "loongarch64", Class: elf.ELFCLASS64, JIT: true}},
	Go:     "loong64",
	Task64: elf.EM_LOONGARCH,

	Word: 8, SP: 3, FP: 22, PC: 1,
	LinkRegister: true,
	FrameRecord:  -16,
	CodeMask:     ^uint64(0),
	Perf:         append([]uint8{32}, numbers(1, 31)...),
	PerfPC:       32,

	Fields: []Field{
		0: {None: true}, 1: {Size: 4}, 2: {Size: 8}, 100: {None: true}, // RELAX
		47: {Size: 1, Op: Add}, 48: {Size: 2, Op: Add}, 50: {Size: 4, Op: Add},
		51: {Size: 8, Op: Add}, 52: {Size: 1, Op: Sub}, 53: {Size: 2, Op: Sub},
		55: {Size: 4, Op: Sub}, 56: {Size: 8, Op: Sub},
		99: {Size: 4, Relative: true}, 109: {Size: 8, Relative: true},
		105: {Size: 1, Op: Add6}, 106: {Size: 1, Op: Sub6},
		107: {Size: 1, Op: AddULEB}, 108: {Size: 1, Op: SubULEB},
	},
	Dynamic: Dynamic{Relative: uint32(elf.R_LARCH_RELATIVE)},
}
