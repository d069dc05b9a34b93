package stackmap

import (
	"encoding/binary"
	"hash/maphash"

	"symbolize/buildid"
	"symbolize/ingest/fold/intern"
)

// Sizes of struct bpf_stack_build_id and of its fields, in bytes.
const (
	frameSize     = 32
	addressSize   = 8
	buildIDAt     = 4
	frameOffsetAt = 24
)

// layout is the layout of the values of a stack map.
type layout struct {
	buildID bool // BPF_F_STACK_BUILD_ID: records of 32 bytes, else addresses
	big     bool
	depth   int // frames that are read of a value; 0 for all
}

// Where addresses of code lie, with upper bytes of 0 or 0xff: those of user code from
// lowestAddress, below which counts are, those of the kernel from kernelTop.
const (
	lowestAddress = 1 << 16
	userEnd       = 1 << 56
	kernelTop     = 0xff << 56
)

// guess finds the layout from a value, where no header has it: a record begins with its status in 4
// bytes, which as the half of an address is no code. ok is false for an inconclusive value, as an
// empty one.
func (l *layout) guess(value []byte) (ok bool) {
	if len(value) < addressSize {
		return false
	}
	first := value[:4]
	little, big := binary.LittleEndian.Uint32(first), binary.BigEndian.Uint32(first)
	if len(value)%frameSize == 0 {
		for status := uint32(Valid); status <= uint32(IP); status++ {
			if little == status || big == status {
				l.buildID, l.big = true, big == status
				return true
			}
		}
	}
	word := value[:addressSize]
	le, be := binary.LittleEndian.Uint64(word), binary.BigEndian.Uint64(word)
	code := func(v uint64) bool { return v >= lowestAddress && v < userEnd || v >= kernelTop }
	switch {
	case code(le):
		l.big = false
	case code(be):
		l.big = true
	default:
		return false
	}
	return true
}

// frameDecoder numbers the frames in values. Most frames of a dump were in a value before:
// those are known by their bytes.
type frameDecoder struct {
	layout
	set   *Set
	known *intern.Table[uint32] // number in the set by a frame's bytes
	list  []uint32              // of the latest value
}

func newFrameDecoder(l layout, set *Set) *frameDecoder {
	return &frameDecoder{layout: l, set: set, known: intern.New[uint32](maphash.MakeSeed())}
}

// frameSize is the size of a frame in bytes.
func (l layout) frameSize() int {
	if l.buildID {
		return frameSize
	}
	return addressSize
}

// stack numbers the stack that a value is.
func (d *frameDecoder) stack(value []byte) Part {
	if d.set.full() {
		return Part{Cause: NotDumped}
	}
	return d.set.addNumbers(d.decode(value))
}

// decode numbers the frames of a value, up to the first empty one.
func (d *frameDecoder) decode(value []byte) []uint32 {
	size := d.frameSize()
	d.list = d.list[:0]
	for n := 0; len(value) >= size && (d.depth == 0 || n < d.depth); n++ {
		number, ok := d.number(value[:size])
		if !ok {
			break
		}
		d.list = append(d.list, number)
		value = value[size:]
	}
	return d.list
}

// number returns the number of a frame; ok is false for one that ends the stack.
func (d *frameDecoder) number(b []byte) (number uint32, ok bool) {
	v, _, fresh := d.known.Add(b)
	if fresh {
		if f, ok := d.frame(d.set, b); ok {
			*v = d.set.frame(f) + 1
		}
	}
	return *v - 1, *v != 0
}

// frame decodes one frame; ok is false for one that ends the stack.
func (l layout) frame(s *Set, b []byte) (f Frame, ok bool) {
	order := binary.ByteOrder(binary.LittleEndian)
	if l.big {
		order = binary.BigEndian
	}
	if !l.buildID {
		pc := order.Uint64(b)
		return Frame{Offset: pc, Status: IP}, pc != 0
	}
	status, offset := order.Uint32(b), order.Uint64(b[frameOffsetAt:])
	switch {
	case status == uint32(Empty):
		return f, false
	case status == uint32(Valid):
		raw := [buildid.KeyLen]byte(b[buildIDAt : buildIDAt+buildid.KeyLen])
		if raw != ([buildid.KeyLen]byte{}) {
			return s.valid(raw, offset), true
		}
	}
	// A status of later kernels: its further fields are not known.
	return Frame{Offset: offset, Status: IP}, true
}
