package unwind

import (
	"debug/elf"
	"encoding/binary"
	"math/bits"

	"symbolize/ingest/input"
	"symbolize/ingest/object/cfi"
)

// numRegs is the number of DWARF registers that frames keep: up to 31 and arm64's PC.
const numRegs = 33

// addressMask removes the pointer authentication code, and a tag, from an address of arm64 with
// 48-bit user space.
const addressMask = 1<<48 - 1

// DWARF register numbers by the bits of perf's register masks; noReg for registers that unwinding
// does not need: arch/x86/include/uapi/asm/perf_regs.h, and the numbers of package cfi.
const noReg = 0xff

var (
	regsX86 = [24]uint8{0: 0, 1: 3, 2: 2, 3: 1, 4: 4, 5: 5, 6: 6, 7: 7, 8: 16, 9: noReg,
		10: noReg, 11: noReg, 12: noReg, 13: noReg, 14: noReg, 15: noReg,
		16: 8, 17: 9, 18: 10, 19: 11, 20: 12, 21: 13, 22: 14, 23: 15}
	regsI386 = [24]uint8{0: 0, 1: 3, 2: 1, 3: 2, 4: 6, 5: 7, 6: 5, 7: 4, 8: 8, 9: noReg,
		10: noReg, 11: noReg, 12: noReg, 13: noReg, 14: noReg, 15: noReg,
		16: noReg, 17: noReg, 18: noReg, 19: noReg, 20: noReg, 21: noReg, 22: noReg, 23: noReg}
)

const (
	abi32 = 1
	abi64 = 2

	pcARM64 = 32 // its bit in perf's masks, and the register that frames keep it in
)

// archOf returns the architecture of a stack, and the number of a register by its bit.
func archOf(s *input.CopiedStack) (*cfi.Arch, func(bit int) uint8) {
	table := func(t *[24]uint8) func(int) uint8 {
		return func(bit int) uint8 {
			if bit < len(t) {
				return t[bit]
			}
			return noReg
		}
	}
	switch {
	case isX86(s.Arch) && s.ABI == abi64:
		return cfi.ArchOf(elf.EM_X86_64), table(&regsX86)
	case isX86(s.Arch) && s.ABI == abi32:
		return cfi.ArchOf(elf.EM_386), table(&regsI386)
	case (s.Arch == "aarch64" || s.Arch == "arm64") && s.ABI == abi64:
		return cfi.ArchOf(elf.EM_AARCH64), func(bit int) uint8 {
			if bit <= pcARM64 {
				return uint8(bit) // x0 to x30 and SP as in DWARF
			}
			return noReg
		}
	}
	return nil, nil
}

func isX86(arch string) bool { return arch == "x86_64" || arch == "i386" || arch == "i686" }

// start sets the registers of the first frame; false if the ones without which nothing can be
// unwound are not there.
func (f *frame) start(s *input.CopiedStack) bool {
	w := f.w
	var number func(bit int) uint8
	if w.arch, number = archOf(s); w.arch == nil {
		return false
	}
	w.mask = ^uint64(0)
	if w.arch.Word == 4 {
		w.mask = 1<<32 - 1
	}
	regs := s.Regs
	pc := uint8(w.arch.PC)
	if w.arch.LinkRegister {
		pc = pcARM64
	}
	for mask := s.Mask; mask != 0 && len(regs) >= 8; mask &= mask - 1 {
		v := binary.LittleEndian.Uint64(regs)
		regs = regs[8:]
		// In interrupts of the kernel that cannot be masked some registers are unknown: the
		// kernel gives ~0.
		if reg := number(bits.TrailingZeros64(mask)); reg != noReg && v != ^uint64(0) {
			f.set(reg, v)
		}
	}
	f.pc = f.regs[pc]
	return f.valid>>pc&1 != 0 && f.valid>>w.arch.SP&1 != 0
}
