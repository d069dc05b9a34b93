package sampler

import (
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/cilium/ebpf/asm"

	"symbolize/ingest/machine"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/pair"
)

// switchLayout holds the offsets, in a record of sched:sched_switch, of the next thread and of the
// state of the previous one; and in a record of sched:sched_waking, of the thread.
type switchLayout struct{ nextPID, prevState, woken int16 }

// threadEnds are the states EXIT_DEAD and EXIT_ZOMBIE. Such a thread never runs again: its entry
// would stay in the map forever.
const threadEnds = 0x10 | 0x20

// offThread is the entry of a thread off CPU: when it stopped, in ns of CLOCK_MONOTONIC, and the
// key of its count.
type offThread struct {
	Time uint64
	Key  countKey
}

// offCPU assembles the program of sched:sched_switch, which runs in the thread that stops:
//
//	t = threads[next];
//	if (t) { counts[t->key] += now − t->time; delete threads[next]; }
//	if (prev_state & (EXIT_DEAD | EXIT_ZOMBIE) || !selected()) return 0;
//	emit(kernel); emit(user);
//	if (this in threads) stats[no_return]++;
//	threads[this] = {now, key};
func (a *assembler) offCPU(o *Options, layout switchLayout) {
	a.result = keepSample
	stops, none, full := a.label("stops"), a.label("no_scratch"), a.label("full")
	a.add(asm.Mov.Reg(regContext, asm.R1),
		asm.LoadMem(asm.R1, regContext, layout.nextPID, asm.Word),
		asm.StoreMem(asm.R10, stackWord, asm.R1, asm.Word))
	a.lookup(a.maps.threads, asm.R10, stackWord)
	a.add(asm.JEq.Imm(asm.R0, 0, stops), asm.Mov.Reg(asm.R8, asm.R0),
		asm.FnKtimeGetNs.Call(), asm.Mov.Reg(asm.R9, asm.R0),
		asm.LoadMem(asm.R1, asm.R8, scratchTime, asm.DWord), asm.Sub.Reg(asm.R9, asm.R1))
	a.bump(statSamples)
	a.count(asm.R8, scratchKey)
	a.add(pointer(asm.R2, asm.R10, stackWord)...)
	a.add(a.mapPointer(asm.R1, a.maps.threads), asm.FnMapDeleteElem.Call())
	a.mark(stops)
	a.add(asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.R10, stackWord, asm.R0, asm.Word),
		asm.LoadMem(asm.R1, asm.R10, stackWord, asm.Word), asm.JEq.Imm(asm.R1, 0, "out"))
	a.add(asm.LoadMem(asm.R1, regContext, layout.prevState, asm.DWord),
		asm.JSet.Imm(asm.R1, threadEnds, "out"))
	a.filter(o, "out")
	a.openScratch(none)
	a.setProcess()
	a.add(asm.LoadMem(asm.R1, regContext, layout.prevState, asm.DWord),
		asm.StoreMem(regScratch, scratchKey+keyState, asm.R1, asm.DWord))
	a.emitStack(kernelStack)
	a.emitStack(userStack)
	a.add(asm.FnKtimeGetNs.Call(), asm.StoreMem(regScratch, scratchTime, asm.R0, asm.DWord),
		asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.R10, stackWord, asm.R0, asm.Word))
	a.storeThread(updateNew)
	a.add(asm.JEq.Imm(asm.R0, 0, "out"), asm.JNE.Imm(asm.R0, -errExist, full))
	a.bump(statNoReturn)
	a.storeThread(updateAny)
	a.mark("out")
	a.exit()
	a.mark(full)
	a.bump(statNoThread)
	a.exit()
	a.mark(none)
	a.bump(statNoScratch)
	a.exit()
}

// errExist is EEXIST.
const errExist = 17

