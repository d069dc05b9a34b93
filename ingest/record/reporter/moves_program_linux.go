package reporter

import (
	"fmt"
	"math/bits"
	"os"

	"github.com/cilium/ebpf/asm"

	"symbolize/ingest/record/sys"
)

// What the program sends: where the mapping was, where it is, and its length, u64 each.
const (
	outFrom   = 0
	outStart  = 8
	outLength = 16
	outSize   = 24
)

// The program's stack, from its top: what it sends, and a word that it reads into.
const (
	stackOut  = -outSize
	stackWord = stackOut - 8
)

const currentCPU = 0xffffffff // BPF_F_CURRENT_CPU

// program is code that fills what is to be sent, or goes to "done", with the end that sends it.
func program(code asm.Instructions, events int) asm.Instructions {
	out := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)} // context
	out = append(out, code...)
	return append(out,
		asm.Mov.Reg(asm.R1, asm.R6), asm.LoadMapPtr(asm.R2, events),
		asm.LoadImm(asm.R3, currentCPU, asm.DWord),
		asm.Mov.Reg(asm.R4, asm.R10), asm.Add.Imm(asm.R4, stackOut), asm.Mov.Imm(asm.R5, outSize),
		asm.FnPerfEventOutput.Call(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("done"), asm.Return())
}

// moveHook is where the kernel copies a mapping to another address, which mremap alone does: its
// arguments are the address of a pointer to the mapping (struct vm_area_struct), the new address, the
// length, and the offset in the mapped file in pages.
const moveHook = "copy_vma"

const vmExec = 4 // VM_EXEC

// copyArgs are the members of struct pt_regs that have the first arguments of a function.
var copyArgs = map[string][4]string{
	"amd64": {"di", "si", "dx", "cx"},
}

// armRegs is the member of struct pt_regs with all registers on arm64.
const armRegs = "regs"

// register returns the offset in struct pt_regs of the n-th argument of a function.
func register(l *sys.BTFLayout, arch string, n int) int16 {
	if arch == "arm64" {
		return int16(l.At("pt_regs", armRegs)) + int16(8*n)
	}
	names, ok := copyArgs[arch]
	if !ok {
		l.Err = fmt.Errorf("not known on %s where a function has its arguments", arch)
	}
	return int16(l.At("pt_regs", names[n]))
}

// atCopy sends the copies of code:
//
//	if (!(vma->vm_flags & VM_EXEC)) goto done;
//	from = vma->vm_start + ((pgoff - vma->vm_pgoff) << PAGE_SHIFT);
func atCopy(l *sys.BTFLayout, arch string) asm.Instructions {
	argument := func(n int) asm.Instruction {
		return asm.LoadMem(asm.R1, asm.R6, register(l, arch, n), asm.DWord)
	}
	send := func(at int16) asm.Instruction {
		return asm.StoreMem(asm.R10, stackOut+at, asm.R1, asm.DWord)
	}
	out := asm.Instructions{argument(1), send(outStart), argument(2), send(outLength),
		argument(0), asm.Mov.Reg(asm.R9, asm.R1)}
	out = append(out, read(asm.R9, 0, 8)...)
	out = append(out, asm.Mov.Reg(asm.R9, asm.R1))
	out = append(out, read(asm.R9, l.At("vm_area_struct", "vm_flags"), 8)...)
	out = append(out, asm.And.Imm(asm.R1, vmExec), asm.JEq.Imm(asm.R1, 0, "done"))
	out = append(out, read(asm.R9, l.At("vm_area_struct", "vm_pgoff"), 8)...)
	out = append(out, asm.Mov.Reg(asm.R8, asm.R1), argument(3), asm.Sub.Reg(asm.R1, asm.R8),
		asm.LSh.Imm(asm.R1, pageShift()), asm.Mov.Reg(asm.R8, asm.R1))
	out = append(out, read(asm.R9, l.At("vm_area_struct", "vm_start"), 8)...)
	return append(out, asm.Add.Reg(asm.R1, asm.R8), send(outFrom))
}

func pageShift() int32 { return int32(bits.TrailingZeros(uint(os.Getpagesize()))) }

// moveSysExit locates in struct pt_regs the number of a system call and its first and third argument,
// which is the new length, on machines where those are still there at its exit, with the numbers of
// mremap: of programs of 64 and of 32 bits, which number another call without addresses for the
// others.
var moveSysExit = map[string]struct {
	number, first string
	size          int32 // of number
	calls         [2]int32
}{
	"amd64": {"orig_ax", "di", 8, [2]int32{25, 163}},
	"arm64": {"syscallno", "orig_x0", 4, [2]int32{216, 163}},
}

// moveAtExit sends the results of mremap.
func moveAtExit(l *sys.BTFLayout, arch string) asm.Instructions {
	x, ok := moveSysExit[arch]
	if !ok {
		l.Err = fmt.Errorf("not known on %s where a system call has its arguments", arch)
	}
	const least = 4096 // of an address; else it is the result of another call, or an error
	out := asm.Instructions{
		asm.LoadMem(asm.R7, asm.R6, 8, asm.DWord), // result
		asm.JSLT.Imm(asm.R7, least, "done"),
		asm.LoadMem(asm.R9, asm.R6, 0, asm.DWord), // registers
	}
	out = append(out, read(asm.R9, l.At("pt_regs", x.number), x.size)...)
	out = append(out, asm.JEq.Imm(asm.R1, x.calls[0], "mremap"), asm.JNE.Imm(asm.R1, x.calls[1], "done"))
	first := read(asm.R9, l.At("pt_regs", x.first), 8)
	first[0] = first[0].WithSymbol("mremap")
	out = append(out, first...)
	out = append(out, asm.StoreMem(asm.R10, stackOut+outFrom, asm.R1, asm.DWord))
	out = append(out, read(asm.R9, int32(register(l, arch, 2)), 8)...)
	return append(out, asm.StoreMem(asm.R10, stackOut+outLength, asm.R1, asm.DWord),
		asm.StoreMem(asm.R10, stackOut+outStart, asm.R7, asm.DWord))
}

// read reads size bytes of the kernel's memory at base+off into R1.
func read(base asm.Register, off, size int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R10, stackWord, asm.R1, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R10), asm.Add.Imm(asm.R1, stackWord),
		asm.Mov.Imm(asm.R2, size),
		asm.Mov.Reg(asm.R3, base), asm.Add.Imm(asm.R3, off),
		asm.FnProbeReadKernel.Call(),
		asm.LoadMem(asm.R1, asm.R10, stackWord, asm.DWord),
	}
}
