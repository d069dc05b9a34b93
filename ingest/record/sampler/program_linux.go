package sampler

import (
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Flags of BPF helpers (include/uapi/linux/bpf.h).
const (
	userStackOnly  = 1 << 8                // BPF_F_USER_STACK
	userStackFlags = userStackOnly | 1<<11 // BPF_F_USER_BUILD_ID
	ringQuiet      = 1                     // BPF_RB_NO_WAKEUP: the reader polls the ring
	ringWake       = 2                     // BPF_RB_FORCE_WAKEUP
	updateAny      = 0                     // BPF_ANY
	updateNew      = 1                     // BPF_NOEXIST
)

// keepSample is the result of programs at tracepoints: after 0 the kernel makes no sample of the
// tracepoint for anybody, so that a perf record beside us would have none
// (perf_trace_run_bpf_submit in kernel/events/core.c).
const keepSample = 1

// sample assembles the program for clocks, tracepoints and uprobes:
//
//	if (!selected()) return 0;
//	key = {.pid = …, .comm = …};
//	emit(kernel); emit(user);
//	counts[key].count++;
func (a *assembler) sample(o *Options) {
	none := a.label("no_scratch")
	if o.Event.Kind == Tracepoint {
		a.result = keepSample
	}
	a.add(asm.Mov.Reg(regContext, asm.R1))
	a.filter(o, "out")
	a.bump(statSamples)
	a.openScratch(none)
	a.setProcess()
	a.emitStack(kernelStack)
	a.emitStack(userStack)
	a.add(asm.Mov.Imm(asm.R9, 0))
	a.count(regScratch, scratchKey)
	a.mark("out")
	a.exit()
	a.mark(none)
	a.bump(statNoScratch)
	a.exit()
}

// filter jumps to out unless the current thread is selected. It clobbers R8.
func (a *assembler) filter(o *Options, out string) {
	if a.maps.pids != nil {
		a.currentProcess()
		a.add(asm.StoreMem(asm.R10, stackWord, asm.R0, asm.Word))
		a.lookup(a.maps.pids, asm.R10, stackWord)
		a.add(asm.JEq.Imm(asm.R0, 0, out))
	}
	if a.maps.cgroup != nil {
		a.add(a.mapPointer(asm.R1, a.maps.cgroup), asm.Mov.Imm(asm.R2, 0),
			asm.FnCurrentTaskUnderCgroup.Call(), asm.JNE.Imm(asm.R0, 1, out))
	}
}

// openScratch loads the address of the CPU's scratch memory into regScratch.
func (a *assembler) openScratch(none string) {
	a.element(a.maps.scratch, 0)
	a.add(asm.JEq.Imm(asm.R0, 0, none), asm.Mov.Reg(regScratch, asm.R0))
}

// setProcess writes the process, its comm and the number of the Part into the key.
func (a *assembler) setProcess() {
	a.currentProcess()
	a.add(asm.StoreMem(regScratch, scratchKey+keyPID, asm.R0, asm.Word),
		asm.StoreMem(regScratch, scratchRecord+recordPID, asm.R0, asm.Word),
		asm.StoreImm(regScratch, scratchKey+keyPart, 0, asm.Word),
		asm.StoreImm(regScratch, scratchRecord+recordProgram, 0, asm.Word), asm.Mov.Imm(asm.R1, 0))
	for _, at := range []int16{scratchKey + keyTime, scratchKey + keyProgram, scratchKey + keyMapped,
		scratchKey + keyState, scratchFar} {
		a.add(asm.StoreMem(regScratch, at, asm.R1, asm.DWord))
	}
	a.add(pointer(asm.R1, regScratch, scratchKey+keyComm)...)
	a.add(asm.Mov.Imm(asm.R2, commSize), asm.FnGetCurrentComm.Call())
	none := a.label("no_part")
	a.element(a.maps.stats, statPart)
	a.add(asm.JEq.Imm(asm.R0, 0, none), asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.StoreMem(regScratch, scratchKey+keyPart, asm.R1, asm.Word))
	a.mark(none)
}

// emitStack walks the kernel or the user stack, writes its hash into the key, and sends the stack
// to user space if it is new:
//
//	n = bpf_get_stack(ctx, frames, sizeof(frames), flags);
//	if (n < 0) { failed: key->part = {n, ~0}; goto end; }
//	key->part = record->hash = hash(frames, n);
//	if (kind == kernelStack && far) key->time = bpf_ktime_get_ns();
//	if ((v = seen[record->hash])) {
//		if (*v == barePID) { identify(); announce(); } else known_stacks[known] = key->user;
//		goto end;
//	}
//	how = check_bare() ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
//	if (bpf_ringbuf_output(&ring, record, n, how)) { stats[no_ring]++; goto end; }
//	seen[record->hash] = bare ? barePID : kind;
//	if (how == BPF_RB_FORCE_WAKEUP) noted[process] = kind;
func (a *assembler) emitStack(kind uint32) {
	at, flags := int16(scratchKey+keyKernel), int32(0)
	if kind == userStack {
		at, flags = scratchKey+keyUser, userStackFlags
	}
	limit := int32(Depth * frame(kind))
	failed, full, end := a.label("failed"), a.label("full"), a.label("emitted")
	unseen, known := a.label("new"), end
	if kind == userStack && a.process.countsChanges() {
		known = a.label("known")
		a.lookupKnown(end, failed)
	}
	a.add(asm.Mov.Reg(asm.R1, regContext))
	a.add(pointer(asm.R2, regScratch, scratchFrames)...)
	a.add(asm.Mov.Imm(asm.R3, limit), asm.Mov.Imm(asm.R4, flags), asm.FnGetStack.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.JSLT.Imm(asm.R8, 0, failed), asm.JSGT.Imm(asm.R8, limit, failed))
	a.hashFrames(limit, kind == kernelStack)
	for _, to := range []int16{at, scratchRecord} {
		a.storeHash(to)
	}
	if kind == kernelStack {
		a.timeFar()
	}
	a.lookup(a.maps.seen, regScratch, scratchRecord)
	a.add(asm.JEq.Imm(asm.R0, 0, unseen))
	if kind == userStack {
		a.add(asm.LoadMem(asm.R1, asm.R0, 0, asm.Word), asm.JNE.Imm(asm.R1, barePID, known))
		a.identify()
		a.announce(end)
	}
	a.add(asm.Ja.Label(end))
	if known != end { // all frames have build IDs; a lookup of them can fail later
		a.mark(known)
		a.update(a.maps.known, scratchKnown, regScratch, scratchKey+keyUser, updateAny)
		a.add(asm.Ja.Label(end))
	}
	a.mark(unseen)
	a.add(asm.LoadMem(asm.R1, regScratch, scratchKey+keyPart, asm.Word),
		asm.LSh.Imm(asm.R1, kindBits), asm.Or.Imm(asm.R1, int32(kind)),
		asm.StoreMem(regScratch, scratchRecord+recordKind, asm.R1, asm.Word),
		asm.StoreImm(asm.R10, stackWord, int64(kind), asm.Word), asm.Mov.Imm(asm.R9, ringQuiet))
	if kind == userStack {
		a.checkBare(limit)
	}
	a.add(pointer(asm.R2, regScratch, scratchRecord)...)
	a.add(a.mapPointer(asm.R1, a.maps.ring), asm.Mov.Reg(asm.R3, asm.R8),
		asm.Add.Imm(asm.R3, recordHead), asm.Mov.Reg(asm.R4, asm.R9),
		asm.FnRingbufOutput.Call(), asm.JNE.Imm(asm.R0, 0, full))
	a.update(a.maps.seen, scratchRecord, asm.R10, stackWord, updateAny)
	a.add(asm.JNE.Imm(asm.R9, ringWake, end))
	a.setNoted()
	a.add(asm.Ja.Label(end))
	a.mark(full)
	a.bump(statNoRing)
	a.add(asm.Ja.Label(end))
	a.mark(failed)
	a.add(asm.StoreMem(regScratch, at, asm.R8, asm.DWord), asm.Mov.Imm(asm.R1, -1),
		asm.StoreMem(regScratch, at+8, asm.R1, asm.DWord))
	a.mark(end)
}

// checkBare sets the word at stackWord to barePID if the stack of R8 bytes has a bare address. It
// sets R9 to ringWake if it is the first such stack of its process: the process may end before its
// mappings are read.
//
//	for (i = 0; i < n; i += sizeof(*frames)) if (frames[i].status == IP) goto bare;
//	goto end;
//	bare: seen_as = barePID; identify();
//	if (!noted[process]) how = BPF_RB_FORCE_WAKEUP;
func (a *assembler) checkBare(limit int32) {
	again, bare, end := a.label("frame"), a.label("bare"), a.label("quiet")
	a.overFrames(limit, end)
	a.mark(again)
	a.add(asm.JLT.Imm(asm.R0, userFrame, end), asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
		asm.JEq.Imm(asm.R2, statusIP, bare),
		asm.Add.Imm(asm.R1, userFrame), asm.Sub.Imm(asm.R0, userFrame), asm.Ja.Label(again))
	a.mark(bare)
	a.add(asm.StoreImm(asm.R10, stackWord, barePID, asm.Word))
	a.identify()
	a.add(asm.Mov.Imm(asm.R9, ringQuiet))
	a.lookup(a.maps.noted, regScratch, scratchRecord+recordPID)
	a.add(asm.JNE.Imm(asm.R0, 0, end), asm.Mov.Imm(asm.R9, ringWake))
	a.mark(end)
}

// announce reports once that the process has a stack with bare addresses, and wakes the reader.
// Another process may have sent that stack, and this one may have ended before its counts are read.
//
//	if (noted[process]) goto end;
//	record->kind = barePID; record->length = 0;
//	if (!bpf_ringbuf_output(&ring, record, 0, BPF_RB_FORCE_WAKEUP)) noted[process] = barePID;
func (a *assembler) announce(end string) {
	a.lookup(a.maps.noted, regScratch, scratchRecord+recordPID)
	a.add(asm.JNE.Imm(asm.R0, 0, end),
		asm.StoreImm(regScratch, scratchRecord+recordKind, barePID, asm.Word),
		asm.StoreImm(regScratch, scratchRecord+recordLength, 0, asm.Word))
	a.add(pointer(asm.R2, regScratch, scratchRecord)...)
	a.add(a.mapPointer(asm.R1, a.maps.ring), asm.Mov.Imm(asm.R3, recordHead),
		asm.Mov.Imm(asm.R4, ringWake), asm.FnRingbufOutput.Call(), asm.JNE.Imm(asm.R0, 0, end))
	a.setNoted()
}

// setNoted records that the reader was woken for the program that the process runs.
func (a *assembler) setNoted() {
	a.update(a.maps.noted, scratchRecord+recordPID, regScratch, scratchRecord+recordKind, updateAny)
}

// update stores the value at base+value under the key at offset key of the scratch memory.
func (a *assembler) update(m *ebpf.Map, key int32, base asm.Register, value int32, flags int32) {
	a.add(pointer(asm.R2, regScratch, key)...)
	a.add(pointer(asm.R3, base, value)...)
	a.add(a.mapPointer(asm.R1, m), asm.Mov.Imm(asm.R4, flags), asm.FnMapUpdateElem.Call())
}

// count adds 1 to the count of the key at base+off, and R9 to its weight. If another CPU inserts
// the same key meanwhile, the key is looked up again.
func (a *assembler) count(base asm.Register, off int32) {
	add, end, missing := a.label("add"), a.label("counted"), a.label("missing")
	a.lookup(a.maps.counts, base, off)
	a.add(asm.JNE.Imm(asm.R0, 0, add))
	a.add(asm.Mov.Imm(asm.R1, 1), asm.StoreMem(asm.R10, stackValue, asm.R1, asm.DWord),
		asm.StoreMem(asm.R10, stackValue+8, asm.R9, asm.DWord))
	a.add(pointer(asm.R2, base, off)...)
	a.add(pointer(asm.R3, asm.R10, stackValue)...)
	a.add(a.mapPointer(asm.R1, a.maps.counts), asm.Mov.Imm(asm.R4, updateNew),
		asm.FnMapUpdateElem.Call(), asm.JNE.Imm(asm.R0, 0, missing))
	a.bump(statKeys)
	a.add(asm.Ja.Label(end))
	a.mark(missing)
	a.lookup(a.maps.counts, base, off)
	a.add(asm.JNE.Imm(asm.R0, 0, add))
	a.bump(statNoCount)
	a.add(asm.Ja.Label(end))
	a.mark(add)
	a.add(asm.Mov.Imm(asm.R1, 1), asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.AddAtomic.Mem(asm.R0, asm.R9, asm.DWord, 8))
	a.mark(end)
}

// Registers with one purpose in the whole program.
const (
	regContext = asm.R6 // context of the event
	regScratch = asm.R7 // scratch memory of the CPU
	// R8 and R9 hold values across calls within one function of the assembler.
)

// The program's stack: offsets from its top.
const (
	stackIndex  = -4 // u32 key of arrays
	stackWord   = -8 // u32
	stackValue  = -24
	stackThread = -32 // u64, address of an entry of the map of threads
)

// assembler collects the instructions of a program. Its functions make their own labels, so that
// each can be called more than once.
type assembler struct {
	ins    asm.Instructions
	labels int
	next   string // symbol of the next instruction
	result int32  // of the program, see keepSample
	maps   *kernelMaps
	fd     func(*ebpf.Map) int

	// nil: known stacks and programs of processes are not recognized
	process *processLayout
	ns      *namespace // nil: process IDs are of the initial namespace
	steady  Range
}

func (a *assembler) add(ins ...asm.Instruction) {
	for _, in := range ins {
		if a.next != "" {
			in = in.WithSymbol(a.next)
			a.next = ""
		}
		a.ins = append(a.ins, in)
	}
}

// label returns an unused label.
func (a *assembler) label(name string) string {
	a.labels++
	return name + "_" + strconv.Itoa(a.labels)
}

// mark labels the next instruction. A no-op separates two labels of one instruction.
func (a *assembler) mark(label string) {
	if a.next != "" {
		a.add(asm.Mov.Reg(asm.R0, asm.R0))
	}
	a.next = label
}

// mapPointer loads the address of a map into a register.
func (a *assembler) mapPointer(to asm.Register, m *ebpf.Map) asm.Instruction {
	return asm.LoadMapPtr(to, a.fd(m))
}

// pointer loads base+off into a register.
func pointer(to, base asm.Register, off int32) []asm.Instruction {
	return []asm.Instruction{asm.Mov.Reg(to, base), asm.Add.Imm(to, off)}
}

// lookup looks up the key at base+off. It sets R0 to the address of the value, or to 0.
func (a *assembler) lookup(m *ebpf.Map, base asm.Register, off int32) {
	a.add(pointer(asm.R2, base, off)...)
	a.add(a.mapPointer(asm.R1, m), asm.FnMapLookupElem.Call())
}

// element looks up an element of an array.
func (a *assembler) element(m *ebpf.Map, i int64) {
	a.add(asm.StoreImm(asm.R10, stackIndex, i, asm.Word))
	a.lookup(m, asm.R10, stackIndex)
}

// bump increments a counter.
func (a *assembler) bump(stat int64) {
	none := a.label("no_counter")
	a.element(a.maps.stats, stat)
	a.add(asm.JEq.Imm(asm.R0, 0, none), asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0))
	a.mark(none)
}

