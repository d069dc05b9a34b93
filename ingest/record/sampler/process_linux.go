package sampler

import (
	"os"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
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
func (p *processLayout) countsChanges() bool { return p != nil && p.changes != noChanges }

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
	if !a.process.countsChanges() { // else known has read it
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
	const before, after = scratchProcess + processChanges, scratchLayout // which is not needed any more
	a.add(asm.LoadMem(asm.R9, regScratch, scratchProcess+processMM, asm.DWord),
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(regScratch, after, asm.R1, asm.DWord))
	a.readKernel(after, a.process.changes, 4)
	a.add(asm.LoadMem(asm.R1, regScratch, before, asm.DWord),
		asm.LoadMem(asm.R2, regScratch, after, asm.DWord), asm.JNE.Reg(asm.R1, asm.R2, end),
		asm.JSet.Imm(asm.R1, 1, end))
	a.update(a.maps.since, scratchProcess, regScratch, scratchKey+keyMapped, updateAny)
	a.mark(end)
}

// initialPIDs is the inode of the namespace of processes whose numbers the kernel's programs
// see (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const initialPIDs = 0xEFFFFFFC

// namespace is a namespace of processes, as bpf_get_ns_current_pid_tgid wants it.
type namespace struct{ device, inode uint64 }

// ownNamespace returns the namespace of this process; nil where it is the initial one, or
// is unknown.
func ownNamespace() *namespace {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil || st.Ino == initialPIDs {
		return nil
	}
	const minorBits = 20 // of dev_t inside the kernel
	dev := uint64(unix.Major(st.Dev))<<minorBits | uint64(unix.Minor(st.Dev))
	return &namespace{dev, st.Ino}
}

// InitialNamespace reports whether processes have here the numbers that they have in the
// initial namespace: in a container they have not. If that is unknown: true.
func InitialNamespace() bool { return ownNamespace() == nil }

// IsHostProc reports whether a directory is the /proc of the initial namespace of processes:
// that of a host, as it is mounted into a container. It is an error if it is no /proc, or
// may not be read.
func IsHostProc(dir string) (bool, error) {
	var st unix.Stat_t
	path := dir + "/1/ns/pid"
	if err := unix.Stat(path, &st); err != nil {
		return false, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino == initialPIDs, nil
}

// currentProcess puts the number of the current process into R0, that of the namespace, or
// a number with outsideBit where it has none there. The idle task is 0 in all.
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
