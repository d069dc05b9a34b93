package elf

import (
	"encoding/binary"

	"symbolize/ingest/machine"
)

// relField is a field that a relocation changes.
type relField struct{ machine.Field }

// change applies the operation with v to the field at the start of b, which has at least Size
// bytes. It returns false if the field should be a ULEB128 but is not.
func (w relField) change(order binary.ByteOrder, b []byte, v uint64) bool {
	switch w.Op {
	case machine.StoreULEB, machine.AddULEB, machine.SubULEB:
		return combineULEB(b, w.Op, v)
	case machine.Store6, machine.Add6, machine.Sub6:
		b[0] = b[0]&^63 | byte(combined(w.Op-machine.Store6, uint64(b[0]), v))&63
		return true
	}
	w.put(order, b, combined(w.Op, w.get(order, b), v))
	return true
}

// combined returns the result of storing, adding or subtracting v.
func combined(op machine.Op, old, v uint64) uint64 {
	switch op {
	case machine.Add:
		return old + v
	case machine.Sub:
		return old - v
	}
	return v
}

// combineULEB changes a ULEB128 without changing its length.
func combineULEB(at []byte, op machine.Op, v uint64) bool {
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
	v = combined(op-machine.StoreULEB, old, v)
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

// tombstone returns the value that a section has for a reference to removed code: -1 as lld, or -2 in the old range and location lists, where -1 marks a base address entry.
func tombstone(section string) uint64 {
	if section == ".debug_ranges" || section == ".debug_loc" {
		return ^uint64(0) - 1
	}
	return ^uint64(0)
}
