package reporter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/machine"
	"symbolize/ingest/record/sys"
)

// Move is a mapping moved by a process.
type Move struct {
	PID        int32
	Time       uint64 // clock of the event
	From       uint64 // old start
	Start, End uint64 // new range
}

// MoveReporter is the BPF program and its events.
type MoveReporter struct {
	events *ebpf.Map // by CPU
	prog   *ebpf.Program
	link   link.Link
	fds    []int
}

const progName = "symbolize_moves" // in bpftool's list

// AttachMoves loads and attaches the program, which reports nothing before Open. log receives the
// reason if it cannot use the cheaper attachment.
func AttachMoves(log func(format string, args ...any)) (r *MoveReporter, err error) {
	r = &MoveReporter{}
	r.events, err = ebpf.NewMap(&ebpf.MapSpec{Name: "moves", Type: ebpf.PerfEventArray})
	if err == nil {
		if err = r.attach(moveHook, atCopy); err != nil {
			log("moves of mappings are not reported by %s: %v", moveHook, err)
			err = r.attach("", moveAtExit)
		}
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Open makes the program report moves in the rings. clocked sets the rings' clock in an event.
func (r *MoveReporter) Open(rings []*sys.Ring,
	clocked func(*unix.PerfEventAttr) *unix.PerfEventAttr) error {
	for _, ring := range rings {
		fd, _, err := sys.OpenEvent(clocked(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE,
			Config:      unix.PERF_COUNT_SW_BPF_OUTPUT,
			Sample_type: uint64(sys.SampleType | perfdata.SampleRaw), Sample: 1,
			Bits: sys.AttrBits(perfdata.FlagSampleIDAll)}), -1, ring.CPU)
		if err == nil {
			err = ring.Redirect(fd)
		}
		if err != nil {
			return err
		}
		r.fds = append(r.fds, fd)
		if err := r.events.Put(uint32(ring.CPU), uint32(fd)); err != nil {
			return err
		}
	}
	return nil
}

// attach loads and attaches a program: at the entry of a kernel function, or at the exit of system
// calls if hook is "".
func (r *MoveReporter) attach(hook string, code func(*sys.BTFLayout, string) asm.Instructions) error {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return err
	}
	layout := sys.NewLayout(spec)
	ins := program(code(layout, runtime.GOARCH), r.events.FD())
	if layout.Err != nil {
		return layout.Err
	}
	kind := ebpf.RawTracepoint
	if hook != "" {
		kind = ebpf.Kprobe
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: progName, Type: kind, Instructions: ins,
		License: "GPL"})
	if err != nil {
		return err
	}
	var l link.Link
	if hook != "" {
		l, err = link.Kprobe(hook, p, nil)
	} else {
		l, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_exit", Program: p})
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	r.prog, r.link = p, l
	return nil
}

// Close detaches the program. It can be called on nil.
func (r *MoveReporter) Close() {
	if r == nil {
		return
	}
	if r.link != nil {
		r.link.Close()
	}
	if r.prog != nil {
		r.prog.Close()
	}
	if r.events != nil {
		r.events.Close()
	}
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	r.fds = nil
}

// ParseMove decodes a sample: header, u64 id, u32 pid, u32 tid, u64 time, u32 cpu, u32 res, u32
// size of the rest, and the program's data.
func ParseMove(rec []byte) (m Move, err error) {
	const dataAt = sys.RecordHeader + 8 + 8 + 8 + 8 + 4
	order := binary.NativeEndian
	if len(rec) < dataAt+outSize {
		return m, fmt.Errorf("a sample of a moved mapping has %d bytes", len(rec))
	}
	m.PID = int32(order.Uint32(rec[sys.RecordHeader+8:]))
	m.Time = order.Uint64(rec[sys.RecordHeader+16:])
	data := rec[dataAt:]
	m.From, m.Start = order.Uint64(data[outFrom:]), order.Uint64(data[outStart:])
	m.End = m.Start + order.Uint64(data[outLength:])
	if m.End < m.Start {
		m.End = ^uint64(0)
	}
	return m, nil
}

// The program's data: old start, new start and length of the mapping, u64 each.
const (
	outFrom   = 0
	outStart  = 8
	outLength = 16
	outSize   = 24
)

// The program's stack, from its top: the data, and a word to read into.
const (
	stackOut  = -outSize
	stackWord = stackOut - 8
)

const currentCPU = 0xffffffff // BPF_F_CURRENT_CPU

// program completes code that fills in the data, or jumps to "done", with the end that sends it.
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

// moveHook is the function that copies a mapping to another address; only mremap calls it. Its
// arguments are the address of a pointer to the mapping (struct vm_area_struct), the new address,
// the length, and the offset in the mapped file in pages.
const moveHook = "copy_vma"

const vmExec = 4 // VM_EXEC

// register returns the offset in struct pt_regs of a function's n-th argument.
func register(l *sys.BTFLayout, s *machine.System, n int) int16 {
	switch list := s.Arguments; {
	case len(list) == 1:
		return int16(l.At("pt_regs", list[0])) + int16(8*n)
	case n < len(list):
		return int16(l.At("pt_regs", list[n]))
	}
	l.Err = errors.New("unknown registers of function arguments on this machine")
	return 0
}

// atCopy sends the copies of code:
//
//	if (!(vma->vm_flags & VM_EXEC)) goto done;
//	from = vma->vm_start + ((pgoff - vma->vm_pgoff) << PAGE_SHIFT);
func atCopy(l *sys.BTFLayout, arch string) asm.Instructions {
	s := systemOf(l, arch)
	argument := func(n int) asm.Instruction {
		return asm.LoadMem(asm.R1, asm.R6, register(l, s, n), asm.DWord)
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

// systemOf returns how system calls are found on a machine, named as GOARCH. The error is in l.
func systemOf(l *sys.BTFLayout, arch string) *machine.System {
	if a, _ := machine.Named(arch); a != nil && a.System.Number != "" {
		return &a.System
	}
	l.Err = fmt.Errorf("unknown registers of system call arguments on %s", arch)
	return &machine.System{}
}

// moveAtExit sends the results of mremap. The other kind of program uses its numbers for calls that
// return no addresses.
func moveAtExit(l *sys.BTFLayout, arch string) asm.Instructions {
	x := systemOf(l, arch)
	const least = 4096 // smallest address; less is the result of another call, or an error
	out := asm.Instructions{
		asm.LoadMem(asm.R7, asm.R6, 8, asm.DWord), // result
		asm.JSLT.Imm(asm.R7, least, "done"),
		asm.LoadMem(asm.R9, asm.R6, 0, asm.DWord), // registers
	}
	out = append(out, read(asm.R9, l.At("pt_regs", x.Number), x.NumberSize)...)
	out = append(out, asm.JEq.Imm(asm.R1, x.Mremap[0], "mremap"), asm.JNE.Imm(asm.R1, x.Mremap[1], "done"))
	first := read(asm.R9, l.At("pt_regs", x.First), 8)
	first[0] = first[0].WithSymbol("mremap")
	out = append(out, first...)
	out = append(out, asm.StoreMem(asm.R10, stackOut+outFrom, asm.R1, asm.DWord))
	out = append(out, read(asm.R9, int32(register(l, x, 2)), 8)...)
	return append(out, asm.StoreMem(asm.R10, stackOut+outLength, asm.R1, asm.DWord),
		asm.StoreMem(asm.R10, stackOut+outStart, asm.R7, asm.DWord))
}

// read reads size bytes of kernel memory at base+off into R1.
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
