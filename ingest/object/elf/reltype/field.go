// Package reltype has for each machine which bytes a relocation of debug information or .eh_frame
// writes, and how: the processor supplements of the ELF specification as data.
package reltype

import (
	"debug/elf"
	"encoding/binary"
	"maps"
)

// Field is the number that a relocation type writes.
type Field struct {
	Size     uint8 // bytes; 0: nothing
	Relative bool  // to the place itself
	Op       Operation
}

// Operation is how a relocation changes its field.
type Operation uint8

// The operations: on a number of so many bytes; on its low 6 bits; on a ULEB128 that keeps its
// length. RISC-V and LoongArch write differences of addresses by pairs of them, since their linkers
// remove code.
const (
	Store Operation = iota
	add
	sub
	store6
	add6
	sub6
	storeULEB
	addULEB
	subULEB
)

// First returns the operation that a pair begins with, of which o is the second; Store for one
// that is no second of a pair.
func (o Operation) First() Operation {
	switch o {
	case sub6:
		return store6
	case subULEB:
		return storeULEB
	}
	return Store
}

// emCSKY is EM_CSKY.
const emCSKY = elf.Machine(252)

// fields has by machine and type the fields that relocations of debug information and .eh_frame
// write. Processor supplements; include/elf of binutils.
var fields = map[elf.Machine]map[uint32]Field{
	elf.EM_RISCV: {
		0: {}, 51: {}, // NONE, RELAX
		1: {Size: 4}, 2: {Size: 8}, 57: {Size: 4, Relative: true},
		33: {Size: 1, Op: add}, 34: {Size: 2, Op: add}, 35: {Size: 4, Op: add},
		36: {Size: 8, Op: add}, 37: {Size: 1, Op: sub}, 38: {Size: 2, Op: sub},
		39: {Size: 4, Op: sub}, 40: {Size: 8, Op: sub},
		52: {Size: 1, Op: sub6}, 53: {Size: 1, Op: store6},
		54: {Size: 1}, 55: {Size: 2}, 56: {Size: 4},
		60: {Size: 1, Op: storeULEB}, 61: {Size: 1, Op: subULEB},
	},
	elf.EM_LOONGARCH: {
		0: {}, 1: {Size: 4}, 2: {Size: 8}, 100: {}, // RELAX
		47: {Size: 1, Op: add}, 48: {Size: 2, Op: add}, 50: {Size: 4, Op: add},
		51: {Size: 8, Op: add}, 52: {Size: 1, Op: sub}, 53: {Size: 2, Op: sub},
		55: {Size: 4, Op: sub}, 56: {Size: 8, Op: sub},
		99: {Size: 4, Relative: true}, 109: {Size: 8, Relative: true},
		105: {Size: 1, Op: add6}, 106: {Size: 1, Op: sub6},
		107: {Size: 1, Op: addULEB}, 108: {Size: 1, Op: subULEB},
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

// Change changes the field at the begin of b by its operation and v. It reports false if the field
// is no ULEB128. b has at least Size bytes.
func (w Field) Change(order binary.ByteOrder, b []byte, v uint64) bool {
	switch w.Op {
	case storeULEB, addULEB, subULEB:
		return combineULEB(b, w.Op, v)
	case store6, add6, sub6:
		b[0] = b[0]&^63 | byte(combined(w.Op-store6, uint64(b[0]), v))&63
		return true
	}
	w.Put(order, b, combined(w.Op, w.Get(order, b), v))
	return true
}

// combined is the result of storing, adding or subtracting.
func combined(op Operation, old, v uint64) uint64 {
	switch op {
	case add:
		return old + v
	case sub:
		return old - v
	}
	return v
}

// combineULEB changes a ULEB128, which keeps its length.
func combineULEB(at []byte, op Operation, v uint64) bool {
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
	v = combined(op-storeULEB, old, v)
	for i := 0; i <= n; i++ {
		at[i] = at[i]&0x80 | byte(v>>(7*i))&0x7f
	}
	return true
}

// Get reads the number at the begin of b, of 1, 2, 4 or 8 bytes.
func (w Field) Get(order binary.ByteOrder, b []byte) uint64 {
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

// Put writes it.
func (w Field) Put(order binary.ByteOrder, b []byte, v uint64) {
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
