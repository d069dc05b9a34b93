package reltype

import "debug/elf"

// Of returns the field that a relocation type of debug information or .eh_frame writes. Ok
// is false for unsupported types and machines. Processor supplements.
func Of(m elf.Machine, kind uint32) (w Field, ok bool) {
	switch m {
	case elf.EM_X86_64:
		switch elf.R_X86_64(kind) {
		case elf.R_X86_64_NONE:
			return Field{}, true
		case elf.R_X86_64_64, elf.R_X86_64_DTPOFF64:
			return Field{Size: 8}, true
		case elf.R_X86_64_32, elf.R_X86_64_32S, elf.R_X86_64_DTPOFF32:
			return Field{Size: 4}, true
		case elf.R_X86_64_PC64:
			return Field{Size: 8, Relative: true}, true
		case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
			return Field{Size: 4, Relative: true}, true
		}
	case elf.EM_AARCH64:
		switch elf.R_AARCH64(kind) {
		case elf.R_AARCH64_NONE, elf.R_AARCH64_NULL:
			return Field{}, true
		case elf.R_AARCH64_ABS64:
			return Field{Size: 8}, true
		case elf.R_AARCH64_ABS32:
			return Field{Size: 4}, true
		case elf.R_AARCH64_PREL64:
			return Field{Size: 8, Relative: true}, true
		case elf.R_AARCH64_PREL32:
			return Field{Size: 4, Relative: true}, true
		}
	case elf.EM_386:
		switch elf.R_386(kind) {
		case elf.R_386_NONE:
			return Field{}, true
		case elf.R_386_32, elf.R_386_TLS_LDO_32:
			return Field{Size: 4}, true
		case elf.R_386_PC32:
			return Field{Size: 4, Relative: true}, true
		}
	case elf.EM_ARM:
		switch elf.R_ARM(kind) {
		case elf.R_ARM_NONE:
			return Field{}, true
		case elf.R_ARM_ABS32:
			return Field{Size: 4}, true
		case elf.R_ARM_REL32:
			return Field{Size: 4, Relative: true}, true
		}
	case elf.EM_PPC64:
		switch elf.R_PPC64(kind) {
		case elf.R_PPC64_NONE, elf.R_PPC64_TOC: // of a descriptor's second word, which nobody reads
			return Field{}, true
		case elf.R_PPC64_ADDR64:
			return Field{Size: 8}, true
		case elf.R_PPC64_ADDR32:
			return Field{Size: 4}, true
		case elf.R_PPC64_REL64:
			return Field{Size: 8, Relative: true}, true
		case elf.R_PPC64_REL32:
			return Field{Size: 4, Relative: true}, true
		}
	case elf.EM_S390:
		switch elf.R_390(kind) {
		case elf.R_390_NONE:
			return Field{}, true
		case elf.R_390_64:
			return Field{Size: 8}, true
		case elf.R_390_32:
			return Field{Size: 4}, true
		case elf.R_390_PC64:
			return Field{Size: 8, Relative: true}, true
		case elf.R_390_PC32:
			return Field{Size: 4, Relative: true}, true
		}
	}
	w, ok = fields[m][kind]
	return w, ok
}

// Tombstone returns the value of a reference in a section to code without an address: lld's -1,
// or -2 in the old range and location lists, where -1 marks a base address entry.
func Tombstone(section string) uint64 {
	if section == ".debug_ranges" || section == ".debug_loc" {
		return ^uint64(0) - 1
	}
	return ^uint64(0)
}
