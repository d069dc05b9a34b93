package sampler

import (
	"encoding/binary"

	"symbolize/ingest/format/bundle"
)

// Scratch memory of a CPU, in which the program builds its output. Offsets are in
// bytes. From scratchKey on it is a countKey, from scratchRecord on a record of the ring;
// scratchTime and the key together are the entry of a thread off CPU.
const (
	scratchTime   = 0 // u64, ns
	scratchKey    = 8
	scratchRecord = scratchKey + keySize
	scratchFrames = scratchRecord + recordHead
	scratchKnown  = scratchFrames + Depth*userFrame // hash by which a stack is known
	// Four words that identify the process and the state of its mappings.
	scratchProcess = scratchKnown + 16
	scratchLayout  = scratchProcess + 4*8         // the words that programLayout reads
	scratchFar     = scratchLayout + 8*layoutSpan // u64, not 0: the kernel's stack is far
	scratchSize    = scratchFar + 8
)

// A countKey: hash of the user's stack, hash of the kernel's, u64 when the kernel's stack was
// taken in ns of CLOCK_MONOTONIC if it is far, else 0, if the user's stack has bare addresses u64
// ProgramID of the process and u64 a time at which its mappings were the same, by the same clock,
// else 0, u32 process, u32 number of the Part, 16 bytes of comm.
const (
	keyUser    = 0
	keyKernel  = 16
	keyTime    = 32
	keyProgram = 40
	keyMapped  = 48
	keyPID     = 56
	keyPart    = 60
	keyComm    = 64
	keySize    = 80
	commSize   = 16
)

// A record: hash, u8 kind, u24 low bits of the number of the Part, u32 length of the rest, u32
// process, u32 the low half of its ProgramID if the stack has bare addresses, else 0, frames.
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
	// barePID: a process has a user stack with bare addresses; it is without frames. In the map of
	// seen stacks it marks one of these.
	barePID = 2
)

// kindBits are those of a record's kind, below the number of the Part.
const kindBits = 8

// Sizes of frames: struct bpf_stack_build_id, and an address.
const (
	userFrame   = 32
	kernelFrame = 8
)

// hash identifies a stack. For a stack that could not be taken the first half is the negative errno
// and the second noStack.
type hash [2]uint64

const noStack = ^uint64(0)

// countKey and countValue are the key and value of the counts, as the program has them.
type countKey struct {
	User, Kernel          hash
	Time, Program, Mapped uint64
	PID, Part             uint32
	Comm                  [commSize]byte
}

type countValue struct{ Count, Weight uint64 }

// Counters of the program, by their place in the map of counters.
const (
	statSamples = iota
	statKeys    // counts that were made since the program was loaded
	statNoCount
	statNoRing
	statNoScratch
	statNoThread
	statNoReturn
	statKnown // users' stacks that were known by their addresses
	statPart  // no counter: the number of the Part that the program counts for
	numStats
)

// record is a stack as the ring has it.
type record struct {
	hash   hash
	kind   uint32
	part   uint32 // low bits of the number
	pid    uint32
	frames []byte // valid until the next is read
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

// frame returns the size of a frame of this kind of stack.
func frame(kind uint32) int {
	if kind == userStack {
		return userFrame
	}
	return kernelFrame
}

// The hash of a stack: two lanes of 64 bits, each of which multiplies by hashFactor and
// folds its upper half down after every word, one after xor, one after addition. Lengths
// go in at the end. It need not resist anybody: who can choose the kernel's stacks has
// other ways.
const (
	hashFactor = 0x9E3779B97F4A7C15 // 2^64 by the golden ratio
	hashSeed   = 0x243F6A8885A308D3 // digits of pi
	foldFirst  = 32
	foldSecond = 29
)

// hashBytes is hashOf for the frames of a stack, which are whole words, in the first Part.
func hashBytes(frames []byte) hash { return hashIn(0, frames) }

// hashIn is hashBytes in a Part.
func hashIn(part uint32, frames []byte) hash {
	words := make([]uint64, 0, len(frames)/8)
	for ; len(frames) >= 8; frames = frames[8:] {
		words = append(words, binary.NativeEndian.Uint64(frames))
	}
	return hashFrom(part, words)
}

// hashOf is the program's hash, in Go.
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

// A process's program runs from one exec to the next. Its mappings as read from /proc locate bare
// addresses in stacks only if they are of the same program: a process may run another since, or its
// number be another process's.

// Words of struct mm_struct from start_code on, three of which make the ProgramID.
const (
	layoutEndCode    = 1
	layoutStartBrk   = 4
	layoutStartStack = 6
	layoutSpan       = 7
)

// layoutWords are where fields of struct mm_struct are, in words behind start_code.
var layoutWords = map[string]int32{"end_code": layoutEndCode, "start_brk": layoutStartBrk,
	"start_stack": layoutStartStack}

// ProgramFacts identify the program of a process, from its exec to its end or the next exec, as
// /proc/PID/stat has them in the fields starttime, endcode, start_brk and startstack. The stack
// and the heap begin at random addresses, unless the process has asked for others; the end of
// the code differs then.
type ProgramFacts struct {
	StartTicks, EndCode, StartBrk, StartStack uint64
}

// tickNanos is the unit of starttime, which all of Linux counts in hundredths of a second
// (USER_HZ), in ns.
const tickNanos = 1_000_000_000 / 100

// ID identifies the program among those of a process's number: the ProgramID in the key
// of counts. It is not 0 but by a chance of 2^-64.
func (f ProgramFacts) ID() uint64 {
	return hashOf([]uint64{f.StartTicks, f.EndCode, f.StartBrk, f.StartStack})[0]
}

// Changes knows when the code at kernel addresses has changed: BPF programs and modules come and
// go, and others take their place. Times are of CLOCK_MONOTONIC, in ns.
type Changes interface {
	// Sync returns when all changes up to its call are known.
	Sync()
	// Epoch returns when one of the addresses, or the byte before it, was last covered anew or
	// laid bare at or before a time: 0 if that never happened, UnknownTime if it may have
	// happened unseen.
	Epoch(addresses []uint64, time uint64) uint64
}

// UnknownTime is the epoch of stacks whose addresses may have meant one thing or another.
const UnknownTime = bundle.UnknownTime

// Range is a range of addresses [Start, End).
type Range struct{ Start, End uint64 }

// size is the length in bytes, capped at 31 bits: the operand of the program's comparison.
func (r Range) size() uint64 { return min(r.End-r.Start, 1<<31-1) }

// far returns the addresses of a kernel's stack that lie outside of a range.
func (r Range) far(frames []byte) (list []uint64) {
	for ; len(frames) >= kernelFrame; frames = frames[kernelFrame:] {
		if pc := binary.NativeEndian.Uint64(frames); pc-r.Start >= r.size() {
			list = append(list, pc)
		}
	}
	return list
}
