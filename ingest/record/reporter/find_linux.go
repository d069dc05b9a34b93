package reporter

import (
	"fmt"

	"github.com/cilium/ebpf/asm"

	"symbolize/ingest/record/sys"
)

// How the program that copies others finds the one that was loaded: its address goes
// into R6.

// atEntry finds the program in the arguments of perf_event_bpf_event: the program, the event (1: it
// was loaded), flags.
func atEntry() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R6, 8, asm.DWord),
		asm.JNE.Imm(asm.R2, 1, "done"),
		asm.LoadMem(asm.R6, asm.R6, 0, asm.DWord),
	}
}

// sysExit locates in struct pt_regs the number of a system call and its first argument, on machines
// where those are still there at its exit.
var sysExit = map[string]struct {
	number, first string
	size          int32 // of number
	call          int32 // number of bpf(2)
}{
	"amd64": {"orig_ax", "di", 8, 321},
	"arm64": {"syscallno", "orig_x0", 4, 280},
}

// maxFD bounds the descriptors that are looked up (sysctl fs.nr_open).
const maxFD = 1 << 30

// atExit finds the program at the exit of every system call, and skips all but the loads: the
// result is a descriptor, by which the task's table has the file, which is that of a BPF program if
// it is closed by the function at release.
func atExit(l *sys.BTFLayout, arch string, release uint64) asm.Instructions {
	const cmdProgLoad = 5
	x, ok := sysExit[arch]
	if !ok {
		l.Err = fmt.Errorf("not known on %s where a system call has its arguments", arch)
	}
	tmp := func(base asm.Register, off, size int32) asm.Instructions {
		out := append(asm.Instructions{storeWord(asm.R10, stackCtx+ctxTmp, 0)},
			readTo(asm.R10, stackCtx+ctxTmp, base, off, size)...)
		return append(out, asm.LoadMem(asm.R1, asm.R10, stackCtx+ctxTmp, asm.DWord))
	}
	out := asm.Instructions{
		asm.LoadMem(asm.R7, asm.R6, 8, asm.DWord), // result
		asm.JSLT.Imm(asm.R7, 0, "done"),
		asm.JGT.Imm(asm.R7, maxFD, "done"),
		asm.LoadMem(asm.R9, asm.R6, 0, asm.DWord), // registers
	}
	out = append(out, tmp(asm.R9, l.At("pt_regs", x.number), x.size)...)
	out = append(out, asm.JNE.Imm(asm.R1, x.call, "done"))
	out = append(out, tmp(asm.R9, l.At("pt_regs", x.first), 4)...)
	out = append(out, asm.JNE.Imm(asm.R1, cmdProgLoad, "done"))
	out = append(out, asm.FnGetCurrentTask.Call(), asm.Mov.Reg(asm.R9, asm.R0))
	for _, step := range [][2]string{{"task_struct", "files"}, {"files_struct", "fdt"},
		{"fdtable", "fd"}} {
		out = append(out, tmp(asm.R9, l.At(step[0], step[1]), 8)...)
		out = append(out, asm.Mov.Reg(asm.R9, asm.R1))
	}
	out = append(out, asm.LSh.Imm(asm.R7, 3), asm.Add.Reg(asm.R9, asm.R7))
	out = append(out, tmp(asm.R9, 0, 8)...)
	out = append(out, asm.Mov.Reg(asm.R9, asm.R1))
	out = append(out, tmp(asm.R9, l.At("file", "f_op"), 8)...)
	out = append(out, asm.Mov.Reg(asm.R8, asm.R1))
	out = append(out, tmp(asm.R8, l.At("file_operations", "release"), 8)...)
	out = append(out, asm.LoadImm(asm.R2, int64(release), asm.DWord),
		asm.JNE.Reg(asm.R1, asm.R2, "done"))
	out = append(out, tmp(asm.R9, l.At("file", "private_data"), 8)...)
	return append(out, asm.Mov.Reg(asm.R6, asm.R1))
}
