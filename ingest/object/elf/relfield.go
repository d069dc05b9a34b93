package elf

import (
	"debug/elf"
	"encoding/binary"
	"maps"
)

// relField is the field that a relocation type of debug information or .eh_frame writes. The types
// of all machines are from the processor supplements of the ELF specification.
type relField struct {
	Size     uint8 // bytes; 0: nothing
	Relative bool  // to the place itself
	Op       relOp
}

// relOp is how a relocation changes its field.
type relOp uint8

// The operations on a number of Size bytes, on its low 6 bits, and on a ULEB128 that keeps its
// length. RISC-V and LoongArch write differences of addresses with two operations, since their
// linkers remove code.
const (
	opStore relOp = iota
	opAdd
	opSub
	opStore6
	opAdd6
	opSub6
	opStoreULEB
	opAddULEB
	opSubULEB
)

// first returns the first operation of the pair that o is the second of, or opStore if o is never
// the second.
func (o relOp) first() relOp {
	switch o {
	case opSub6:
		return opStore6
	case opSubULEB:
		return opStoreULEB
	}
	return opStore
}

// emCSKY is EM_CSKY.
const emCSKY = elf.Machine(252)

// fields lists the less frequent machines by relocation type; after include/elf of binutils.
var fields = map[elf.Machine]map[uint32]relField{
	elf.EM_RISCV: {
		0: {}, 51: {}, // NONE, RELAX
		1: {Size: 4}, 2: {Size: 8}, 57: {Size: 4, Relative: true},
		33: {Size: 1, Op: opAdd}, 34: {Size: 2, Op: opAdd}, 35: {Size: 4, Op: opAdd},
		36: {Size: 8, Op: opAdd}, 37: {Size: 1, Op: opSub}, 38: {Size: 2, Op: opSub},
		39: {Size: 4, Op: opSub}, 40: {Size: 8, Op: opSub},
		52: {Size: 1, Op: opSub6}, 53: {Size: 1, Op: opStore6},
		54: {Size: 1}, 55: {Size: 2}, 56: {Size: 4},
		60: {Size: 1, Op: opStoreULEB}, 61: {Size: 1, Op: opSubULEB},
	},
	elf.EM_LOONGARCH: {
		0: {}, 1: {Size: 4}, 2: {Size: 8}, 100: {}, // RELAX
		47: {Size: 1, Op: opAdd}, 48: {Size: 2, Op: opAdd}, 50: {Size: 4, Op: opAdd},
		51: {Size: 8, Op: opAdd}, 52: {Size: 1, Op: opSub}, 53: {Size: 2, Op: opSub},
		55: {Size: 4, Op: opSub}, 56: {Size: 8, Op: opSub},
		99: {Size: 4, Relative: true}, 109: {Size: 8, Relative: true},
		105: {Size: 1, Op: opAdd6}, 106: {Size: 1, Op: opSub6},
		107: {Size: 1, Op: opAddULEB}, 108: {Size: 1, Op: opSubULEB},
	},
	// BPF: before LLVM 13 numbers in debug information had the types of those in code.
	elf.EM_BPF: {0: {}, 1: {Size: 8}, 2: {Size: 8}, 3: {Size: 4}, 4: {Size: 4}, 10: {Size: 4}},
	elf.EM_68K: {0: {}, 1: {Size: 4}, 2: {Size: 2}, 3: {Size: 1}, 4: {Size: 4, Relative: true}},
	emCSKY:     {0: {}, 1: {Size: 4}, 5: {Size: 4, Relative: true}},
	elf.EM_SPARC: {0: {}, 3: {Size: 4}, 6: {Size: 4, Relative: true}, 23: {Size: 4},
		32: {Size: 8}, 46: {Size: 8, Relative: true}, 54: {Size: 8}, 78: {Size: 4}, 79: {Size: 8}},
	// IA-64: the types for the other byte order are one more.
	elf.EM_IA_64: {0: {}, 0x24: {Size: 4}, 0x26: {Size: 8}, 0x4c: {Size: 4, Relative: true},
		0x4e: {Size: 8, Relative: true}, 0x64: {Size: 4}, 0x66: {Size: 8}, // SECREL
		0x74: {Size: 4}, 0x76: {Size: 8}, 0xb6: {Size: 8}}, // LTV, DTPREL
	elf.EM_PPC: {0: {}, 1: {Size: 4}, 26: {Size: 4, Relative: true}, 78: {Size: 4}},
	elf.EM_PARISC: {0: {}, 1: {Size: 4}, 9: {Size: 4, Relative: true}, 65: {Size: 4},
		72: {Size: 8, Relative: true}, 80: {Size: 8}},
	elf.EM_SH: {0: {}, 1: {Size: 4}, 2: {Size: 4, Relative: true}},
	elf.EM_ALPHA: {0: {}, 1: {Size: 4}, 2: {Size: 8}, 10: {Size: 4, Relative: true},
		11: {Size: 8, Relative: true}},
	elf.EM_MIPS: {0: {}, 2: {Size: 4}, 18: {Size: 8}, 248: {Size: 4, Relative: true},
		39: {Size: 4}, 41: {Size: 8}}, // the last: TLS_DTPREL
}

func init() {
	fields[elf.EM_SPARCV9] = fields[elf.EM_SPARC]
	fields[elf.EM_SPARC32PLUS] = fields[elf.EM_SPARC]
	ia64 := fields[elf.EM_IA_64]
	for kind, w := range maps.Clone(ia64) {
		if kind > 0 {
			ia64[kind|1] = w
		}
	}
}

