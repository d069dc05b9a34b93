package sampler

import (
	"encoding/binary"

	"symbolize/ingest/format/bundle"
)

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
