package sys

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
)

// clockTries is the number of readings. The shortest is used: any may be interrupted.
const clockTries = 20

// ReadClocks reads perf's clock and three others together. No system call returns perf's clock:
// the time of a record is used, written when this thread is renamed to its own name between two
// readings of the others. The error is half the time between those readings.
func ReadClocks() (best bundle.Clocks, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := OpenRing(DummyAttr(perfdata.FlagComm), 0, -1, 1)
	if err != nil {
		c, _ := SystemClocks()
		return c, err
	}
	defer r.Close()
	var name [16]byte // TASK_COMM_LEN
	if err := unix.Prctl(unix.PR_GET_NAME, address64(&name), 0, 0, 0); err != nil {
		return best, err
	}
	width := uint64(math.MaxUint64)
	for range clockTries {
		before, w1 := SystemClocks()
		if err := unix.Prctl(unix.PR_SET_NAME, address64(&name), 0, 0, 0); err != nil {
			return best, err
		}
		after, w2 := SystemClocks()
		var perf uint64
		r.Drain(func(rec []byte) { perf = commTime(rec) })
		// Clocks are read in sequence: the middle of both readings differs from the record's time
		// by up to w1 and w2.
		if d := after.Monotonic - before.Monotonic; perf != 0 && d+w1+w2 < width {
			width = d + w1 + w2
			best = bundle.Clocks{Perf: perf,
				Monotonic: middle(before.Monotonic, after.Monotonic),
				Boottime:  middle(before.Boottime, after.Boottime),
				Realtime:  middle(before.Realtime, after.Realtime)}
		}
	}
	if best.Perf == 0 {
		return best, errors.New("perf's clock: no record received")
	}
	return best, nil
}

// Monotonic returns the time of CLOCK_MONOTONIC of the machine, ns.
func Monotonic() uint64 { return clock(unix.CLOCK_MONOTONIC) }

// clock reads a clock of the machine, as the kernel and its programs have it: without the offset of
// the time namespace of this process.
func clock(id int32) uint64 {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return 0 // does not fail
	}
	now := t.Nano()
	switch id {
	case unix.CLOCK_MONOTONIC:
		now -= ownOffsets().Monotonic
	case unix.CLOCK_BOOTTIME:
		now -= ownOffsets().Boottime
	}
	return uint64(now)
}

// TimeOffsets are what a time namespace adds to clocks, in ns.
type TimeOffsets struct{ Monotonic, Boottime int64 }

var ownOffsets = sync.OnceValue(func() TimeOffsets { return ReadTimeOffsets(OffsetsFile) })

// OffsetsFile has the offsets of the time namespace of this process.
const OffsetsFile = "/proc/self/timens_offsets"

// ReadTimeOffsets reads a timens_offsets file: lines of a clock, seconds and nanoseconds. Kernels
// without time namespaces have no such file, and no offsets.
func ReadTimeOffsets(path string) (o TimeOffsets) {
	b, err := os.ReadFile(path)
	if err != nil {
		return o
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		sec, err1 := strconv.ParseInt(f[1], 10, 64)
		nsec, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 != nil || err2 != nil {
			continue
		}
		switch f[0] {
		case "monotonic":
			o.Monotonic = sec*1e9 + nsec
		case "boottime":
			o.Boottime = sec*1e9 + nsec
		}
	}
	return o
}

func middle(a, b uint64) uint64 { return a + (b-a)/2 }

func address64(b *[16]byte) uintptr { return uintptr(unsafe.Pointer(b)) }

// commTime returns the time of a COMM record; 0 for others.
func commTime(rec []byte) uint64 {
	if perfdata.Type(binary.NativeEndian.Uint32(rec)) != perfdata.TypeComm {
		return 0
	}
	return RecordTime(rec)
}

// RecordTime returns the time of a record that is not a sample; 0 if it is too short. Its trailer
// is u32 pid, u32 tid, u64 time, u32 cpu, u32 res, u64 id.
func RecordTime(rec []byte) uint64 {
	const timeFromEnd = 24
	if len(rec) < RecordHeader+timeFromEnd {
		return 0
	}
	return binary.NativeEndian.Uint64(rec[len(rec)-timeFromEnd:])
}

// SystemClocks reads the clocks that have a system call, and returns the duration of the reading.
func SystemClocks() (c bundle.Clocks, width uint64) {
	first := Monotonic()
	c.Boottime = clock(unix.CLOCK_BOOTTIME)
	c.Realtime = clock(unix.CLOCK_REALTIME)
	last := Monotonic()
	c.Monotonic = middle(first, last)
	return c, last - first
}

// Host is the machine that the recorder sees: its files, its clocks, the ID of this process. The
// zero value is the real machine; tests replace it.
type Host struct {
	// Root is prepended to all paths of files; "" except in tests.
	Root string
	// Clocks reads the clocks that have a system call; nil for the kernel's.
	Clocks func() bundle.Clocks
	// OwnPID is the ID of this process; 0 for the kernel's.
	OwnPID int
}

// Path returns the path of a file of the machine.
func (h *Host) Path(path string) string { return h.Root + path }

// Now returns the time of each clock except perf's.
func (h *Host) Now() bundle.Clocks {
	if h.Clocks != nil {
		return h.Clocks()
	}
	now, _ := SystemClocks()
	return now
}

// Monotonic returns the time of CLOCK_MONOTONIC, ns.
func (h *Host) Monotonic() uint64 {
	if h.Clocks != nil {
		return h.Clocks().Monotonic
	}
	return Monotonic()
}

// PID returns the ID of this process.
func (h *Host) PID() int {
	if h.OwnPID != 0 {
		return h.OwnPID
	}
	return os.Getpid()
}
