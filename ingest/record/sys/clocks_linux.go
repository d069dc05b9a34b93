package sys

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
)

// clockTries is the number of readings; the tightest counts: any of them may be interrupted.
const clockTries = 20

// ReadClocks reads perf's clock and three others together. perf's has no system call; a record has
// it: of renaming this thread, to the name that it has, between two readings of the others. The
// error in ns is half the time between those.
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
		// Clocks are read one after another, so that the middle of the two is at w1 and w2
		// from the record.
		if d := after.Monotonic - before.Monotonic; perf != 0 && d+w1+w2 < width {
			width = d + w1 + w2
			best = bundle.Clocks{Perf: perf,
				Monotonic: middle(before.Monotonic, after.Monotonic),
				Boottime:  middle(before.Boottime, after.Boottime),
				Realtime:  middle(before.Realtime, after.Realtime)}
		}
	}
	if best.Perf == 0 {
		return best, errors.New("no record has perf's time")
	}
	return best, nil
}

// Monotonic returns the time of CLOCK_MONOTONIC, ns.
func Monotonic() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0 // it does not fail
	}
	return uint64(t.Nano())
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

// RecordTime returns the time of a record that is no sample; 0 if it is too short. Its trailer is
// u32 pid, u32 tid, u64 time, u32 cpu, u32 res, u64 id.
func RecordTime(rec []byte) uint64 {
	const timeFromEnd = 24
	if len(rec) < RecordHeader+timeFromEnd {
		return 0
	}
	return binary.NativeEndian.Uint64(rec[len(rec)-timeFromEnd:])
}

// SystemClocks reads the clocks that have a system call, and returns how long that took.
func SystemClocks() (c bundle.Clocks, width uint64) {
	read := func(clock int32) uint64 {
		var t unix.Timespec
		if unix.ClockGettime(clock, &t) != nil {
			return 0
		}
		return uint64(t.Nano())
	}
	first := read(unix.CLOCK_MONOTONIC)
	c.Boottime = read(unix.CLOCK_BOOTTIME)
	c.Realtime = read(unix.CLOCK_REALTIME)
	last := read(unix.CLOCK_MONOTONIC)
	c.Monotonic = middle(first, last)
	return c, last - first
}
