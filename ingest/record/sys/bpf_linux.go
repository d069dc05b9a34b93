package sys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/bpf"
)

// Commands of bpf(2).
const (
	MapLookup      = 1
	MapNextKey     = 4
	ObjGet         = 7
	ProgGetNextID  = 11
	MapGetNextID   = 12
	ProgGetFDByID  = 13
	MapGetFDByID   = 14
	ObjGetInfoByFD = 15
	BTFGetFDByID   = 19
	TaskFDQuery    = 20
	MapLookupBatch = 24
)

// ReadOnly is BPF_F_RDONLY: a descriptor for reading a map.
const ReadOnly = 1 << 3

// BPF makes a system call with an attribute of this many bytes, and returns the kernel's
// result: a descriptor, for commands that open something. Its error is a unix.Errno, or
// errNotSupported.
func BPF(cmd int, attr unsafe.Pointer, size uintptr) (int, error) {
	for {
		r, _, e := unix.Syscall(unix.SYS_BPF, uintptr(cmd), uintptr(attr), size)
		switch e {
		case 0:
			return int(r), nil
		case unix.EINTR, unix.EAGAIN:
		case enotsupp:
			return -1, errNotSupported
		default:
			return -1, e
		}
	}
}

// idAttr is union bpf_attr of the commands that take an id.
type idAttr struct{ id, next, flags uint32 }

// FDByID opens the program, map or BTF with this id; the caller closes the descriptor. The object
// exists while it is open.
func FDByID(cmd int, id, flags uint32) (int, error) {
	attr := idAttr{id: id, flags: flags}
	return BPF(cmd, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// NextID returns the id of the next program or map; fs.ErrNotExist at the end.
func NextID(cmd int, id uint32) (uint32, error) {
	attr := idAttr{id: id}
	_, err := BPF(cmd, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return attr.next, err
}

// infoAttr is union bpf_attr of BPF_OBJ_GET_INFO_BY_FD.
type infoAttr struct {
	fd, size uint32
	info     uint64
}

// BPFInfo makes the kernel fill info with its record of the object behind a descriptor, and returns
// the length that it filled. info and the buffers that it refers to must be heap-allocated: stacks
// move.
func BPFInfo(fd int, info []byte) (int, error) {
	attr := infoAttr{fd: uint32(fd), size: uint32(len(info)), info: Address(info)}
	_, err := BPF(ObjGetInfoByFD, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	if err != nil {
		return 0, err
	}
	return min(int(attr.size), len(info)), nil
}

// Address returns the address of a buffer, which the caller keeps reachable.
func Address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// OpenProgram opens the program with this id; the caller closes the descriptor. The program stays
// loaded while it is open.
func OpenProgram(id uint32) (int, error) {
	return FDByID(ProgGetFDByID, id, 0)
}

// NextProgram returns the id of the program after id; fs.ErrNotExist at the end.
func NextProgram(id uint32) (uint32, error) { return NextID(ProgGetNextID, id) }

// recorded are the arrays that perf record reads, the translated instructions and the maps.
var recorded = [...]int{bpf.ArrayJITedInsns, bpf.ArrayXlatedInsns, bpf.ArrayMapIDs, bpf.ArrayJITedKSyms, bpf.ArrayJITedFuncLens,
	bpf.ArrayFuncInfo, bpf.ArrayLineInfo, bpf.ArrayJITedLineInfo, bpf.ArrayProgTags}

const (
	// firstItems is the initial size of each array's buffer. A program that fits needs one call, a
	// larger one two, while its descriptor is open.
	firstItems = 64 << 10
	// maxBTF is BTF_MAX_SIZE plus the header and a reserve.
	maxBTF = 64 << 20
)

// ErrTooLarge: a program, BTF or map element exceeds the limit.
var ErrTooLarge = errors.New("too large")

// btfInfoLen is the size of struct bpf_btf_info: u64 btf, u32 btf_size, u32 id, u64
// name, u32 name_len, u32 kernel_btf.
const btfInfoLen = 32

// ProgramReader reads programs into its buffers. Not safe for concurrent use. It must be
// heap-allocated: the kernel gets addresses of its parts as numbers, and stacks move.
type ProgramReader struct {
	info   [bpf.InfoLen]byte
	arrays [len(recorded)][]byte
	types  []byte
	about  [btfInfoLen]byte // struct bpf_btf_info
	raw    bpf.RawProgram
}

// Program returns the kernel's record of a program, valid until the next call.
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
			continue // hidden or absent
		}
		if size > uint64(len(x.arrays[i])) {
			return nil, ErrTooLarge
		}
		x.raw.Arrays[n] = x.arrays[i][:size]
	}
	return &x.raw, nil
}

func (x *ProgramReader) u32(at int) uint32 { return binary.NativeEndian.Uint32(x.info[at:]) }

// fill makes the kernel fill the buffers, and returns how much of the info it filled.
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

// grow enlarges the buffers to the sizes reported by the kernel, and reports whether any was too
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

// BTF returns the BTF with this id, valid until the next call.
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

// Reason returns package bpf's reason for an error of reading, or the text of another error.
func Reason(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return bpf.MissingGone
	case errors.Is(err, os.ErrPermission):
		return bpf.MissingRights
	}
	return err.Error()
}

