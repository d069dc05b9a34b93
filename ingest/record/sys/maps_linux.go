package sys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/rawdump"
)

// Types of maps (enum bpf_map_type) with their own treatment here.
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
	// maxMapBytes bounds the pairs of one dump; pairs beyond are counted.
	maxMapBytes = 64 << 20
	// batchBytes is how much is asked of the kernel at a time.
	batchBytes = 1 << 20
	cpuRound   = 8 // bytes to which the value of each CPU is rounded up
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

// MapReader reads maps into buffers that it keeps. It is for one goroutine, and must lie
// on the heap as ProgramReader. Its zero value is for hosts whose CPUs are not known.
type MapReader struct {
	CPUs   int // possible ones, of which a per-CPU map has a value each
	info   [mapInfoLen]byte
	cursor [2][]byte // where a batch begins, and the next one
	keys   []byte
	values []byte
	pairs  []byte // of the dump at hand
	lost   map[string]uint64
}

// OpenMap returns a descriptor, which the caller closes, of the map with this id. The
// map is there as long as it is open.
func OpenMap(id uint32) (int, error) {
	return FDByID(MapGetFDByID, id, ReadOnly)
}

// NextMap returns the id of the map after id; fs.ErrNotExist at the end.
func NextMap(id uint32) (uint32, error) { return NextID(MapGetNextID, id) }

// Header returns the kernel's description of the map behind a descriptor.
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

// errNoBatch is ENOTSUPP of the kernel (include/linux/errno.h): the map has no batches, or
// does not return values.
const errNoBatch = unix.Errno(524)

// errUnread: elements of a map of this kind cannot be read.
var errUnread = errors.New("the kernel gives no elements of a map of this kind")

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
	if errors.Is(err, unix.EINVAL) || errors.Is(err, errNoBatch) {
		r.pairs = r.pairs[:0] // no batches on this kernel or map
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

// batches reads a map in batches: each takes a bucket of a hash as a whole, so that none
// of its elements is met twice or missed because another is deleted.
func (r *MapReader) batches(fd int, h *rawdump.Header, stride int) error {
	key := int(h.KeySize)
	cursor := max(key, 4) // a number of a bucket, or a key
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
			n *= 2 // the bucket has more elements
			continue
		case errors.Is(err, unix.ENOENT): // the last one
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

// hasSlots reports whether a map of this type is an array of references, in which there need
// be nothing at an index.
func hasSlots(typ uint32) bool {
	switch typ {
	case mapProgArray, mapPerfEventArray, mapCgroupArray, mapArrayOfMaps, mapDevMap, mapSockMap,
		mapCPUMap, mapXSKMap:
		return true
	}
	return false
}

// elements reads a map key by key. A key that is deleted meanwhile makes the kernel
// begin anew, so that steps are bounded.
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
		case errors.Is(err, unix.ENOENT) && hasSlots(h.Type): // nothing is there
		case errors.Is(err, unix.ENOENT):
			r.lose("elements deleted while the map was read")
		case errors.Is(err, errNoBatch):
			r.lose("elements whose values the kernel does not return")
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
