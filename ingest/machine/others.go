package machine

import "debug/elf"

// archs are all machines, the frequent ones first.
var archs = []*Arch{amd64, arm64, i386, arm, s390, ppc64, riscv, loong64, mips, sparc64, ppc, sparc,
	sparc32plus, bpf, m68k, csky, ia64, parisc, sh, alpha}

var s390 = &Arch{
	ELF:   elf.EM_S390,
	Names: []KernelName{{Text: "s390x", Class: elf.ELFCLASS64, BigEndian: true, JIT: true}},
	Fields: []Field{
		elf.R_390_NONE: {None: true}, elf.R_390_64: {Size: 8}, elf.R_390_32: {Size: 4},
		elf.R_390_PC64: {Size: 8, Relative: true}, elf.R_390_PC32: {Size: 4, Relative: true},
	},
	Dynamic: Dynamic{JumpSlot: uint32(elf.R_390_JMP_SLOT), GlobDat: uint32(elf.R_390_GLOB_DAT),
		Relative: uint32(elf.R_390_RELATIVE), IRelative: 61},
	PageSize: 4 << 10,
}

var ppc64 = &Arch{
	ELF: elf.EM_PPC64,
	Names: []KernelName{{Text: "ppc64le", Class: elf.ELFCLASS64, JIT: true},
		{Text: "ppc64", Class: elf.ELFCLASS64, BigEndian: true, JIT: true}},
	Fields: []Field{
		elf.R_PPC64_NONE: {None: true}, elf.R_PPC64_TOC: {None: true}, // second word of a descriptor
		elf.R_PPC64_ADDR64: {Size: 8}, elf.R_PPC64_ADDR32: {Size: 4},
		elf.R_PPC64_REL64: {Size: 8, Relative: true}, elf.R_PPC64_REL32: {Size: 4, Relative: true},
	},
	Dynamic: Dynamic{Relative: uint32(elf.R_PPC64_RELATIVE)},
}

// riscv has no GLOB_DAT, but the relocation of any word: R_RISCV_32 in 32-bit files.
var riscv = &Arch{
	ELF:   elf.EM_RISCV,
	Names: []KernelName{{Text: "riscv64", Class: elf.ELFCLASS64, JIT: true}},
	Fields: []Field{
		0: {None: true}, 51: {None: true}, // RELAX
		1: {Size: 4}, 2: {Size: 8}, 57: {Size: 4, Relative: true},
		33: {Size: 1, Op: Add}, 34: {Size: 2, Op: Add}, 35: {Size: 4, Op: Add},
		36: {Size: 8, Op: Add}, 37: {Size: 1, Op: Sub}, 38: {Size: 2, Op: Sub},
		39: {Size: 4, Op: Sub}, 40: {Size: 8, Op: Sub},
		52: {Size: 1, Op: Sub6}, 53: {Size: 1, Op: Store6},
		54: {Size: 1}, 55: {Size: 2}, 56: {Size: 4},
		60: {Size: 1, Op: StoreULEB}, 61: {Size: 1, Op: SubULEB},
	},
	Dynamic: Dynamic{JumpSlot: uint32(elf.R_RISCV_JUMP_SLOT), GlobDat: uint32(elf.R_RISCV_64),
		Relative: uint32(elf.R_RISCV_RELATIVE), IRelative: 58},
	PageSize: 4 << 10,
	Mapping:  "dx", MappingSuffix: true,
}

var mips = &Arch{
	ELF:   elf.EM_MIPS,
	Names: []KernelName{{Text: "mips64", Class: elf.ELFCLASS64, JIT: true}},
	Fields: []Field{0: {None: true}, 2: {Size: 4}, 18: {Size: 8}, 248: {Size: 4, Relative: true},
		39: {Size: 4}, 41: {Size: 8}}, // the last: TLS_DTPREL
}

var (
	sparc64 = &Arch{
		ELF:    elf.EM_SPARCV9,
		Names:  []KernelName{{Text: "sparc64", Class: elf.ELFCLASS64, BigEndian: true, JIT: true}},
		Fields: sparcFields,
	}
	sparc       = &Arch{ELF: elf.EM_SPARC, Fields: sparcFields}
	sparc32plus = &Arch{ELF: elf.EM_SPARC32PLUS, Fields: sparcFields}
	sparcFields = []Field{0: {None: true}, 3: {Size: 4}, 6: {Size: 4, Relative: true}, 23: {Size: 4},
		32: {Size: 8}, 46: {Size: 8, Relative: true}, 54: {Size: 8}, 78: {Size: 4}, 79: {Size: 8}}
)

// bpf is the machine of BPF objects: before LLVM 13 numbers in debug information had the types of
// those in code.
var bpf = &Arch{
	ELF: elf.EM_BPF,
	Fields: []Field{0: {None: true}, 1: {Size: 8}, 2: {Size: 8}, 3: {Size: 4}, 4: {Size: 4},
		10: {Size: 4}},
}

// ia64 has relocations for both byte orders, of which the big-endian ones are even.
var ia64 = &Arch{
	ELF: elf.EM_IA_64,
	Fields: []Field{0: {None: true},
		0x24: {Size: 4}, 0x25: {Size: 4}, 0x26: {Size: 8}, 0x27: {Size: 8},
		0x4c: {Size: 4, Relative: true}, 0x4d: {Size: 4, Relative: true},
		0x4e: {Size: 8, Relative: true}, 0x4f: {Size: 8, Relative: true},
		0x64: {Size: 4}, 0x65: {Size: 4}, 0x66: {Size: 8}, 0x67: {Size: 8}, // SECREL
		0x74: {Size: 4}, 0x75: {Size: 4}, 0x76: {Size: 8}, 0x77: {Size: 8}, // LTV
		0xb6: {Size: 8}, 0xb7: {Size: 8}}, // DTPREL
}

var (
	ppc = &Arch{ELF: elf.EM_PPC, Fields: []Field{0: {None: true}, 1: {Size: 4},
		26: {Size: 4, Relative: true}, 78: {Size: 4}}}
	m68k = &Arch{ELF: elf.EM_68K, Fields: []Field{0: {None: true}, 1: {Size: 4}, 2: {Size: 2},
		3: {Size: 1}, 4: {Size: 4, Relative: true}}}
	csky = &Arch{ELF: 252, // EM_CSKY
		Fields: []Field{0: {None: true}, 1: {Size: 4},
			5: {Size: 4, Relative: true}}}
	parisc = &Arch{ELF: elf.EM_PARISC, Fields: []Field{0: {None: true}, 1: {Size: 4},
		9: {Size: 4, Relative: true}, 65: {Size: 4}, 72: {Size: 8, Relative: true}, 80: {Size: 8}}}
	sh = &Arch{ELF: elf.EM_SH, Fields: []Field{0: {None: true}, 1: {Size: 4},
		2: {Size: 4, Relative: true}}}
	alpha = &Arch{ELF: elf.EM_ALPHA, Fields: []Field{0: {None: true}, 1: {Size: 4}, 2: {Size: 8},
		10: {Size: 4, Relative: true}, 11: {Size: 8, Relative: true}}}
)
