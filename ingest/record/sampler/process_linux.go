package sampler

import (
	"os"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/sys"
)

// Looking up build IDs costs the kernel three times as much as walking the stack, and an interrupt
// to release the lock of the mappings. For a stack that was seen before the lookup is skipped: the
// map known holds the hash of a user stack by the hash of its bare addresses, the identity of the
// process and the state of its mappings.

// processLayout holds offsets of kernel fields that, with its addresses, identify a known stack:
// when the process started and how often it called exec (with the process ID, these identify the
// program), its struct mm_struct, and the change count of the latter (32 bits, since Linux 6.4).
type processLayout struct {
	leader, start, execs, mm int32
	changes                  int32 // noChanges: the kernel has no change count
	layout                   int32 // offset of layoutSpan words in struct mm_struct
}

const noChanges = -1

// countsChanges reports whether known stacks can be recognized, which needs the change count.
func (p *processLayout) countsChanges() bool { return p != nil && p.changes != noChanges }

// readProcessLayout finds the layout in the BTF of the running kernel; nil without BTF.
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

// lookupKnown writes the hash of a known user stack into the key and jumps to end. If there is no
// user stack it jumps to failed with the errno in R8. Otherwise it stores at scratchKnown the hash
// that will identify the stack.
//
//	n = bpf_get_stack(ctx, frames, sizeof(frames), BPF_F_USER_STACK);
//	if (n < 0) goto failed;
//	known = hash(frames, n, process);
//	if ((v = known_stacks[known])) { key->user = *v; goto end; }
func (a *assembler) lookupKnown(end, failed string) {
	const limit = Depth * kernelFrame
	unknown := a.label("unknown")
	a.add(asm.Mov.Reg(asm.R1, regContext))
	a.add(pointer(asm.R2, regScratch, scratchFrames)...)
	a.add(asm.Mov.Imm(asm.R3, limit), asm.Mov.Imm(asm.R4, userStackOnly), asm.FnGetStack.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.JSLT.Imm(asm.R8, 0, failed), asm.JSGT.Imm(asm.R8, limit, failed))
	a.readProcess()
	a.hashFrames(limit, false)
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
	a.mark(unknown)
}

// storeHash stores the hash in R3 and R4 in scratch memory.
func (a *assembler) storeHash(at int16) {
	a.add(asm.StoreMem(regScratch, at, asm.R3, asm.DWord),
		asm.StoreMem(regScratch, at+8, asm.R4, asm.DWord))
}

// Offsets from scratchProcess: address of struct mm_struct, and its change count.
const (
	processMM      = 16
	processChanges = 24
)

// readProcess writes the identity of the process and its mappings to scratchProcess:
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

// readKernel copies size bytes from R9+off to scratch memory, zeros on failure.
func (a *assembler) readKernel(to, off, size int32) {
	a.add(pointer(asm.R1, regScratch, to)...)
	a.add(asm.Mov.Imm(asm.R2, size))
	a.add(pointer(asm.R3, asm.R9, off)...)
	a.add(asm.FnProbeReadKernel.Call())
}

