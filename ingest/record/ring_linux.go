package record

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/perfdata"
)

// ringPages is the size of a ring's data: with its control page as much as
// kernel.perf_event_mlock_kb allows without CAP_IPC_LOCK.
const ringPages = 128

// recordHeader is struct perf_event_header: u32 type, u16 misc, u16 size.
const recordHeader = 8

// ring is the buffer that the kernel writes the records of one CPU into. It is for
// one goroutine.
type ring struct {
	cpu    int
	fd     int
	id     uint64 // of the event
	mem    []byte
	page   *unix.PerfEventMmapPage
	data   []byte
	joined []byte // a record that goes round the end
	latest uint64 // time of the last record that was read
}

// attrBits gives the flags the bit order of the host's struct perf_event_attr.
func attrBits(flags perfdata.AttrFlags) uint64 {
	if perfdata.NativeBigEndian() {
		return bits.Reverse64(uint64(flags))
	}
	return uint64(flags)
}

// openEvent opens a perf event on a thread (-1: all) and a CPU, and returns it with
// its id.
func openEvent(attr *unix.PerfEventAttr, pid, cpu int) (fd int, id uint64, err error) {
	attr.Size = uint32(unsafe.Sizeof(*attr))
	fd, err = unix.PerfEventOpen(attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, 0, os.NewSyscallError("perf_event_open", err)
	}
	if err := ioctlPtr(fd, unix.PERF_EVENT_IOC_ID, unsafe.Pointer(&id)); err != nil {
		unix.Close(fd)
		return -1, 0, os.NewSyscallError("PERF_EVENT_IOC_ID", err)
	}
	return fd, id, nil
}

func ioctlPtr(fd int, req uint, arg unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(req), uintptr(arg)); e != 0 {
		return e
	}
	return nil
}

// openRing opens an event and maps its buffer, of so many pages, a power of two.
func openRing(attr *unix.PerfEventAttr, pid, cpu, pages int) (*ring, error) {
	fd, id, err := openEvent(attr, pid, cpu)
	if err != nil {
		return nil, err
	}
	size := os.Getpagesize()
	mem, err := unix.Mmap(fd, 0, (1+pages)*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("map the ring of CPU %d: %w", cpu, err)
	}
	return &ring{cpu: cpu, fd: fd, id: id, mem: mem, data: mem[size:],
		page: (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0]))}, nil
}

func (r *ring) close() {
	unix.Munmap(r.mem)
	unix.Close(r.fd)
}

// drain hands out the records that are in the ring, each valid during the call, and
// reports whether there were any. Their room is free again one by one.
func (r *ring) drain(visit func(rec []byte)) bool {
	tail, head := r.page.Data_tail, atomic.LoadUint64(&r.page.Data_head)
	any := tail != head
	for tail != head {
		rec := r.record(tail, head-tail)
		if rec == nil {
			tail = head // the kernel writes no such thing
		} else {
			visit(rec)
			tail += uint64(len(rec))
		}
		atomic.StoreUint64(&r.page.Data_tail, tail)
	}
	return any
}

// record returns the record at a position with left bytes behind it; nil if
// there is none.
func (r *ring) record(at, left uint64) []byte {
	n := uint64(len(r.data))
	at %= n // records are of 8 bytes or a multiple, so the header is in one piece
	if left < recordHeader || n-at < recordHeader {
		return nil
	}
	size := uint64(binary.NativeEndian.Uint16(r.data[at+6:]))
	if size < recordHeader || size > left {
		return nil
	}
	if at+size <= n {
		return r.data[at : at+size : at+size]
	}
	r.joined = append(append(r.joined[:0], r.data[at:]...), r.data[:at+size-n]...)
	return r.joined
}
