package sys

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

// SampleType selects the identity fields of every record: the same fields at the same offsets for
// all events.
const SampleType = perfdata.SampleTID | perfdata.SampleTime | perfdata.SampleCPU |
	perfdata.SampleIdentifier

// DummyAttr returns a software event that counts nothing, with the records that the flags select.
// Its ring wakes the reader at the first byte: only the watermark applies to records other than
// samples.
func DummyAttr(flags perfdata.AttrFlags) *unix.PerfEventAttr {
	return &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY,
		Sample_type: uint64(SampleType), Wakeup: 1, Sample: 1,
		Bits: AttrBits(flags|perfdata.FlagSampleIDAll|perfdata.FlagExcludeKernel) |
			unix.PerfBitWatermark,
	}
}

// AttrBits converts the flags to the bit order of the host's struct perf_event_attr.
func AttrBits(flags perfdata.AttrFlags) uint64 {
	if perfdata.NativeBigEndian() {
		return bits.Reverse64(uint64(flags))
	}
	return uint64(flags)
}

// OpenEvent opens a perf event on a thread (-1: all) and a CPU, and returns it with its id.
func OpenEvent(attr *unix.PerfEventAttr, pid, cpu int) (fd int, id uint64, err error) {
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

// RingPages is the size of a ring's data in pages: with its control page the most that
// kernel.perf_event_mlock_kb allows without CAP_IPC_LOCK.
const RingPages = 128

// RecordHeader is struct perf_event_header: u32 type, u16 misc, u16 size.
const RecordHeader = 8

// Ring is the buffer of one CPU's records. Not safe for concurrent use.
type Ring struct {
	CPU    int
	FD     int    // of the event
	ID     uint64 // of the event
	Latest uint64 // time of the last record read; set by the reader
	mem    []byte
	page   *unix.PerfEventMmapPage
	data   []byte
	joined []byte // a record that wraps around the end
}

// OpenRing opens an event and maps its buffer of this many pages, a power of two.
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

// Redirect makes the kernel write the records of another event into the ring. On an error it closes
// that event.
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

// Drain calls visit with the records in the ring, each valid during the call, and reports whether
// there were any. The space of each record is released after its call.
func (r *Ring) Drain(visit func(rec []byte)) bool {
	tail, head := r.page.Data_tail, atomic.LoadUint64(&r.page.Data_head)
	any := tail != head
	for tail != head {
		rec := r.record(tail, head-tail)
		if rec == nil {
			tail = head // the kernel never writes that
		} else {
			visit(rec)
			tail += uint64(len(rec))
		}
		atomic.StoreUint64(&r.page.Data_tail, tail)
	}
	return any
}

// record returns the record at a position, of at most left bytes, or nil.
func (r *Ring) record(at, left uint64) []byte {
	n := uint64(len(r.data))
	at %= n // records are multiples of 8 bytes, so the header does not wrap
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
