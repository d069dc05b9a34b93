package stackmap

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"symbolize/buildid"
	"symbolize/ingest/intern"
)

// Limits of one input; the dumps of the kernel's largest map stay below.
const (
	maxFrames   = 1 << 26 // of all stacks, 4 bytes each
	maxSamples  = 1 << 24 // 64 bytes each
	maxDepth    = 1 << 10 // frames of one stack; kernel.perf_event_max_stack is 127
	maxWarnings = 20
)

// The limits of a small file are lower, however well it is compressed: a floor, and so many frames
// and samples for each of its bytes. Recordings have up to 20 frames per byte, if deep stacks
// differ only at their leaves, and two bytes or more per sample.
const (
	floorFrames, framesPerByte   = 1 << 22, 64
	floorSamples, samplesPerByte = 1 << 18, 4
)

// bound sets the limits by the size of the input file.
func (s *Set) bound(size int64) {
	size = min(max(size, 0), maxFrames)
	s.maxFrames = int(min(maxFrames, floorFrames+framesPerByte*size))
	s.maxSamples = int(min(maxSamples, floorSamples+samplesPerByte*size))
}

// maxTotal bounds the sum of all counts, and of all weights: it is the largest value in a
// profile. Only damaged files reach it.
const maxTotal = math.MaxInt64

func newSet(form Form) *Set {
	return &Set{
		Form: form, Events: []Event{{Name: "samples", Unit: "count", Period: 1}},
		idOf: make(map[[buildid.KeyLen]byte]uint32), symbolOf: make(map[Symbol]uint32),
		commOf: make(map[string]string), frameOf: intern.NewPairs(), stacks: intern.NewListSet(),
		left: [2]uint64{maxTotal, maxTotal}, maxFrames: maxFrames, maxSamples: maxSamples,
	}
}

// knownID is a build ID and its number + 1.
type knownID struct {
	raw    [buildid.KeyLen]byte
	number uint32
}

// id numbers a build ID, padded to 20 bytes.
func (s *Set) id(raw [buildid.KeyLen]byte) uint32 {
	recent := &s.recentIDs[int(raw[0])%len(s.recentIDs)]
	if recent.number != 0 && recent.raw == raw {
		return recent.number - 1
	}
	n, ok := s.idOf[raw]
	if !ok {
		n = uint32(len(s.IDs))
		s.IDs = append(s.IDs, buildid.Padded(raw[:]))
		s.idOf[raw] = n
	}
	*recent = knownID{raw, n + 1}
	return n
}

// valid makes the frame of a build ID. For an address in no mapping, such as the 0 that ends chains
// of frame pointers, the kernel uses the next higher mapping (find_vma in
// stack_map_get_build_id_offset): the offset is below 0 and the location unknown.
func (s *Set) valid(raw [buildid.KeyLen]byte, offset uint64) Frame {
	if int64(offset) < 0 {
		return Frame{Status: IP}
	}
	return Frame{Offset: offset, Ref: s.id(raw), Status: Valid}
}

func (s *Set) symbol(sym Symbol) uint32 {
	n, ok := s.symbolOf[sym]
	if !ok {
		n = uint32(len(s.Symbols))
		s.Symbols = append(s.Symbols, sym)
		s.symbolOf[sym] = n
	}
	return n
}

// statusBits is the number of bits of a Status.
const statusBits = 2

// number appends the numbers of frames to dst; equal frames have the same number.
func (s *Set) number(dst []uint32, frames []Frame) []uint32 {
	s.pairs = s.pairs[:0]
	for i := range frames {
		f := &frames[i]
		s.pairs = append(s.pairs, intern.Pair{Offset: f.Offset,
			Object: f.Ref<<statusBits | uint32(f.Status)})
	}
	start := len(dst)
	dst = s.frameOf.AddAll(dst, s.pairs)
	for i, n := range dst[start:] {
		if int(n) == len(s.frames) {
			s.frames = append(s.frames, frames[i])
		}
	}
	return dst
}

// add numbers a stack; equal stacks have the same number. An empty stack is NotTaken.
func (s *Set) add(frames []Frame) Part {
	if s.full() {
		return Part{Cause: NotDumped}
	}
	frames = frames[:min(len(frames), maxDepth+1)] // one more marks the cut
	s.scratch = s.number(s.scratch[:0], frames)
	return s.addNumbers(s.scratch, hasAddress(frames))
}

