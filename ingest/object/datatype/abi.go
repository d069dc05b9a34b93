package datatype

import (
	stdelf "debug/elf"

	"symbolize/ingest/object/btf"
)

// Argument is a parameter of a function and where the ABI passes it.
type Argument struct {
	Name string
	Type btf.ID
	// Registers are those that have it, by DWARF's numbers: two of a value of 9 to 16 bytes.
	Registers []uint8
	// OnStack is set if it is in memory instead, Stack bytes behind the place of the stack pointer before
	// the call.
	OnStack bool
	Stack   int64
	// Pointer is set if the register has the address of the value.
	Pointer bool
}

// argumentRegisters are the registers of integers and pointers: of the System V ABI, AMD64 supplement, 3.2.3, and
// of the procedure call standard of AArch64, 6.8.2.
var argumentRegisters = map[stdelf.Machine][]uint8{
	stdelf.EM_X86_64:  {5, 4, 1, 2, 8, 9},
	stdelf.EM_AARCH64: {0, 1, 2, 3, 4, 5, 6, 7},
}

// Arguments returns where a machine's ABI passes the parameters of a FUNC_PROTO to a function of a kernel; false for
// a machine whose ABI is not known, and for types without a size. Kernels have no parameters in the registers of
// floats.
func Arguments(machine stdelf.Machine, types *btf.Types, proto btf.ID) (list []Argument, ok bool) {
	regs := argumentRegisters[machine]
	if regs == nil {
		return nil, false
	}
	stack := int64(0)
	for _, p := range types.Params(proto) {
		if p.Type == 0 {
			break // "..."
		}
		a := Argument{Name: p.Name, Type: p.Type}
		own := types.Strip(p.Type)
		size, err := types.Size(own)
		kind := types.Kind(own)
		if err != nil || size == 0 || kind == btf.KindFloat {
			return nil, false
		}
		if size > 16 && machine == stdelf.EM_AARCH64 {
			a.Pointer, size = true, 8
		}
		n := int(size+7) / 8
		if machine == stdelf.EM_AARCH64 && n == 2 && kind == btf.KindInt && len(regs)%2 != 0 {
			regs = regs[1:] // an even one
		}
		if size <= 16 && n <= len(regs) {
			a.Registers, regs = regs[:n:n], regs[n:]
		} else {
			if machine == stdelf.EM_AARCH64 {
				regs = regs[:0]
			}
			a.OnStack, a.Stack = true, stack
			stack += int64(n) * 8
		}
		list = append(list, a)
	}
	return list, true
}
