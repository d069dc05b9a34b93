package stackmap

import (
	"encoding/binary"

	"symbolize/buildid"
)

// Sizes of struct bpf_stack_build_id and of its fields, in bytes.
const (
	frameSize     = 32
	addressSize   = 8
	buildIDAt     = 4
	frameOffsetAt = 24
)

// layout says what the values of a stack map are.
type layout struct {
	buildID bool // BPF_F_STACK_BUILD_ID: records of 32 bytes, else addresses
	big     bool
	depth   int // frames that are read of a value; 0 for all
}

// Where addresses of code lie, of which the upper bytes are 0 or 0xff: those of user
// code from lowestAddress, below which counts are, those of the kernel from kernelTop.
const (
	lowestAddress = 1 << 16
	userEnd       = 1 << 56
	kernelTop     = 0xff << 56
)

// guess finds out from a value what values are, where no header says it: a record
// begins with its status in 4 bytes, which as the half of an address is no code. ok is
// false for a value that tells nothing, as an empty one.
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

// decode appends the frames of a value to dst, up to the first empty one.
func (l layout) decode(s *Set, dst []Frame, value []byte) []Frame {
	size := addressSize
	if l.buildID {
		size = frameSize
	}
	for n := 0; len(value) >= size && (l.depth == 0 || n < l.depth); n++ {
		f, ok := l.frame(s, value[:size])
		if !ok {
			break
		}
		dst = append(dst, f)
		value = value[size:]
	}
	return dst
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
		id := buildid.Padded(b[buildIDAt : buildIDAt+buildid.KeyLen])
		if !id.IsZero() {
			return s.valid(id, offset), true
		}
	}
	// A status of later kernels: what it has besides is not known.
	return Frame{Offset: offset, Status: IP}, true
}
