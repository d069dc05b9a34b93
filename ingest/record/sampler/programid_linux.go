package sampler

import (
	"github.com/cilium/ebpf/asm"

	"symbolize/ingest/format/bundle"
)

// identify writes the ProgramID of the process into the key, and half of it into the record, and
// the time of its mappings. It uses R0 to R5 and R9. Where the kernel's layout is not known the
// former stay 0.
//
//	id = hash(start_boottime / tickNanos, mm->end_code, mm->start_brk, mm->start_stack)
func (a *assembler) identify() {
	if a.process == nil {
		a.timeMappings()
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
	a.timeMappings()
}

// timeMappings writes the time into the key, or where changes of mappings are counted the one at
// which a stack was met first since the last change, and no longer ago than bundle.UserTimeSpan:
// equal stacks are one count in that time as long as the mappings stay. The count is odd while they
// are being changed.
//
//	if ((t = since[process]) && bpf_ktime_get_ns() - *t < span) { key->mapped = *t; goto end; }
//	key->mapped = bpf_ktime_get_ns();
//	if (task->mm->mm_lock_seq == process.changes && !(process.changes & 1))
//		since[process] = key->mapped;
func (a *assembler) timeMappings() {
	end, unseen := a.label("timed"), a.label("changed")
	if a.process.knows() {
		a.lookup(a.maps.since, regScratch, scratchProcess)
		a.add(asm.JEq.Imm(asm.R0, 0, unseen), asm.LoadMem(asm.R9, asm.R0, 0, asm.DWord),
			asm.FnKtimeGetNs.Call(), asm.Sub.Reg(asm.R0, asm.R9),
			asm.JGE.Imm(asm.R0, bundle.UserTimeSpan, unseen),
			asm.StoreMem(regScratch, scratchKey+keyMapped, asm.R9, asm.DWord), asm.Ja.Label(end))
		a.here(unseen)
	}
	a.add(asm.FnKtimeGetNs.Call(), asm.StoreMem(regScratch, scratchKey+keyMapped, asm.R0, asm.DWord))
	if !a.process.knows() {
		return
	}
	const before, after = scratchProcess + processChanges, scratchLayout // which is not needed any more
	a.add(asm.LoadMem(asm.R9, regScratch, scratchProcess+processMM, asm.DWord),
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(regScratch, after, asm.R1, asm.DWord))
	a.readKernel(after, a.process.changes, 4)
	a.add(asm.LoadMem(asm.R1, regScratch, before, asm.DWord),
		asm.LoadMem(asm.R2, regScratch, after, asm.DWord), asm.JNE.Reg(asm.R1, asm.R2, end),
		asm.JSet.Imm(asm.R1, 1, end))
	a.update(a.maps.since, scratchProcess, regScratch, scratchKey+keyMapped, updateAny)
	a.here(end)
}
