package sys

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/perfdata"
)

// OpenProgram returns a descriptor, which the caller closes, of the program with this id. The
// program stays loaded as long as it is open.
func OpenProgram(id uint32) (int, error) {
	return FDByID(ProgGetFDByID, id, 0)
}

// NextProgram returns the id of the program after id; fs.ErrNotExist at the end.
func NextProgram(id uint32) (uint32, error) { return NextID(ProgGetNextID, id) }

// recorded are the arrays that perf record takes too. The translated instructions are left out as
// there: they do not run, and cost as much as all the rest.
var recorded = [...]int{bpf.ArrayJITedInsns, bpf.ArrayJITedKSyms, bpf.ArrayJITedFuncLens,
	bpf.ArrayFuncInfo, bpf.ArrayLineInfo, bpf.ArrayJITedLineInfo, bpf.ArrayProgTags}

const (
	// firstItems is the room for each array at first. A program that fits takes one
	// call, a larger one a second; both while its descriptor is open.
	firstItems = 64 << 10
	// maxBTF is BTF_MAX_SIZE with its header and some room.
	maxBTF = 64 << 20
)

// ErrTooLarge: a program, BTF or element of a map is larger than the bound.
var ErrTooLarge = errors.New("too large")

// btfInfoLen is the size of struct bpf_btf_info: u64 btf, u32 btf_size, u32 id, u64
// name, u32 name_len, u32 kernel_btf.
const btfInfoLen = 32

// ProgramReader reads programs into buffers that it keeps. It is for one goroutine, and
// must lie on the heap: the kernel gets addresses of its parts as numbers, and stacks
// move.
type ProgramReader struct {
	info   [bpf.InfoLen]byte
	arrays [len(recorded)][]byte
	types  []byte
	about  [btfInfoLen]byte // struct bpf_btf_info
	raw    bpf.RawProgram
}

// Program returns the kernel's record of the program behind a descriptor. It is valid until the
// next call.
func (x *ProgramReader) Program(fd int) (*bpf.RawProgram, error) {
	n, err := x.fill(fd)
	for again := 0; err == nil && x.grow() && again < 2; again++ {
		n, err = x.fill(fd)
	}
	if err != nil {
		return nil, err
	}
	x.raw = bpf.RawProgram{Info: x.info[:n], BigEndian: perfdata.NativeBigEndian()}
	for i, n := range recorded {
		a := &bpf.Arrays[n]
		size := uint64(x.u32(a.Count)) * uint64(a.Size)
		if binary.NativeEndian.Uint64(x.info[a.Pointer:]) == 0 || size == 0 {
			continue // hidden, or not there
		}
		if size > uint64(len(x.arrays[i])) {
			return nil, ErrTooLarge
		}
		x.raw.Arrays[n] = x.arrays[i][:size]
	}
	return &x.raw, nil
}

func (x *ProgramReader) u32(at int) uint32 { return binary.NativeEndian.Uint32(x.info[at:]) }

// fill asks the kernel to fill the buffers as they are, and returns how much of the
// info it knows.
func (x *ProgramReader) fill(fd int) (int, error) {
	clear(x.info[:])
	for i, n := range recorded {
		a := &bpf.Arrays[n]
		if x.arrays[i] == nil {
			x.arrays[i] = make([]byte, firstItems)
		}
		order := binary.NativeEndian
		order.PutUint32(x.info[a.Count:], uint32(len(x.arrays[i])/a.Size))
		order.PutUint64(x.info[a.Pointer:], Address(x.arrays[i]))
		if a.RecSize != 0 {
			order.PutUint32(x.info[a.RecSize:], uint32(a.Size))
		}
	}
	return BPFInfo(fd, x.info[:])
}

// grow enlarges the buffers to the sizes that the kernel reported, and reports whether any was too
// small.
func (x *ProgramReader) grow() bool {
	grown := false
	for i, n := range recorded {
		a := &bpf.Arrays[n]
		size := uint64(x.u32(a.Count)) * uint64(a.Size)
		if size > uint64(len(x.arrays[i])) && size <= bpf.MaxArray {
			x.arrays[i] = make([]byte, size)
			grown = true
		}
	}
	return grown
}

// BTF returns the BTF of this id. It is valid until the next call.
func (x *ProgramReader) BTF(id uint32) ([]byte, error) {
	fd, err := FDByID(BTFGetFDByID, id, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if x.types == nil {
		x.types = make([]byte, firstItems)
	}
	for {
		info := x.about[:]
		clear(info)
		binary.NativeEndian.PutUint64(info, Address(x.types))
		binary.NativeEndian.PutUint32(info[8:], uint32(len(x.types)))
		if _, err := BPFInfo(fd, info); err != nil {
			return nil, err
		}
		size := int(binary.NativeEndian.Uint32(info[8:]))
		switch {
		case size <= len(x.types):
			return x.types[:size], nil
		case size > maxBTF:
			return nil, ErrTooLarge
		}
		x.types = make([]byte, size)
	}
}

// Reason maps an error of reading to a reason of package bpf, others to their text.
func Reason(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return bpf.MissingGone
	case errors.Is(err, os.ErrPermission):
		return bpf.MissingRights
	}
	return err.Error()
}