// hasAddress reports whether one of the first maxDepth frames is an IP.
func hasAddress(frames []Frame) bool {
	return slices.ContainsFunc(frames[:min(len(frames), maxDepth)], func(f Frame) bool {
		return f.Status == IP
	})
}

// addNumbers is add for the numbers of frames; addresses is the result of hasAddress.
func (s *Set) addNumbers(frames []uint32, addresses bool) Part {
	switch {
	case len(frames) == 0:
		return Part{Cause: NotTaken}
	case len(frames) > maxDepth:
		s.warn(fmt.Errorf("a stack of more than %d frames is cut there", maxDepth))
		frames = frames[:maxDepth]
	}
	n, fresh := s.stacks.Add(frames)
	if fresh {
		s.addresses = append(s.addresses, addresses)
	}
	return Part{Stack: n, Cause: Present}
}

// full reports whether no further stack fits; such stacks are NotDumped.
func (s *Set) full() bool {
	if s.stacks.Words() <= s.maxFrames-maxDepth {
		return false
	}
	if !s.overfull {
		s.warn(fmt.Errorf("more than %d frames: further stacks are left out", s.maxFrames))
	}
	s.overfull = true
	return true
}

// comm returns the name of a thread as a string that equal names share.
func (s *Set) comm(name []byte) string {
	shared, ok := s.commOf[string(name)]
	if !ok {
		shared = string(name)
		s.commOf[shared] = shared
	}
	return shared
}

// waker returns 1 more than the number of a waker.
func (s *Set) waker(w Waker) uint32 {
	n, ok := s.wakerOf[w]
	if !ok && len(s.Samples) < s.maxSamples {
		if s.wakerOf == nil {
			s.wakerOf = make(map[Waker]uint32)
		}
		s.Wakers = append(s.Wakers, w)
		n = uint32(len(s.Wakers))
		s.wakerOf[w] = n
	}
	return n
}

// count adds a sample of the latest event; samples of systing have their own event.
func (s *Set) count(sm Sample) {
	if !s.Form.OwnEvents() {
		sm.Event = uint16(len(s.Events) - 1)
	}
	if period := s.Events[sm.Event].Period; period > 0 {
		sm.Weight = product(sm.Count, period)
	}
	counted, weighed := s.spend(0, &sm.Count), s.spend(1, &sm.Weight)
	if !counted || !weighed {
		if !s.cut {
			s.warn(fmt.Errorf("counts or weights add up to more than %d: they are cut",
				uint64(maxTotal)))
		}
		s.cut = true
	}
	switch {
	case sm.Count == 0:
	case len(s.Samples) >= s.maxSamples:
		s.leftOut = sum(s.leftOut, sm.Count)
	default:
		s.Samples = append(s.Samples, sm)
	}
}

// spend subtracts a number from what is left of total i. It returns false if the number had to be
// reduced.
func (s *Set) spend(i int, v *uint64) bool {
	whole := *v <= s.left[i]
	*v = min(*v, s.left[i])
	s.left[i] -= *v
	return whole
}

// product and sum saturate at the largest number.
func product(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

func sum(a, b uint64) uint64 {
	low, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return low
}

func (s *Set) warn(err error) {
	if len(s.Warnings) < maxWarnings {
		s.Warnings = append(s.Warnings, err)
		return
	}
	s.unreported++
}

// addUnclassified adds a sample whose stack may be kernel or user.
func (s *Set) addUnclassified(p Part, sm Sample) {
	if p.Cause == Present && s.isKernel(p.Stack) {
		sm.Kernel = p
	} else {
		sm.User = p
	}
	s.count(sm)
}

// finish releases the tables that are needed only for reading.
func (s *Set) finish() {
	if s.leftOut > 0 {
		s.warn(fmt.Errorf("more than %d pairs of stack and labels: %d samples are left out",
			s.maxSamples, s.leftOut))
	}
	if s.unreported > 0 {
		s.Warnings = append(s.Warnings, fmt.Errorf("and %d more warnings", s.unreported))
	}
	s.wakerOf, s.idOf, s.symbolOf, s.commOf, s.frameOf, s.scratch, s.pairs = nil, nil, nil, nil, nil, nil, nil
	s.stacks.Forget()
}
