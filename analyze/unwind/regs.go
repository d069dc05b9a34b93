package unwind

import (
	"encoding/binary"
	"math/bits"

	"symbolize/ingest/input"
	"symbolize/ingest/machine"
)

// numRegs is the number of registers that frames keep: DWARF's up to 31, and a program counter that
// has no number there.
const numRegs = 33

// The values of perf's ABI of a task's registers.
const (
	abi32 = 1
	abi64 = 2
)

// archOf returns the machine of the program with a stack; nil if its stacks cannot be unwound.
func archOf(s *input.CopiedStack) *machine.Arch {
	kernel, _ := machine.Named(s.Arch)
	if kernel == nil {
		return nil
	}
	program := kernel.Task64
	if s.ABI == abi32 {
		program = kernel.Task32
	} else if s.ABI != abi64 {
		return nil
	}
	if a := machine.Of(program); a != nil && a.Perf != nil {
		return a
	}
	return nil
}

// start sets the registers of the first frame; false if the ones without which nothing can be
// unwound are not there.
func (f *frame) start(s *input.CopiedStack) bool {
	w := f.w
	if w.arch = archOf(s); w.arch == nil {
		return false
	}
	w.mask = ^uint64(0)
	if w.arch.Word == 4 {
		w.mask = 1<<32 - 1
	}
	regs := s.Regs
	for mask := s.Mask; mask != 0 && len(regs) >= 8; mask &= mask - 1 {
		v := binary.LittleEndian.Uint64(regs)
		regs = regs[8:]
		// In interrupts of the kernel that cannot be masked some registers are unknown: the
		// kernel gives ~0.
		bit := bits.TrailingZeros64(mask)
		if bit < len(w.arch.Perf) && w.arch.Perf[bit] != machine.NoRegister && v != ^uint64(0) {
			f.set(w.arch.Perf[bit], v)
		}
	}
	pc := w.arch.PerfPC
	f.pc = f.regs[pc]
	return f.valid>>pc&1 != 0 && f.valid>>w.arch.SP&1 != 0
}