func (a *assembler) exit() { a.add(asm.Mov.Imm(asm.R0, a.result), asm.Return()) }

// hashFrames computes the hash of the R8 bytes at scratchFrames, at most limit, in R3 and R4. Equal
// stacks of two Parts have different hashes. If far is set, scratchFar is set when a word is an
// address outside the steady range. It clobbers R0 to R5 and R9.
//
//	for (left = R8; left >= 8; left -= 8) mix(*p++); mix(R8)
func (a *assembler) hashFrames(limit int32, far bool) {
	again, done := a.label("word"), a.label("hashed")
	a.startHash()
	a.add(asm.LoadMem(asm.R4, regScratch, scratchKey+keyPart, asm.Word))
	a.overFrames(limit, done)
	a.mark(again)
	a.add(asm.JLT.Imm(asm.R0, 8, done), asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord))
	if far {
		steady := a.label("steady")
		a.add(asm.LoadImm(asm.R5, int64(-a.steady.Start), asm.DWord), asm.Add.Reg(asm.R5, asm.R2),
			asm.JLT.Imm(asm.R5, int32(a.steady.size()), steady),
			asm.StoreImm(regScratch, scratchFar, 1, asm.Word))
		a.mark(steady)
	}
	a.mix()
	a.add(asm.Add.Imm(asm.R1, 8), asm.Sub.Imm(asm.R0, 8), asm.Ja.Label(again))
	a.mark(done)
	a.add(asm.Mov.Reg(asm.R2, asm.R8))
	a.mix()
}

