package machine

import (
	"debug/elf"

	"symbolize/ingest/addr"
)

// amd64's registers: System V psABI, figure 3.36. Frames of signals: in arch/x86/include of the
// kernel asm/sigframe.h, uapi/asm/sigcontext.h and ucontext.h; bits of perf: uapi/asm/perf_regs.h.
var amd64 = &Arch{
	ELF:    elf.EM_X86_64,
	Names:  []KernelName{{Text: "x86_64", Class: elf.ELFCLASS64, JIT: true}},
	Go:     "amd64",
	OTel:   "amd64",
	Task32: elf.EM_386, Task64: elf.EM_X86_64,

	Word: 8, SP: 7, FP: 6, PC: 16, Registers: amd64RegisterNames,
	Saved:    []uint8{6, 3, 12, 13, 14, 15},
	CodeMask: ^uint64(0),
	Signals: []SignalFrame{{PC: 168, SP: 160, Saved: [MaxSaved]int{120, 128, 72, 80, 88, 96},
		Others: []SavedRegister{{0, 144}, {1, 136}, {2, 152}, {4, 112}, {5, 104}, {8, 40}, {9, 48},
			{10, 56}, {11, 64}}}},
	Perf: []uint8{0: 0, 1: 3, 2: 2, 3: 1, 4: 4, 5: 5, 6: 6, 7: 7, 8: 16, 9: NoRegister,
		10: NoRegister, 11: NoRegister, 12: NoRegister, 13: NoRegister, 14: NoRegister,
		15: NoRegister, 16: 8, 17: 9, 18: 10, 19: 11, 20: 12, 21: 13, 22: 14, 23: 15},
	PerfPC: 16,

	Fields: []Field{
		elf.R_X86_64_NONE: {None: true},
		elf.R_X86_64_64:   {Size: 8}, elf.R_X86_64_DTPOFF64: {Size: 8},
		elf.R_X86_64_32: {Size: 4}, elf.R_X86_64_32S: {Size: 4}, elf.R_X86_64_DTPOFF32: {Size: 4},
		elf.R_X86_64_PC64: {Size: 8, Relative: true},
		elf.R_X86_64_PC32: {Size: 4, Relative: true}, elf.R_X86_64_PLT32: {Size: 4, Relative: true},
	},
	Dynamic: Dynamic{JumpSlot: uint32(elf.R_X86_64_JMP_SLOT), GlobDat: uint32(elf.R_X86_64_GLOB_DAT),
		Absolute: uint32(elf.R_X86_64_64), Relative: uint32(elf.R_X86_64_RELATIVE),
		IRelative: uint32(elf.R_X86_64_IRELATIVE), ThreadOffset: uint32(elf.R_X86_64_TPOFF64)},

	PageSize: 4 << 10,
	// Modules and BPF programs follow the image: Documentation/arch/x86/x86_64/mm.rst.
	KernelImage: addr.Range{Start: 0xffffffff80000000, End: 0xffffffffc0000000},
	System: System{Number: "orig_ax", First: "di", NumberSize: 8,
		Arguments: []string{"di", "si", "dx", "cx"}, BPF: 321, Mremap: [2]int32{25, 163}},
}

// i386's registers: psABI, table 2.14. Frames of signals: struct rt_sigframe and, second, struct
// sigframe_ia32, behind the return address.
var i386 = &Arch{
	ELF: elf.EM_386,
	Names: []KernelName{{Text: "i686", Class: elf.ELFCLASS32, JIT: true},
		{Text: "i[3-5]86", Class: elf.ELFCLASS32}},
	OTel:   "x86",
	Task32: elf.EM_386, Task64: elf.EM_X86_64,

	Word: 4, SP: 4, FP: 5, PC: 8, Registers: i386RegisterNames,
	Saved:    []uint8{5, 3, 6, 7},
	CodeMask: ^uint64(0),
	Signals:  []SignalFrame{i386Context(160), i386Context(4)},
	Perf:     []uint8{0: 0, 1: 3, 2: 1, 3: 2, 4: 6, 5: 7, 6: 5, 7: 4, 8: 8},
	PerfPC:   8,

	Fields: []Field{
		elf.R_386_NONE: {None: true},
		elf.R_386_32:   {Size: 4}, elf.R_386_TLS_LDO_32: {Size: 4},
		elf.R_386_PC32: {Size: 4, Relative: true},
	},
	Dynamic: Dynamic{JumpSlot: uint32(elf.R_386_JMP_SLOT), GlobDat: uint32(elf.R_386_GLOB_DAT),
		IRelative: uint32(elf.R_386_IRELATIVE)},

	PageSize: 4 << 10,
}

// i386Context has the registers of struct sigcontext_32.
func i386Context(start int) SignalFrame {
	return SignalFrame{PC: start + 56, SP: start + 28,
		Saved:  [MaxSaved]int{start + 24, start + 32, start + 20, start + 16},
		Others: []SavedRegister{{0, start + 44}, {1, start + 40}, {2, start + 36}}}
}
