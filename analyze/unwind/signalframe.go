package unwind

import "debug/elf"

// bySignalFrame steps to interrupted code from a vdso without a table, for example because it is in
// no file. The functions of a vdso call nothing: a caller in it is the code that signal handlers
// return to, which is the kernel's on arm64 and i386, and the registers are where the kernel saves
// them.
func (f *frame) bySignalFrame() bool {
	w := f.w
	w.missed = false
	if f.exact {
		return false
	}
	for i := range w.arch.Signals {
		s := &w.arch.Signals[i]
		sp := f.regs[w.arch.SP]
		if !w.isSignalFrame(i, sp) {
			continue
		}
		next := frame{w: w, exact: true}
		pc, ok := w.read(sp+uint64(s.PC), w.arch.Word)
		next.pc = w.codeAddress(pc)
		old, ok2 := w.read(sp+uint64(s.SP), w.arch.Word)
		if !ok || !ok2 || w.find(next.pc, true).kind == unmapped {
			continue
		}
		next.set(w.arch.SP, old)
		for n, reg := range w.arch.Saved {
			if v, ok := w.read(sp+uint64(s.Saved[n]), w.arch.Word); ok {
				next.set(reg, v)
			}
		}
		next.fromSignal(sp)
		if !w.arch.LinkRegister {
			next.set(w.arch.PC, next.pc)
		}
		w.missed = false
		*f = next
		return true
	}
	return false
}

// fromSignal sets the registers of interrupted code that functions need not keep, from the kernel's
// frame above a stack pointer.
func (f *frame) fromSignal(sp uint64) {
	w := f.w
	for i := range w.arch.Signals {
		s := &w.arch.Signals[i]
		pc, ok := w.read(sp+uint64(s.PC), w.arch.Word)
		old, ok2 := w.read(sp+uint64(s.SP), w.arch.Word)
		if !ok || !ok2 || w.codeAddress(pc) != f.pc || old != f.regs[w.arch.SP] {
			continue
		}
		for _, r := range s.Others {
			if v, ok := w.read(sp+uint64(r.At), w.arch.Word); ok {
				f.set(r.Reg, v)
			}
		}
		return
	}
}

// isSignalFrame reports whether the words above a stack pointer are the kernel's i-th kind of
// signal frame.
func (w *stackUnwinder) isSignalFrame(i int, sp uint64) bool {
	at := func(off uint64) uint64 {
		v, _ := w.read(sp+off, w.arch.Word)
		return v
	}
	switch {
	case w.arch.ELF == elf.EM_AARCH64:
		// What follows PSTATE and the padding is headed by a number: struct fpsimd_context.
		const pstate, reserved, fpsimd = 576, 592, 0x46508001
		return at(pstate)&0xf == 0 && uint32(at(reserved)) == fpsimd
	case w.arch.ELF == elf.EM_386 && i == 0:
		// The handler's second and third argument, after the signal's number.
		const info, context = 12, 140
		return at(4) == sp+info && at(8) == sp+context
	case w.arch.ELF == elf.EM_386:
		// The segments of user code and of its stack.
		const cs, ss, userCS, userDS = 64, 76, 0x23, 0x2b // arch/x86/include/asm/segment.h
		return at(cs)&0xffff == userCS && at(ss)&0xffff == userDS
	}
	return false
}
