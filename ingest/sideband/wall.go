package sideband

import (
	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
)

// FileTimes are the times of a capture's file, ns since 1970; 0 if unknown.
type FileTimes struct {
	Modified int64
	Born     int64 // when the file was created
}

// RecordedKernel identifies the boot of a recording.
type RecordedKernel struct {
	Host    string     // name of the host
	Release string     // as of uname -r; "" if unknown
	ID      buildid.ID // zero if unknown
	Symbol  string     // the reference symbol
	Address uint64     // its run-time address; 0 if it was hidden
}

// WallClock relates the clock of a recording's records to the wall clock, and has the end of the
// recording. Times are ns since 1970.
type WallClock struct {
	// End is when the recorder ended, or the last record if only that is known; 0 if nothing is
	// known. If Known is false it is only the latest possible time: the file may be a copy, which
	// is modified when it is made.
	End   int64
	Known bool

	related bool  // offset is known; if End is not, it is the largest possible one
	offset  int64 // of the wall clock from the clock of the records
}

// At returns the wall clock at a time of the records; 0 if it is unknown.
func (w *WallClock) At(t uint64) int64 {
	if !w.related || t == 0 || t == NoTime {
		return 0
	}
	return int64(t) + w.offset
}

const (
	// clockSlack is the largest difference between two clocks that measure the same moment: the
	// wall clock is adjusted, and file systems use the time of the last tick.
	clockSlack = int64(2e9)
	// endLag is the longest time between the last record and the end of a recorder, where the file
	// system does not have the time of a file's creation.
	endLag = int64(60e9)
	// shortest is the shortest time between the creation of a recording and its last change, where
	// the times of samples are not known: a copy of a small file is made in less.
	shortest = int64(10e6)
)

// Wall returns the wall clock of a recording with samples from the time from until to. Both times
// are 0 if they are unknown. In order of preference it uses the clocks that the recording itself
// relates (CLOCK_DATA), those of a bundle of the same boot, and those of this host, if it is still
// in the same boot. Only if there are none, the time of the file is the end of the recording: it is
// known if the file is the one that the recorder wrote, or has the time of that file. Stack maps
// have no times of their own: the time of their file is believed.
func (sb *State) Wall(from, to uint64) WallClock {
	timed := sb.Clock.Timed && to != 0 && to != NoTime && from <= to
	if !timed {
		from, to = 0, 0
	}
	file := sb.clocks.file
	low, high, ok := sb.clocks.offsets(to, sb.Records.File, sb.bundles.open, sb.recordedKernel)
	if !ok || !timed {
		w := WallClock{End: file.Modified, related: timed && file.Modified != 0,
			offset: file.Modified - int64(to)}
		kept := file.Modified < file.Born // the time of the original was copied, too
		w.Known = file.Modified != 0 && (sb.Records.File == nil || file.Born != 0 &&
			(kept || file.Modified-file.Born >= max(int64(to-from), shortest)))
		return w
	}
	last := int64(to) + low
	w := WallClock{End: last, Known: true, related: true, offset: low}
	if file.written(from, to, low, high) {
		w.End, w.offset = file.Modified, min(high, file.Modified-int64(to))
	}
	return w
}

// written reports whether the modification time of the recording's file is the end of the
// recorder, if the offset of the clocks is between low and high: the recorder creates the file
// before the first sample, and writes the last of it after the last sample.
func (file FileTimes) written(from, to uint64, low, high int64) bool {
	first, last := int64(from)+high, int64(to)+low
	switch {
	case file.Modified < last-clockSlack:
		return false // the file has the time of neither
	case file.Born == 0:
		return file.Modified <= int64(to)+high+endLag
	case file.Modified < file.Born:
		return true // a copy with the time of the original
	}
	return file.Born <= first+clockSlack
}

// offsets returns bounds of the difference between the wall clock and the clock of the
// records, of which to is a time. They differ if the host was suspended: perf's clock then stops.
//
// f is the recording, nil for stack maps; bundles come from the same boot, and kernel describes it.
func (c *recordingClocks) offsets(to uint64, f *perfdata.File, bundles []*bootBundle,
	kernel func() RecordedKernel) (low, high int64, ok bool) {
	if f != nil {
		if cd := f.Features.ClockData; cd != nil {
			return cd.Offset(), cd.Offset(), true
		}
	}
	kind := clockOf(f)
	if kind == realtimeClock {
		return 0, 0, true
	}
	for _, b := range bundles {
		if f == nil {
			kind = perfClock
		}
		if end := &b.Manifest.End; kind != noClock && kind.read(end) != 0 && end.Realtime != 0 {
			offset := int64(end.Realtime - kind.read(end))
			return offset, offset, true
		}
	}
	if c.now == nil || kind == noClock {
		return 0, 0, false
	}
	if c.boot == nil {
		c.boot = &bootClocks{}
		c.boot.now, c.boot.same = c.now(kernel())
	}
	now := c.boot.now
	if !c.boot.same || kind.read(&now) < to || now.Realtime == 0 {
		return 0, 0, false
	}
	high = int64(now.Realtime - kind.read(&now))
	low = high
	if kind != boottimeClock {
		low -= int64(now.Boottime - min(now.Monotonic, now.Boottime))
	}
	return roundUp(low), roundUp(high), true
}

// roundUp rounds an offset up to full seconds. No two readings of the clocks of a host
// have the same difference, but the same recording must have the same end in each run.
func roundUp(offset int64) int64 { return (offset + 1e9 - 1) / 1e9 * 1e9 }

// recordingClocks are the times of a recording's file, and the clocks of this host.
type recordingClocks struct {
	file FileTimes
	now  HostClocks  // nil if they are unknown
	boot *bootClocks // the answer of now
}

// bootClocks are the clocks of this host now, if it is in the boot of the recording.
type bootClocks struct {
	now  bundle.Clocks
	same bool
}

// recordedKernel describes the boot of the recording.
func (sb *State) recordedKernel() RecordedKernel {
	k := RecordedKernel{Host: sb.Host.Name, Release: sb.Host.Release,
		ID: NewIdentifier(sb, ObjectQuery{}, nil).kernel}
	if sb.Kernel.Mapped {
		k.Symbol, k.Address = sb.Kernel.symbol, sb.Kernel.address
	}
	return k
}

// UseTimes sets the times of a capture's file, and the clocks of this host; now is nil if they are
// unknown. Scan sets those of its options.
func (sb *State) UseTimes(file FileTimes, now HostClocks) { sb.clocks.file, sb.clocks.now = file, now }

// HostClocks returns the clocks of this host now. ok is false if the recording was made on another
// host, or before the last boot as far as that is known.
type HostClocks func(RecordedKernel) (now bundle.Clocks, ok bool)