// Types of maps (enum bpf_map_type) that are handled specially.
const (
	mapProgArray      = 3
	mapPerfEventArray = 4
	mapPerCPUHash     = 5
	mapPerCPUArray    = 6
	mapStackTrace     = 7
	mapCgroupArray    = 8
	mapLRUPerCPUHash  = 10
	mapArrayOfMaps    = 12
	mapDevMap         = 14
	mapSockMap        = 15
	mapCPUMap         = 16
	mapXSKMap         = 17
	mapPerCPUStorage  = 21
	stackBuildIDBytes = 32
	stackAddressBytes = 8
)

const (
	mapInfoLen = 88 // of struct bpf_map_info: up to the last field of all kernels with BTF
	// maxMapBytes limits the pairs of one dump in bytes; further pairs are counted.
	maxMapBytes = 64 << 20
	// batchBytes is the size of a batch.
	batchBytes = 1 << 20
	cpuRound   = 8 // the value of each CPU is padded to this many bytes
)

// mapElemAttr is union bpf_attr of the commands on one element.
type mapElemAttr struct {
	fd, _      uint32
	key, value uint64
	flags      uint64
}

// mapBatchAttr is union bpf_attr of BPF_MAP_LOOKUP_BATCH.
type mapBatchAttr struct {
	in, out, keys, values uint64
	count, fd             uint32
	elemFlags, flags      uint64
}

// MapReader reads maps into its buffers. Not safe for concurrent use; it must be heap-allocated
// like ProgramReader. Its zero value is for hosts with an unknown number of CPUs.
type MapReader struct {
	CPUs   int // possible CPUs: values in an entry of a per-CPU map
	info   [mapInfoLen]byte
	cursor [2][]byte // start of the current and the next batch
	keys   []byte
	values []byte
	pairs  []byte // of the current dump
	lost   map[string]uint64
}

// OpenMap opens the map with this id; the caller closes the descriptor. The map exists while it is
// open.
func OpenMap(id uint32) (int, error) {
	return FDByID(MapGetFDByID, id, ReadOnly)
}

// NextMap returns the id of the map after id; fs.ErrNotExist at the end.
func NextMap(id uint32) (uint32, error) { return NextID(MapGetNextID, id) }

// Describe returns the kernel's description of the map with this id.
func (r *MapReader) Describe(id uint32) (h rawdump.Header, err error) {
	fd, err := OpenMap(id)
	if err != nil {
		return h, err
	}
	defer unix.Close(fd)
	return r.Header(fd)
}

// Header returns the kernel's description of a map.
func (r *MapReader) Header(fd int) (h rawdump.Header, err error) {
	clear(r.info[:])
	if _, err = BPFInfo(fd, r.info[:]); err != nil {
		return h, err
	}
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(r.info[at:]) }
	name, _, _ := bytes.Cut(r.info[24:40], []byte{0})
	h = rawdump.Header{Type: u32(0), MapID: u32(4), KeySize: u32(8), ValueSize: u32(12),
		MaxEntries: u32(16), Flags: u32(20), Name: string(name), BTFID: u32(64), KeyType: u32(68),
		ValueType: u32(72), BigEndian: perfdata.NativeBigEndian()}
	switch h.Type {
	case mapPerCPUHash, mapPerCPUArray, mapLRUPerCPUHash, mapPerCPUStorage:
		h.CPUs = uint32(r.CPUs)
	case mapStackTrace:
		frame := uint32(stackAddressBytes)
		if h.Flags&rawdump.FlagBuildID != 0 {
			frame = stackBuildIDBytes
		}
		h.Depth = h.ValueSize / frame
	}
	return h, nil
}

// enotsupp is the kernel's ENOTSUPP (include/linux/errno.h), which no C library has a text for.
const enotsupp = unix.Errno(524)

// errNotSupported is the error for it: of batches of maps that have none, or none of values.
var errNotSupported = errors.New("not supported by this type of map or program (ENOTSUPP)")

// errUnread: elements of this kind of map cannot be read.
var errUnread = errors.New("the kernel cannot read elements of this type of map")

