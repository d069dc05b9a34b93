package sampler

import (
	"os"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

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
	a.here(outside)
	a.add(asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32), asm.JEq.Imm(asm.R0, 0, end),
		asm.Or.Imm(asm.R0, outsideBit))
	a.here(end)
}
