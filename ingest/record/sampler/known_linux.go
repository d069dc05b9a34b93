package sampler

import (
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"symbolize/ingest/record/sys"
)

// To look up build IDs takes the kernel three times as long as to walk the stack, and an
// interrupt besides to give back the lock of the mappings. A stack that was met before need
// not be looked up again: the map known has the hash of a user's stack by that of its bare
// addresses and of the identity of the process and the state of its mappings.

// processLayout locates the kernel's fields that identify a known stack besides its addresses:
// when the process began and how often it ran exec, which with its number identify the
// program, its struct mm_struct, and the count of changes in that (since Linux 6.4; a
// word of 32 bits).
type processLayout struct {
	leader, start, execs, mm int32
	changes                  int32 // noChanges where there is no such count
	layout                   int32 // of layoutSpan words in struct mm_struct
}

const noChanges = -1

// knows reports whether stacks can be known again: not without the count of changes.
func (p *processLayout) knows() bool { return p != nil && p.changes != noChanges }

// readProcessLayout finds the layout of the running kernel by its BTF; nil where there is
// none.
func readProcessLayout() *processLayout {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return nil
	}
	l := sys.NewLayout(spec)
	p := &processLayout{leader: l.At("task_struct", "group_leader"),
		start: l.At("task_struct", "start_boottime"), execs: l.At("task_struct", "self_exec_id"),
		mm: l.At("task_struct", "mm"), layout: l.At("mm_struct", "start_code")}
	for name, word := range layoutWords {
		if l.At("mm_struct", name) != p.layout+8*word {
			return nil
		}
	}
	if l.Err != nil {
		return nil
	}
	if p.changes = l.At("mm_struct", "mm_lock_seq"); l.Err != nil {
		p.changes = noChanges
	}
	return p
}

// known puts the hash of a user's stack into the key and goes to end, if the stack is known;
// to failed with the errno in R8 if there is none. Else it leaves at scratchKnown the hash
// by which the stack is to be known.
//
//	n = bpf_get_stack(ctx, frames, sizeof(frames), BPF_F_USER_STACK);
//	if (n < 0) goto failed;
//	known = hash(frames, n, process);
//	if ((v = known_stacks[known])) { key->user = *v; goto end; }
func (a *assembler) known(end, failed string) {
	const limit = Depth * kernelFrame
	unknown := a.label("unknown")
	a.add(asm.Mov.Reg(asm.R1, regContext))
	a.add(pointer(asm.R2, regScratch, scratchFrames)...)
	a.add(asm.Mov.Imm(asm.R3, limit), asm.Mov.Imm(asm.R4, userStackOnly), asm.FnGetStack.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.JSLT.Imm(asm.R8, 0, failed), asm.JSGT.Imm(asm.R8, limit, failed))
	a.readProcess()
	a.hash(limit, false)
	for at := int16(scratchProcess); at < scratchLayout; at += 8 {
		a.add(asm.LoadMem(asm.R2, regScratch, at, asm.DWord))
		a.mix()
	}
	a.storeHash(scratchKnown)
	a.lookup(a.maps.known, regScratch, scratchKnown)
	a.add(asm.JEq.Imm(asm.R0, 0, unknown),
		asm.LoadMem(asm.R3, asm.R0, 0, asm.DWord), asm.LoadMem(asm.R4, asm.R0, 8, asm.DWord))
	a.storeHash(scratchKey + keyUser)
	a.bump(statKnown)
	a.add(asm.Ja.Label(end))
	a.here(unknown)
}

// storeHash stores the hash in R3 and R4 in scratch memory.
func (a *assembler) storeHash(at int16) {
	a.add(asm.StoreMem(regScratch, at, asm.R3, asm.DWord),
		asm.StoreMem(regScratch, at+8, asm.R4, asm.DWord))
}

// Where behind scratchProcess the address of the struct mm_struct is, and the count of its changes.
const (
	processMM      = 16
	processChanges = 24
)

// readProcess writes to scratchProcess the identity of the process and its mappings:
//
//	{leader->start_boottime, task->self_exec_id, task->mm, task->mm->mm_lock_seq}
func (a *assembler) readProcess() {
	const start, execs, mm, changes = scratchProcess, scratchProcess + 8,
		scratchProcess + processMM, scratchProcess + processChanges
	a.add(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(regScratch, changes, asm.R1, asm.DWord),
		asm.FnGetCurrentTask.Call(),
		asm.Mov.Reg(asm.R9, asm.R0))
	a.readKernel(execs, a.process.execs, 8)
	a.readKernel(mm, a.process.mm, 8)
	a.readKernel(start, a.process.leader, 8)
	a.add(asm.LoadMem(asm.R9, regScratch, start, asm.DWord))
	a.readKernel(start, a.process.start, 8)
	a.add(asm.LoadMem(asm.R9, regScratch, mm, asm.DWord))
	if a.process.changes != noChanges {
		a.readKernel(changes, a.process.changes, 4)
	}
}

// readKernel copies size bytes at R9+off to scratch memory: zeros where nothing is.
func (a *assembler) readKernel(to, off, size int32) {
	a.add(pointer(asm.R1, regScratch, to)...)
	a.add(asm.Mov.Imm(asm.R2, size))
	a.add(pointer(asm.R3, asm.R9, off)...)
	a.add(asm.FnProbeReadKernel.Call())
}