// Dump reads all pairs of a map, and appends them as a raw dump to dst.
func (r *MapReader) Dump(dst []byte, fd int, h *rawdump.Header) ([]byte, error) {
	stride := h.Stride()
	pair := uint64(h.KeySize) + stride
	if h.KeySize == 0 || stride == 0 {
		return dst, errUnread
	}
	if pair > maxMapBytes {
		return dst, ErrTooLarge
	}
	r.pairs, r.lost = r.pairs[:0], nil
	err := r.batches(fd, h, int(stride))
	if errors.Is(err, unix.EINVAL) || errors.Is(err, errNotSupported) {
		r.pairs = r.pairs[:0] // the kernel or the map has no batches
		err = r.elements(fd, h, int(stride))
	}
	if err != nil {
		return dst, err
	}
	h.Entries, h.Lost = uint64(len(r.pairs))/pair, r.lost
	out := bytes.NewBuffer(dst)
	w, err := rawdump.NewWriter(out, h)
	if err != nil {
		return dst, err
	}
	for p := r.pairs; len(p) > 0; p = p[pair:] {
		if err := w.Add(p[:h.KeySize], p[h.KeySize:pair]); err != nil {
			return dst, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}

// batches reads a map in batches. A batch holds whole buckets of a hash map: no element is read
// twice, or missed because another is deleted.
func (r *MapReader) batches(fd int, h *rawdump.Header, stride int) error {
	key := int(h.KeySize)
	cursor := max(key, 4) // number of a bucket, or a key
	for i := range r.cursor {
		r.cursor[i] = sized(r.cursor[i], cursor)
	}
	n := max(1, batchBytes/(key+stride))
	n = min(n, max(1, int(h.MaxEntries)))
	for in := uint64(0); ; {
		r.keys, r.values = sized(r.keys, n*key), sized(r.values, n*stride)
		attr := mapBatchAttr{in: in, out: Address(r.cursor[1]), keys: Address(r.keys),
			values: Address(r.values), count: uint32(n), fd: uint32(fd)}
		_, err := BPF(MapLookupBatch, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
		switch {
		case errors.Is(err, unix.ENOSPC) && n*(key+stride) < maxMapBytes:
			n *= 2 // the bucket is larger than the batch
			continue
		case errors.Is(err, unix.ENOENT): // the last batch
		case err != nil:
			return err
		}
		for i := range min(int(attr.count), n) {
			r.keep(r.keys[i*key:(i+1)*key], r.values[i*stride:(i+1)*stride])
		}
		if err != nil {
			return nil
		}
		r.cursor[0], r.cursor[1] = r.cursor[1], r.cursor[0]
		in = Address(r.cursor[0])
	}
}

// hasSlots reports whether a type of map is an array of references, with possibly empty elements.
func hasSlots(typ uint32) bool {
	switch typ {
	case mapProgArray, mapPerfEventArray, mapCgroupArray, mapArrayOfMaps, mapDevMap, mapSockMap,
		mapCPUMap, mapXSKMap:
		return true
	}
	return false
}

// elements reads a map key by key. If the current key is deleted the kernel starts again at the
// first one: steps are limited.
func (r *MapReader) elements(fd int, h *rawdump.Header, stride int) error {
	key := int(h.KeySize)
	r.cursor[0], r.cursor[1] = sized(r.cursor[0], key), sized(r.cursor[1], key)
	r.values = sized(r.values, stride)
	for step, at := uint32(0), uint64(0); step <= h.MaxEntries; step++ {
		attr := mapElemAttr{fd: uint32(fd), key: at, value: Address(r.cursor[1])}
		_, err := BPF(MapNextKey, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return err
		}
		r.cursor[0], r.cursor[1] = r.cursor[1], r.cursor[0]
		at = Address(r.cursor[0])
		attr = mapElemAttr{fd: uint32(fd), key: at, value: Address(r.values)}
		_, err = BPF(MapLookup, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
		switch {
		case errors.Is(err, unix.ENOENT) && hasSlots(h.Type): // empty slot
		case errors.Is(err, unix.ENOENT):
			r.lose("elements deleted while the map was read")
		case errors.Is(err, errNotSupported):
			r.lose("elements without a value: the kernel returns none")
		case err != nil:
			r.lose("elements: " + err.Error())
		default:
			r.keep(r.cursor[0][:key], r.values)
		}
	}
	return nil
}

func (r *MapReader) keep(key, value []byte) {
	if len(r.pairs)+len(key)+len(value) > maxMapBytes {
		r.lose(fmt.Sprintf("elements beyond %d MiB", maxMapBytes>>20))
		return
	}
	r.pairs = append(append(r.pairs, key...), value...)
}

func (r *MapReader) lose(cause string) {
	if r.lost == nil {
		r.lost = make(map[string]uint64)
	}
	r.lost[cause]++
}

// sized returns b with this length.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
