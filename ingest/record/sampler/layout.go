package sampler

import (
	"encoding/binary"

	"symbolize/ingest/format/bundle"
)

// Scratch memory of a CPU, in which the program builds its output: offsets in bytes. A countKey
// starts at scratchKey and a record of the ring at scratchRecord. The bytes from scratchTime to the
// end of the key are the entry of a thread off CPU.
const (
	scratchTime   = 0 // u64, ns
	scratchKey    = 8
	scratchRecord = scratchKey + wakerKeySize
	scratchFrames = scratchRecord + recordHead
	scratchKnown  = scratchFrames + Depth*userFrame // hash that identifies a known stack
	// Four words: the identity of the process and the state of its mappings.
	scratchProcess = scratchKnown + 16
	scratchLayout  = scratchProcess + 4*8         // words at processLayout.layout
	scratchFar     = scratchLayout + 8*layoutSpan // u64, not 0: the kernel stack is far
	scratchSize    = scratchFar + 8
)

// A countKey: hash of the user stack; hash of the kernel stack; u64 time of the kernel stack if it
// is far, else 0; if the user stack has bare addresses, u64 ProgramID of the process and u64 time
// at which it had the same mappings, else 0; u32 process; u32 number of the Part; 16 bytes of comm;
// u64 prev_state of sched_switch, 0 for other events. With Options.Wakers the same follows, except
// prev_state, of the thread that woke this one. Times are in ns of CLOCK_MONOTONIC.
const (
	keyUser    = 0
	keyKernel  = 16
	keyTime    = 32
	keyProgram = 40
	keyMapped  = 48
	keyPID     = 56
	keyPart    = 60
	keyComm    = 64
	keyState   = 80
	keySize    = 88
	commSize   = 16

	keyWaker     = keySize
	wakerSize    = keyState
	wakerKeySize = keyWaker + wakerSize
)

// A record: hash; u8 kind; u24 low bits of the number of the Part; u32 length of the frames; u32
// process; u32 low half of its ProgramID if the stack has bare addresses, else 0; frames.
const (
	recordKind    = 16
	recordLength  = 20
	recordPID     = 24
	recordProgram = 28
	recordHead    = 32
)

// Kinds of records.
const (
	userStack   = 0
	kernelStack = 1
	// barePID reports, without frames, a process that has a user stack with bare addresses. In the
	// map of seen stacks it marks such a stack.
	barePID = 2
)

// kindBits is the width of a record's kind, below the number of the Part.
const kindBits = 8

// Sizes of frames: struct bpf_stack_build_id, and an address.
const (
	userFrame   = 32
	kernelFrame = 8
)

// hash identifies a stack. For a stack that could not be read it is {negative errno, noStack}.
type hash [2]uint64

const noStack = ^uint64(0)

// countKey and countValue are the key and value of the counts, as laid out by the program. Without
// Options.Wakers the key ends before Waker.
type countKey struct {
	User, Kernel          hash
	Time, Program, Mapped uint64
	PID, Part             uint32
	Comm                  [commSize]byte
	State                 uint64
	Waker                 threadKey
}

// threadKey has the stacks of a thread and the facts that locate their addresses. It is zero if
// there is no thread: the hash of a stack is not.
type threadKey struct {
	User, Kernel          hash
	Time, Program, Mapped uint64
	PID, Part             uint32
	Comm                  [commSize]byte
}

// thread returns the fields of the sampled thread.
func (k *countKey) thread() threadKey {
	return threadKey{k.User, k.Kernel, k.Time, k.Program, k.Mapped, k.PID, k.Part, k.Comm}
}

type countValue struct{ Count, Weight uint64 }

// Counters of the program: indexes of the map of counters.
const (
	statSamples = iota
	statKeys    // counts created since the program was loaded
	statNoCount
	statNoRing
	statNoScratch
	statNoThread
	statNoReturn
	statKnown // user stacks that were recognized by their addresses
	statPart  // not a counter: the number of the current Part
	numStats
)

// record is a stack read from the ring.
type record struct {
	hash   hash
	kind   uint32
	part   uint32 // low bits of its number
	pid    uint32
	frames []byte // valid until the next record is read
}

