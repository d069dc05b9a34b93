package sys

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RingPages is the size of a ring's data: with its control page as much as
// kernel.perf_event_mlock_kb allows without CAP_IPC_LOCK.
const RingPages = 128

// RecordHeader is struct perf_event_header: u32 type, u16 misc, u16 size.
const RecordHeader = 8

// Ring is the buffer that the kernel writes the records of one CPU into. It is for one goroutine.
type Ring struct {
	CPU    int
	FD     int    // of the event
	ID     uint64 // of the event
	Latest uint64 // time of the last record that was read, for the reader
	mem    []byte
	page   *unix.PerfEventMmapPage
	data   []byte
	joined []byte // a record that goes round the end
}

// OpenRing opens an event and maps its buffer, of so many pages, a power of two.
func OpenRing(attr *unix.PerfEventAttr, pid, cpu, pages int) (*Ring, error) {
	fd, id, err := OpenEvent(attr, pid, cpu)
	if err != nil {
		return nil, err
	}
	size := os.Getpagesize()
	mem, err := unix.Mmap(fd, 0, (1+pages)*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("map the ring of CPU %d: %w", cpu, err)
	}
	return &Ring{CPU: cpu, FD: fd, ID: id, mem: mem, data: mem[size:],
		page: (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0]))}, nil
}

// Redirect has the records of another event written into the ring. After an error that event is
// closed.
func (r *Ring) Redirect(fd int) error {
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, r.FD); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("PERF_EVENT_IOC_SET_OUTPUT", err)
	}
	return nil
}

// Disable stops the event.
func (r *Ring) Disable() error {
	return ioctlPtr(r.FD, unix.PERF_EVENT_IOC_DISABLE, nil)
}

// Close unmaps the buffer and closes the event.
func (r *Ring) Close() {
	unix.Munmap(r.mem)
	unix.Close(r.FD)
}

// Drain hands out the records that are in the ring, each valid during the call, and
// reports whether there were any. Their room is free again one by one.
func (r *Ring) Drain(visit func(rec []byte)) bool {
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

// record returns the record at a position with left bytes behind it; nil if there is none.
func (r *Ring) record(at, left uint64) []byte {
	n := uint64(len(r.data))
	at %= n // records are of 8 bytes or a multiple, so the header is in one piece
	if left < RecordHeader || n-at < RecordHeader {
		return nil
	}
	size := uint64(binary.NativeEndian.Uint16(r.data[at+6:]))
	if size < RecordHeader || size > left {
		return nil
	}
	if at+size <= n {
		return r.data[at : at+size : at+size]
	}
	r.joined = append(append(r.joined[:0], r.data[at:]...), r.data[:at+size-n]...)
	return r.joined
}