// identify writes the ProgramID of the process and the time of its mappings into the key, and half
// of the ProgramID into the record. The ProgramID stays 0 if the kernel's layout is unknown. It
// clobbers R0 to R5 and R9.
//
//	id = hash(start_boottime / tickNanos, mm->end_code, mm->start_brk, mm->start_stack)
func (a *assembler) identify() {
	if a.process == nil {
		a.timeMappings()
		return
	}
	if !a.process.countsChanges() { // otherwise lookupKnown has read it
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

// timeMappings writes the time into the key. If changes of mappings are counted, it writes the time
// of the first stack since the last change instead, at most bundle.UserTimeSpan ago: equal stacks
// share one count while the mappings stay the same. The change count is odd during a change.
//
//	if ((t = since[process]) && bpf_ktime_get_ns() - *t < span) { key->mapped = *t; goto end; }
//	key->mapped = bpf_ktime_get_ns();
//	if (task->mm->mm_lock_seq == process.changes && !(process.changes & 1))
//		since[process] = key->mapped;
//		since[process] = key->mapped;
func (a *assembler) timeMappings() {
	end, unseen := a.label("timed"), a.label("changed")
	if a.process.countsChanges() {
		a.lookup(a.maps.since, regScratch, scratchProcess)
		a.add(asm.JEq.Imm(asm.R0, 0, unseen), asm.LoadMem(asm.R9, asm.R0, 0, asm.DWord),
			asm.FnKtimeGetNs.Call(), asm.Sub.Reg(asm.R0, asm.R9),
			asm.JGE.Imm(asm.R0, bundle.UserTimeSpan, unseen),
			asm.StoreMem(regScratch, scratchKey+keyMapped, asm.R9, asm.DWord), asm.Ja.Label(end))
		a.mark(unseen)
	}
	a.add(asm.FnKtimeGetNs.Call(), asm.StoreMem(regScratch, scratchKey+keyMapped, asm.R0, asm.DWord))
	if !a.process.countsChanges() {
		return
	}
	const before, after = scratchProcess + processChanges, scratchLayout // no longer needed
	a.add(asm.LoadMem(asm.R9, regScratch, scratchProcess+processMM, asm.DWord),
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(regScratch, after, asm.R1, asm.DWord))
	a.readKernel(after, a.process.changes, 4)
	a.add(asm.LoadMem(asm.R1, regScratch, before, asm.DWord),
		asm.LoadMem(asm.R2, regScratch, after, asm.DWord), asm.JNE.Reg(asm.R1, asm.R2, end),
		asm.JSet.Imm(asm.R1, 1, end))
	a.update(a.maps.since, scratchProcess, regScratch, scratchKey+keyMapped, updateAny)
	a.mark(end)
}

// initialPIDs is the inode of the initial PID namespace, which BPF programs see (PROC_PID_INIT_INO
// in include/linux/proc_ns.h).
const initialPIDs = 0xEFFFFFFC

// namespace is a PID namespace, as the arguments of bpf_get_ns_current_pid_tgid.
type namespace struct{ device, inode uint64 }

// ownNamespace returns the PID namespace of this process; nil if it is the initial one or unknown.
func ownNamespace() *namespace {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil || st.Ino == initialPIDs {
		return nil
	}
	const minorBits = 20 // in the kernel's dev_t
	dev := uint64(unix.Major(st.Dev))<<minorBits | uint64(unix.Minor(st.Dev))
	return &namespace{dev, st.Ino}
}

// InitialNamespace reports whether this process is in the initial PID namespace, which a process in
// a container is not. It returns true if that is unknown.
func InitialNamespace() bool { return ownNamespace() == nil }

// IsHostProc reports whether a directory is the /proc of the initial PID namespace: the host's
// /proc mounted into a container. It fails if the directory is not a /proc or cannot be read.
func IsHostProc(dir string) (bool, error) {
	var st unix.Stat_t
	path := dir + "/1/ns/pid"
	if err := unix.Stat(path, &st); err != nil {
		return false, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino == initialPIDs, nil
}

// currentProcess loads the ID of the current process in the namespace into R0; for a process
// outside the namespace, its initial ID with outsideBit. The idle task is always 0.
//
//	if (bpf_get_ns_current_pid_tgid(device, inode, &ids, sizeof(ids)) == 0) return ids.tgid;
//	return (tgid = bpf_get_current_pid_tgid() >> 32) ? tgid | outsideBit : 0;
func (a *assembler) currentProcess() {
	if a.ns == nil {
		a.add(asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32))
		return
	}
	const sizeofIDs, processAt = 8, 4 // struct bpf_pidns_info: u32 pid, u32 tgid
	outside, end := a.label("outside"), a.label("process")
	a.add(asm.LoadImm(asm.R1, int64(a.ns.device), asm.DWord),
		asm.LoadImm(asm.R2, int64(a.ns.inode), asm.DWord))
	a.add(pointer(asm.R3, asm.R10, stackValue)...)
	a.add(asm.Mov.Imm(asm.R4, sizeofIDs), asm.FnGetNsCurrentPidTgid.Call(),
		asm.JNE.Imm(asm.R0, 0, outside),
		asm.LoadMem(asm.R0, asm.R10, stackValue+processAt, asm.Word), asm.Ja.Label(end))
	a.mark(outside)
	a.add(asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32), asm.JEq.Imm(asm.R0, 0, end),
		asm.Or.Imm(asm.R0, outsideBit))
	a.mark(end)
}
