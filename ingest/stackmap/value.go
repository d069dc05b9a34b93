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

// guessLayout finds out from values what they are, where no header says it: a record
// begins with its status in 4 bytes, which as the half of an address is no code. ok is
// false while nothing but empty values has come.
func guessLayout(value []byte) (l layout, ok bool) {
	if len(value) < addressSize {
		return layout{}, false
	}
	first := value[:4]
	little, big := binary.LittleEndian.Uint32(first), binary.BigEndian.Uint32(first)
	if len(value)%frameSize == 0 {
		switch {
		case little == uint32(Valid) || little == uint32(IP):
			return layout{buildID: true}, true
		case big == uint32(Valid) || big == uint32(IP):
			return layout{buildID: true, big: true}, true
		}
	}
	word := value[:addressSize]
	le, be := binary.LittleEndian.Uint64(word), binary.BigEndian.Uint64(word)
	if le == 0 {
		return layout{}, false
	}
	// Of an address the top byte is 0 or 0xff, the lowest seldom.
	top := func(v uint64) bool { return v>>48 == 0 || v>>48 == 0xffff }
	return layout{big: !top(le) && top(be)}, true
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
			return Frame{Offset: offset, Ref: s.id(id), Status: Valid}, true
		}
	}
	// A status of later kernels: what it has besides is not known.
	return Frame{Offset: offset, Status: IP}, true
}
