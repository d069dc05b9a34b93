package flow

import (
	"debug/elf"

	"symbolize/ingest/addr"
)

// Operand is the memory operand of an instruction, at Base + Disp and perhaps more.
type Operand struct {
	At    addr.Addr
	Size  uint8 // bytes; 0 of a push, pop, call or return
	Write bool
	Base  uint8 // NoRegister for none
	Disp  int64
}

// Operands lists the memory operands of instructions in code at an address, in order, up to the first that is not
// known.
func Operands(m elf.Machine, code []byte, at addr.Addr) (list []Operand) {
	how := machines[m]
	for len(code) > 0 {
		x, ok := how.decode(code, at)
		if !ok || int(x.size) > len(code) {
			return list
		}
		if x.access > 0 || x.stack {
			list = append(list, Operand{At: at, Size: x.access, Write: x.writes, Base: uint8(x.mem.base), Disp: x.mem.disp})
		}
		code, at = code[x.size:], at+addr.Addr(x.size)
	}
	return list
}
