package record

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/record/bpfcall"
)

// openProgram returns a descriptor, which the caller closes, of the program with this id.
func openProgram(id uint32) (int, error) {
	return bpfcall.FDByID(bpfcall.ProgGetFDByID, id, 0)
}

// nextProgram returns the id of the program that follows; fs.ErrNotExist at the end.
func nextProgram(id uint32) (uint32, error) { return bpfcall.NextID(bpfcall.ProgGetNextID, id) }

// infoArray locates the fields of struct bpf_prog_info that describe a recorded array.
type infoArray struct {
	index          int // bpf.Array…
	count, pointer int // offsets of the fields
	size           int // of an item, bytes
	recSize        int // offset of the field that must hold size, 0 if there is none
}

// infoArrays are the arrays that perf record takes too. The translated instructions
// are left out as there: they do not run, and cost as much as all the rest.
var infoArrays = [...]infoArray{
	{bpf.ArrayJITedInsns, 16, 24, 1, 0},
	{bpf.ArrayJITedKSyms, 104, 112, 8, 0},
	{bpf.ArrayJITedFuncLens, 108, 120, 4, 0},
	{bpf.ArrayFuncInfo, 144, 136, 8, 132},
	{bpf.ArrayLineInfo, 148, 152, 16, 172},
	{bpf.ArrayJITedLineInfo, 168, 160, 8, 176},
	{bpf.ArrayProgTags, 180, 184, 8, 0},
}

const (
	// firstItems is the room for each array at first. A program that fits takes one
	// call, a larger one a second; both while its descriptor is open.
	firstItems = 64 << 10
	// maxBTF is BTF_MAX_SIZE with its header and some room.
	maxBTF = 64 << 20
)

// errTooLarge: a program or BTF is larger than the recorder's bound.
var errTooLarge = errors.New("too large")

// btfInfoLen is the size of struct bpf_btf_info: u64 btf, u32 btf_size, u32 id, u64
// name, u32 name_len, u32 kernel_btf.
const btfInfoLen = 32

// infoReader reads programs into buffers that it keeps. It is for one goroutine, and
// must lie on the heap: the kernel gets addresses of its parts as numbers, and stacks
// move.
type infoReader struct {
	info   [bpf.InfoLen]byte
	arrays [len(infoArrays)][]byte
	btf    []byte
	about  [btfInfoLen]byte // struct bpf_btf_info
	raw    bpf.RawProgram
}

func (x *infoReader) open(id uint32) (int, error) { return openProgram(id) }

func (x *infoReader) close(fd int) { unix.Close(fd) }

// program returns the kernel's record of the program behind a descriptor. It is
// valid until the next call.
func (x *infoReader) program(fd int) (*bpf.RawProgram, error) {
	n, err := x.fill(fd)
	for again := 0; err == nil && x.grow() && again < 2; again++ {
		n, err = x.fill(fd)
	}
	if err != nil {
		return nil, err
	}
	x.raw = bpf.RawProgram{Info: x.info[:n], BigEndian: bigEndian}
	for i := range infoArrays {
		a := &infoArrays[i]
		size := uint64(x.u32(a.count)) * uint64(a.size)
		if binary.NativeEndian.Uint64(x.info[a.pointer:]) == 0 || size == 0 {
			continue // hidden, or not there
		}
		if size > uint64(len(x.arrays[i])) {
			return nil, errTooLarge
		}
		x.raw.Arrays[a.index] = x.arrays[i][:size]
	}
	return &x.raw, nil
}

func (x *infoReader) u32(at int) uint32 { return binary.NativeEndian.Uint32(x.info[at:]) }

// fill asks the kernel to fill the buffers as they are, and returns how much of the
// info it knows.
func (x *infoReader) fill(fd int) (int, error) {
	clear(x.info[:])
	for i := range infoArrays {
		a := &infoArrays[i]
		if x.arrays[i] == nil {
			x.arrays[i] = make([]byte, firstItems)
		}
		order := binary.NativeEndian
		order.PutUint32(x.info[a.count:], uint32(len(x.arrays[i])/a.size))
		order.PutUint64(x.info[a.pointer:], bpfcall.Address(x.arrays[i]))
		if a.recSize != 0 {
			order.PutUint32(x.info[a.recSize:], uint32(a.size))
		}
	}
	return bpfcall.Info(fd, x.info[:])
}

// grow enlarges the buffers to the sizes that the kernel reported, and
// reports whether any was too small.
func (x *infoReader) grow() bool {
	grown := false
	for i := range infoArrays {
		a := &infoArrays[i]
		size := uint64(x.u32(a.count)) * uint64(a.size)
		if size > uint64(len(x.arrays[i])) && size <= bpf.MaxArray {
			x.arrays[i] = make([]byte, size)
			grown = true
		}
	}
	return grown
}

// blob returns the BTF of this id. It is valid until the next call.
func (x *infoReader) blob(id uint32) ([]byte, error) {
	fd, err := bpfcall.FDByID(bpfcall.BTFGetFDByID, id, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if x.btf == nil {
		x.btf = make([]byte, firstItems)
	}
	for {
		info := x.about[:]
		clear(info)
		binary.NativeEndian.PutUint64(info, bpfcall.Address(x.btf))
		binary.NativeEndian.PutUint32(info[8:], uint32(len(x.btf)))
		if _, err := bpfcall.Info(fd, info); err != nil {
			return nil, err
		}
		size := int(binary.NativeEndian.Uint32(info[8:]))
		switch {
		case size <= len(x.btf):
			return x.btf[:size], nil
		case size > maxBTF:
			return nil, errTooLarge
		}
		x.btf = make([]byte, size)
	}
}

// reasonOf maps an error of reading a program to a reason of package bpf.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return bpf.MissingGone
	case errors.Is(err, os.ErrPermission):
		return bpf.MissingRights
	}
	return err.Error()
}
