package sampler

import "github.com/cilium/ebpf/asm"

// identify writes the ProgramID of the process into the key, and half of it into the record. It
// uses R0 to R5 and R9. Where the kernel's layout is not known both stay 0.
//
//	id = hash(start_boottime / tickNanos, mm->end_code, mm->start_brk, mm->start_stack)
func (a *assembler) identify() {
	if a.process == nil {
		return
	}
	if !a.process.knows() { // else known has read it
		a.readProcess()
	}
	a.add(asm.LoadMem(asm.R9, regScratch, scratchProcess+processMM, asm.DWord))
	a.readKernel(scratchLayout, a.process.layout, 8*layoutSpan)
	a.startHash()
	a.add(asm.LoadMem(asm.R2, regScratch, scratchProcess, asm.DWord),
		asm.Div.Imm(asm.R2, tickNanos))
	a.mix()
	for _, word := range []int16{layoutEndCode, layoutStartBrk, layoutStartStack} {
		a.add(asm.LoadMem(asm.R2, regScratch, scratchLayout+8*word, asm.DWord))
		a.mix()
	}
	a.add(asm.Mov.Imm(asm.R2, 8*4))
	a.mix()
	a.add(asm.StoreMem(regScratch, scratchKey+keyProgram, asm.R3, asm.DWord),
		asm.StoreMem(regScratch, scratchRecord+recordProgram, asm.R3, asm.Word))
}
