package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
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

// ReadOnly is BPF_F_RDONLY: a descriptor of a map that reads only.
const ReadOnly = 1 << 3

// BPF makes a system call with an attribute of this many bytes, and returns the kernel's
// result: a descriptor, for commands that open something. Its error is a unix.Errno.
func BPF(cmd int, attr unsafe.Pointer, size uintptr) (int, error) {
	for {
		r, _, e := unix.Syscall(unix.SYS_BPF, uintptr(cmd), uintptr(attr), size)
		switch e {
		case 0:
			return int(r), nil
		case unix.EINTR, unix.EAGAIN:
		default:
			return -1, e
		}
	}
}

// idAttr is union bpf_attr of the commands that take an id.
type idAttr struct{ id, next, flags uint32 }

// FDByID returns a descriptor, which the caller closes, of the program, map or BTF that has this
// id: it is there as long as the descriptor is open.
func FDByID(cmd int, id, flags uint32) (int, error) {
	attr := idAttr{id: id, flags: flags}
	return BPF(cmd, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// NextID returns the id of the program or map that follows; fs.ErrNotExist at the end.
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

// BPFInfo has the kernel fill info with its record of the object behind a descriptor, and returns
// how much of it the kernel knows. info and the buffers whose addresses it has must lie on the
// heap: stacks move.
func BPFInfo(fd int, info []byte) (int, error) {
	attr := infoAttr{fd: uint32(fd), size: uint32(len(info)), info: Address(info)}
	_, err := BPF(ObjGetInfoByFD, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	if err != nil {
		return 0, err
	}
	return min(int(attr.size), len(info)), nil
}

// Address is the address of a buffer, which its owner keeps reachable.
func Address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