// change applies the operation with v to the field at the start of b, which has at least Size
// bytes. It returns false if the field should be a ULEB128 but is not.
func (w relField) change(order binary.ByteOrder, b []byte, v uint64) bool {
	switch w.Op {
	case opStoreULEB, opAddULEB, opSubULEB:
		return combineULEB(b, w.Op, v)
	case opStore6, opAdd6, opSub6:
		b[0] = b[0]&^63 | byte(combined(w.Op-opStore6, uint64(b[0]), v))&63
		return true
	}
	w.put(order, b, combined(w.Op, w.get(order, b), v))
	return true
}

// combined returns the result of storing, adding or subtracting v.
func combined(op relOp, old, v uint64) uint64 {
	switch op {
	case opAdd:
		return old + v
	case opSub:
		return old - v
	}
	return v
}

// combineULEB changes a ULEB128 without changing its length.
func combineULEB(at []byte, op relOp, v uint64) bool {
	n, old := 0, uint64(0)
	for ; n < len(at) && n < 10; n++ {
		old |= uint64(at[n]&0x7f) << (7 * n)
		if at[n] < 0x80 {
			break
		}
	}
	if n == len(at) || n == 10 {
		return false
	}
	v = combined(op-opStoreULEB, old, v)
	for i := 0; i <= n; i++ {
		at[i] = at[i]&0x80 | byte(v>>(7*i))&0x7f
	}
	return true
}

// get reads the 1, 2, 4 or 8 bytes at the start of b.
func (w relField) get(order binary.ByteOrder, b []byte) uint64 {
	switch w.Size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(order.Uint16(b))
	case 4:
		return uint64(order.Uint32(b))
	}
	return order.Uint64(b)
}

// put writes the low Size bytes of v to the start of b.
func (w relField) put(order binary.ByteOrder, b []byte, v uint64) {
	switch w.Size {
	case 1:
		b[0] = byte(v)
	case 2:
		order.PutUint16(b, uint16(v))
	case 4:
		order.PutUint32(b, uint32(v))
	default:
		order.PutUint64(b, v)
	}
}

// fieldOf returns the field that a relocation type writes; ok is false for unsupported types and
// machines.
func fieldOf(m elf.Machine, kind uint32) (w relField, ok bool) {
	switch m {
	case elf.EM_X86_64:
		switch elf.R_X86_64(kind) {
		case elf.R_X86_64_NONE:
			return relField{}, true
		case elf.R_X86_64_64, elf.R_X86_64_DTPOFF64:
			return relField{Size: 8}, true
		case elf.R_X86_64_32, elf.R_X86_64_32S, elf.R_X86_64_DTPOFF32:
			return relField{Size: 4}, true
		case elf.R_X86_64_PC64:
			return relField{Size: 8, Relative: true}, true
		case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
			return relField{Size: 4, Relative: true}, true
		}
	case elf.EM_AARCH64:
		switch elf.R_AARCH64(kind) {
		case elf.R_AARCH64_NONE, elf.R_AARCH64_NULL:
			return relField{}, true
		case elf.R_AARCH64_ABS64:
			return relField{Size: 8}, true
		case elf.R_AARCH64_ABS32:
			return relField{Size: 4}, true
		case elf.R_AARCH64_PREL64:
			return relField{Size: 8, Relative: true}, true
		case elf.R_AARCH64_PREL32:
			return relField{Size: 4, Relative: true}, true
		}
	case elf.EM_386:
		switch elf.R_386(kind) {
		case elf.R_386_NONE:
			return relField{}, true
		case elf.R_386_32, elf.R_386_TLS_LDO_32:
			return relField{Size: 4}, true
		case elf.R_386_PC32:
			return relField{Size: 4, Relative: true}, true
		}
	case elf.EM_ARM:
		switch elf.R_ARM(kind) {
		case elf.R_ARM_NONE:
			return relField{}, true
		case elf.R_ARM_ABS32:
			return relField{Size: 4}, true
		case elf.R_ARM_REL32:
			return relField{Size: 4, Relative: true}, true
		}
	case elf.EM_PPC64:
		switch elf.R_PPC64(kind) {
		case elf.R_PPC64_NONE, elf.R_PPC64_TOC: // the unused second word of a descriptor
			return relField{}, true
		case elf.R_PPC64_ADDR64:
			return relField{Size: 8}, true
		case elf.R_PPC64_ADDR32:
			return relField{Size: 4}, true
		case elf.R_PPC64_REL64:
			return relField{Size: 8, Relative: true}, true
		case elf.R_PPC64_REL32:
			return relField{Size: 4, Relative: true}, true
		}
	case elf.EM_S390:
		switch elf.R_390(kind) {
		case elf.R_390_NONE:
			return relField{}, true
		case elf.R_390_64:
			return relField{Size: 8}, true
		case elf.R_390_32:
			return relField{Size: 4}, true
		case elf.R_390_PC64:
			return relField{Size: 8, Relative: true}, true
		case elf.R_390_PC32:
			return relField{Size: 4, Relative: true}, true
		}
	}
	w, ok = fields[m][kind]
	return w, ok
}

// tombstone returns the value that a section has for a reference to removed code: -1 as lld, or -2 in the old range and location lists, where -1 marks a base address entry.
func tombstone(section string) uint64 {
	if section == ".debug_ranges" || section == ".debug_loc" {
		return ^uint64(0) - 1
	}
	return ^uint64(0)
}
