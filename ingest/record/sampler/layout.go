package sampler

import "encoding/binary"

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
