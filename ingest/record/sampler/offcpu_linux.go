package sampler

import "github.com/cilium/ebpf/asm"

// switchLayout is where the tracepoint sched:sched_switch has the thread that runs next
// and the state of the one that stops, by its format file.
type switchLayout struct{ nextPID, prevState int16 }

// threadEnds are the states EXIT_DEAD and EXIT_ZOMBIE of a thread that never runs again:
// to remember it would fill the map for good.
const threadEnds = 0x10 | 0x20

// offThread is the entry of a thread off CPU: when it stopped, in ns of
// CLOCK_MONOTONIC, and the key to count it under.
type offThread struct {
	Time uint64
	Key  countKey
}

// offCPU is the program of sched:sched_switch, which runs in the thread that stops:
//
//	t = threads[next];
//	if (t) { counts[t->key] += now − t->time; delete threads[next]; }
//	if (prev_state & (EXIT_DEAD | EXIT_ZOMBIE) || !wanted()) return 0;
//	take both parts of this thread's stack;
//	if (this in threads) stats[no_return]++;
//	threads[this] = {now, key};
func (a *assembler) offCPU(o *Options, layout switchLayout) {
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
	a.here(stops)
	a.add(asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.R10, stackWord, asm.R0, asm.Word),
		asm.LoadMem(asm.R1, asm.R10, stackWord, asm.Word), asm.JEq.Imm(asm.R1, 0, "out"))
	a.add(asm.LoadMem(asm.R1, regContext, layout.prevState, asm.DWord),
		asm.JSet.Imm(asm.R1, threadEnds, "out"))
	a.filter(o, "out")
	a.openScratch(none)
	a.who()
	a.take(kernelStack)
	a.take(userStack)
	a.add(asm.FnKtimeGetNs.Call(), asm.StoreMem(regScratch, scratchTime, asm.R0, asm.DWord),
		asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.R10, stackWord, asm.R0, asm.Word))
	a.remember(updateNew)
	a.add(asm.JEq.Imm(asm.R0, 0, "out"), asm.JNE.Imm(asm.R0, -errExist, full))
	a.bump(statNoReturn)
	a.remember(updateAny)
	a.here("out")
	a.exit()
	a.here(full)
	a.bump(statNoThread)
	a.exit()
	a.here(none)
	a.bump(statNoScratch)
	a.exit()
}

// errExist is EEXIST.
const errExist = 17

// remember stores scratch memory's time and key under the thread at stackWord.
func (a *assembler) remember(flags int32) {
	a.add(pointer(asm.R2, asm.R10, stackWord)...)
	a.add(pointer(asm.R3, regScratch, 0)...)
	a.add(a.mapPointer(asm.R1, a.maps.threads), asm.Mov.Imm(asm.R4, flags),
		asm.FnMapUpdateElem.Call())
}