func parseRecord(b []byte) (r record, ok bool) {
	if len(b) < recordHead {
		return r, false
	}
	order := binary.NativeEndian
	r.hash = hash{order.Uint64(b), order.Uint64(b[8:])}
	kind := order.Uint32(b[recordKind:])
	r.kind, r.part = kind&(1<<kindBits-1), kind>>kindBits
	r.pid = order.Uint32(b[recordPID:])
	n := uint64(order.Uint32(b[recordLength:]))
	if n > uint64(len(b)-recordHead) {
		return r, false
	}
	r.frames = b[recordHead:][:n]
	return r, true
}

// frame returns the frame size of a kind of stack.
func frame(kind uint32) int {
	if kind == userStack {
		return userFrame
	}
	return kernelFrame
}

// The hash of a stack has two lanes of 64 bits. After every word (one lane by xor, one by addition)
// a lane is multiplied by hashFactor and its upper half folded down. The length is hashed last. It
// need not resist attacks: an attacker who controls the kernel's stacks has better means.
const (
	hashFactor = 0x9E3779B97F4A7C15 // 2^64 by the golden ratio
	hashSeed   = 0x243F6A8885A308D3 // digits of pi
	foldFirst  = 32
	foldSecond = 29
)

// hashIn is the hash of a stack with these frames, which are whole words, in a Part.
func hashIn(part uint32, frames []byte) hash {
	words := make([]uint64, 0, len(frames)/8)
	for ; len(frames) >= 8; frames = frames[8:] {
		words = append(words, binary.NativeEndian.Uint64(frames))
	}
	return hashFrom(part, words)
}

// hashOf is the program's hash in Go.
func hashOf(words []uint64) hash { return hashFrom(0, words) }

func hashFrom(part uint32, words []uint64) hash {
	a, b := uint64(hashSeed), uint64(part)
	mix := func(w uint64) {
		a = (a ^ w) * hashFactor
		a ^= a >> foldFirst
		b = (b + w) * hashFactor
		b ^= b >> foldSecond
	}
	for _, w := range words {
		mix(w)
	}
	mix(uint64(8 * len(words)))
	return hash{a, b}
}

// A process runs one program from one exec to the next. Its mappings from /proc locate bare
// addresses only for the same program: the process may have called exec since, or its ID may have
// been reused.

// Words of struct mm_struct from start_code on. Three of them make the ProgramID.
const (
	layoutEndCode    = 1
	layoutStartBrk   = 4
	layoutStartStack = 6
	layoutSpan       = 7
)

// layoutWords holds the offsets of mm_struct fields from start_code, in words.
var layoutWords = map[string]int32{"end_code": layoutEndCode, "start_brk": layoutStartBrk,
	"start_stack": layoutStartStack}

// ProgramFacts identify the program of a process between two execs: the fields starttime, endcode,
// start_brk and startstack of /proc/PID/stat. The stack and the heap start at random addresses
// unless the process disabled that; the end of the code still differs then.
type ProgramFacts struct {
	StartTicks, EndCode, StartBrk, StartStack uint64
}

// tickNanos is the unit of starttime in ns: USER_HZ, 100 per second on all of Linux.
const tickNanos = 1_000_000_000 / 100

// ID returns the ProgramID in the keys of counts, which distinguishes the programs of one process
// ID. It is 0 with a probability of 2^-64.
func (f ProgramFacts) ID() uint64 {
	return hashOf([]uint64{f.StartTicks, f.EndCode, f.StartBrk, f.StartStack})[0]
}

// Changes reports when code at kernel addresses changed: BPF programs and modules are loaded and
// unloaded, and reuse addresses. Times are in ns of CLOCK_MONOTONIC.
type Changes interface {
	// Sync blocks until all changes before the call are known.
	Sync()
	// Epoch returns the time, at or before the given one, at which code at one of the addresses (or
	// the byte before it) was last added or removed: 0 if never, UnknownTime if it may have
	// happened unseen.
	Epoch(addresses []uint64, time uint64) uint64
}

// UnknownTime is the epoch of stacks with ambiguous addresses.
const UnknownTime = bundle.UnknownTime

// Range is a range of addresses [Start, End).
type Range struct{ Start, End uint64 }

// size returns the length in bytes, capped at 31 bits: the operand of a comparison in the program.
func (r Range) size() uint64 { return min(r.End-r.Start, 1<<31-1) }

// far returns the addresses of a kernel stack outside the range.
func (r Range) far(frames []byte) (list []uint64) {
	for ; len(frames) >= kernelFrame; frames = frames[kernelFrame:] {
		if pc := binary.NativeEndian.Uint64(frames); pc-r.Start >= r.size() {
			list = append(list, pc)
		}
	}
	return list
}
