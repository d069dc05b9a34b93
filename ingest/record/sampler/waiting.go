package sampler

import (
	"encoding/binary"
	"slices"
)

// waiting cuts the frames in ranges off the inner end of a kernel's stack, so that it begins at the
// function that waited. A stack of nothing else stays as it is. The first frame of a stack is no
// return address to readers: the new first frame is put at the call before it. frames may be
// overwritten.
func waiting(frames []byte, ranges []Range) []byte {
	for at := 0; at+kernelFrame <= len(frames); at += kernelFrame {
		pc := binary.NativeEndian.Uint64(frames[at:])
		if at > 0 {
			pc-- // a return address, which may be the end of the function
		}
		if slices.ContainsFunc(ranges, func(r Range) bool { return pc >= r.Start && pc < r.End }) {
			continue
		}
		binary.NativeEndian.PutUint64(frames[at:], pc)
		return frames[at:]
	}
	return frames
}
