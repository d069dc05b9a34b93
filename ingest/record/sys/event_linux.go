package sys

import (
	"math/bits"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/perfdata"
)

// SampleType selects the identity fields of every record: with the same fields at the same places,
// whichever event it is of.
const SampleType = perfdata.SampleTID | perfdata.SampleTime | perfdata.SampleCPU |
	perfdata.SampleIdentifier

// DummyAttr is a software event that counts nothing and whose records are those that
// the flags ask for. Its ring wakes the reader at the first byte: records other than
// samples know only the watermark.
func DummyAttr(flags perfdata.AttrFlags) *unix.PerfEventAttr {
	return &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY,
		Sample_type: uint64(SampleType), Wakeup: 1, Sample: 1,
		Bits: AttrBits(flags|perfdata.FlagSampleIDAll|perfdata.FlagExcludeKernel) |
			unix.PerfBitWatermark,
	}
}

// AttrBits gives the flags the bit order of the host's struct perf_event_attr.
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
