package elf

import "debug/elf"

// operation is how a relocation changes its field.
type operation uint8

// The operations: on a number of so many bytes; on its low 6 bits; on a ULEB128 that keeps its
// length. RISC-V and LoongArch write differences of addresses by pairs of them, since their linkers
// remove code.
const (
	opStore operation = iota
	opAdd
	opSub
	opStore6
	opAdd6
	opSub6
	opStoreULEB
	opAddULEB
	opSubULEB
)

// stores has the operation that a pair begins with, of which the given one is the second.
var stores = map[operation]operation{opSub6: opStore6, opSubULEB: opStoreULEB}

// emCSKY is EM_CSKY.
const emCSKY = elf.Machine(252)

// fields has by machine and type the fields that relocations of debug information and .eh_frame
// write. Processor supplements; include/elf of binutils.
var fields = map[elf.Machine]map[uint32]field{
	elf.EM_RISCV: {
		0: {}, 51: {}, // NONE, RELAX
		1: {size: 4}, 2: {size: 8}, 57: {size: 4, relative: true},
		33: {size: 1, op: opAdd}, 34: {size: 2, op: opAdd}, 35: {size: 4, op: opAdd},
		36: {size: 8, op: opAdd}, 37: {size: 1, op: opSub}, 38: {size: 2, op: opSub},
		39: {size: 4, op: opSub}, 40: {size: 8, op: opSub},
		52: {size: 1, op: opSub6}, 53: {size: 1, op: opStore6},
		54: {size: 1}, 55: {size: 2}, 56: {size: 4},
		60: {size: 1, op: opStoreULEB}, 61: {size: 1, op: opSubULEB},
	},
	elf.EM_LOONGARCH: {
		0: {}, 1: {size: 4}, 2: {size: 8}, 100: {}, // RELAX
		47: {size: 1, op: opAdd}, 48: {size: 2, op: opAdd}, 50: {size: 4, op: opAdd},
		51: {size: 8, op: opAdd}, 52: {size: 1, op: opSub}, 53: {size: 2, op: opSub},
		55: {size: 4, op: opSub}, 56: {size: 8, op: opSub},
		99: {size: 4, relative: true}, 109: {size: 8, relative: true},
		105: {size: 1, op: opAdd6}, 106: {size: 1, op: opSub6},
		107: {size: 1, op: opAddULEB}, 108: {size: 1, op: opSubULEB},
	},
	// BPF: before LLVM 13 numbers in debug information had the types of those in code.
	elf.EM_BPF: {0: {}, 1: {size: 8}, 2: {size: 8}, 3: {size: 4}, 4: {size: 4}, 10: {size: 4}},
	elf.EM_68K: {0: {}, 1: {size: 4}, 2: {size: 2}, 3: {size: 1}, 4: {size: 4, relative: true}},
	emCSKY:     {0: {}, 1: {size: 4}, 5: {size: 4, relative: true}},
	elf.EM_SPARC: {0: {}, 3: {size: 4}, 6: {size: 4, relative: true}, 23: {size: 4},
		32: {size: 8}, 46: {size: 8, relative: true}, 54: {size: 8}, 78: {size: 4}, 79: {size: 8}},
	elf.EM_MIPS: {0: {}, 2: {size: 4}, 18: {size: 8}, 248: {size: 4, relative: true},
		39: {size: 4}, 41: {size: 8}}, // the last: TLS_DTPREL
}

func init() {
	fields[elf.EM_SPARCV9] = fields[elf.EM_SPARC]
	fields[elf.EM_SPARC32PLUS] = fields[elf.EM_SPARC]
}

// combine changes a field by an operation. It reports false if the field is no ULEB128.
func (p *patcher) combine(at []byte, w field, v uint64) bool {
	switch w.op {
	case opStoreULEB, opAddULEB, opSubULEB:
		return combineULEB(at, w.op, v)
	case opStore6, opAdd6, opSub6:
		old := uint64(at[0])
		at[0] = at[0]&^63 | byte(combined(w.op-opStore6, old, v))&63
		return true
	}
	p.put(at, w.size, combined(w.op, p.get(at, w.size), v))
	return true
}

// combined is the result of storing, adding or subtracting.
func combined(op operation, old, v uint64) uint64 {
	switch op {
	case opAdd:
		return old + v
	case opSub:
		return old - v
	}
	return v
}

// combineULEB changes a ULEB128, which keeps its length.
func combineULEB(at []byte, op operation, v uint64) bool {
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

// get reads a number of 1, 2, 4 or 8 bytes.
func (p *patcher) get(at []byte, size uint8) uint64 {
	switch size {
	case 1:
		return uint64(at[0])
	case 2:
		return uint64(p.order.Uint16(at))
	case 4:
		return uint64(p.order.Uint32(at))
	}
	return p.order.Uint64(at)
}

// put writes one.
func (p *patcher) put(at []byte, size uint8, v uint64) {
	switch size {
	case 1:
		at[0] = byte(v)
	case 2:
		p.order.PutUint16(at, uint16(v))
	case 4:
		p.order.PutUint32(at, uint32(v))
	default:
		p.order.PutUint64(at, v)
	}
}