// waking assembles the program of sched:sched_waking, which runs in the thread that wakes another,
// before that can run. Only the first waking of a wait counts; a preempted thread needs none.
//
//	t = threads[woken];
//	if (!t || t->key.waker.user || !(t->key.state & blocked)) return 0;
//	emit(kernel); emit(user);
//	t->key.waker = key;
func (a *assembler) waking(layout switchLayout) {
	const woken = scratchKey + keyWaker
	a.result = keepSample
	a.add(asm.Mov.Reg(regContext, asm.R1),
		asm.LoadMem(asm.R1, regContext, layout.woken, asm.Word),
		asm.StoreMem(asm.R10, stackWord, asm.R1, asm.Word))
	a.lookup(a.maps.threads, asm.R10, stackWord)
	a.add(asm.JEq.Imm(asm.R0, 0, "out"), asm.StoreMem(asm.R10, stackThread, asm.R0, asm.DWord),
		asm.LoadMem(asm.R1, asm.R0, woken+keyUser+8, asm.DWord), asm.JNE.Imm(asm.R1, 0, "out"),
		asm.LoadMem(asm.R1, asm.R0, scratchKey+keyState, asm.DWord),
		asm.And.Imm(asm.R1, blockedStates), asm.JEq.Imm(asm.R1, 0, "out"))
	a.openScratch("out")
	a.setProcess()
	a.emitStack(kernelStack)
	a.emitStack(userStack)
	a.add(asm.LoadMem(asm.R1, asm.R10, stackThread, asm.DWord))
	for at := int16(0); at < wakerSize; at += 8 {
		a.add(asm.LoadMem(asm.R2, regScratch, scratchKey+at, asm.DWord),
			asm.StoreMem(asm.R1, woken+at, asm.R2, asm.DWord))
	}
	a.mark("out")
	a.exit()
}

// blockedStates are the bits of prev_state of threads that do not run until they are woken.
const blockedStates = 0xff

// storeThread stores the time and key of scratch memory under the thread at stackWord.
func (a *assembler) storeThread(flags int32) {
	a.add(pointer(asm.R2, asm.R10, stackWord)...)
	a.add(pointer(asm.R3, regScratch, 0)...)
	a.add(a.mapPointer(asm.R1, a.maps.threads), asm.Mov.Imm(asm.R4, flags),
		asm.FnMapUpdateElem.Call())
}

// interruptRanges returns the address ranges of the functions that run interrupts; none if the kernel
// hides its symbols.
func interruptRanges() (ranges []Range) {
	const path = "/proc/kallsyms"
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var starts, wanted []uint64
	err = symlist.ReadKallsyms(path, f, func(s symlist.KernelSymbol) bool {
		if s.Module != "" || !s.IsCode() {
			return true
		}
		starts = append(starts, s.Addr)
		if pair.IsInterrupt(s.Name) {
			wanted = append(wanted, s.Addr)
		}
		return true
	})
	if err != nil {
		return nil
	}
	slices.Sort(starts)
	slices.Sort(wanted)
	for _, start := range slices.Compact(wanted) {
		i, _ := slices.BinarySearch(starts, start+1)
		if start != 0 && i < len(starts) {
			ranges = append(ranges, Range{start, starts[i]})
		}
	}
	return ranges
}

// steadyRange returns the range of the kernel image, in which code never changes; an empty range if
// unknown.
func steadyRange() Range {
	if a, _ := machine.Named(runtime.GOARCH); a != nil && a.KernelImage.End != 0 {
		return Range{Start: uint64(a.KernelImage.Start), End: uint64(a.KernelImage.End)}
	}
	const path = "/proc/kallsyms"
	f, err := os.Open(path)
	if err != nil {
		return Range{}
	}
	defer f.Close()
	return imageRange(path, f)
}

// imageRange returns the range from _stext to _end in a list of kallsyms.
func imageRange(path string, list io.Reader) (r Range) {
	err := symlist.ReadKallsyms(path, list, func(s symlist.KernelSymbol) bool {
		switch {
		case s.Module != "":
		case s.Name == "_stext":
			r.Start = s.Addr
		case s.Name == "_end":
			r.End = s.Addr
		}
		return r.End == 0
	})
	if err != nil || r.Start == 0 || r.End < r.Start {
		return Range{}
	}
	return r
}