// overFrames starts a loop over the R8 bytes at scratchFrames: R1 points to the next word, R0
// counts the remaining bytes. The count is loaded from memory to hide it from the kernel's
// verifier, which would otherwise check everything after the loop again for every length.
func (a *assembler) overFrames(limit int32, none string) {
	a.add(asm.StoreMem(regScratch, scratchRecord+recordLength, asm.R8, asm.Word),
		asm.LoadMem(asm.R0, regScratch, scratchRecord+recordLength, asm.Word),
		asm.JGT.Imm(asm.R0, limit, none))
	a.add(pointer(asm.R1, regScratch, scratchFrames)...)
}

// startHash initializes R3, R4 and R9 for mix.
func (a *assembler) startHash() {
	factor := uint64(hashFactor)
	a.add(asm.LoadImm(asm.R3, int64(hashSeed), asm.DWord), asm.Mov.Imm(asm.R4, 0),
		asm.LoadImm(asm.R9, int64(factor), asm.DWord))
}

// timeFar writes the time into the key if the kernel stack is far.
func (a *assembler) timeFar() {
	near := a.label("near")
	a.add(asm.LoadMem(asm.R1, regScratch, scratchFar, asm.DWord), asm.JEq.Imm(asm.R1, 0, near),
		asm.FnKtimeGetNs.Call(), asm.StoreMem(regScratch, scratchKey+keyTime, asm.R0, asm.DWord))
	a.mark(near)
}

// mix adds the word in R2 to the hash in R3 and R4.
func (a *assembler) mix() {
	a.add(
		asm.Xor.Reg(asm.R3, asm.R2), asm.Mul.Reg(asm.R3, asm.R9),
		asm.Mov.Reg(asm.R5, asm.R3), asm.RSh.Imm(asm.R5, foldFirst), asm.Xor.Reg(asm.R3, asm.R5),
		asm.Add.Reg(asm.R4, asm.R2), asm.Mul.Reg(asm.R4, asm.R9),
		asm.Mov.Reg(asm.R5, asm.R4), asm.RSh.Imm(asm.R5, foldSecond), asm.Xor.Reg(asm.R4, asm.R5),
	)
}
