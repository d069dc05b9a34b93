package sideband

import (
	"fmt"
	"math"
	"time"

	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
)

// noteTime enters the time and the process of a record in sampled.
func (sb *State) noteTime(rec *perfdata.Record) {
	id, err := sb.Records.File.SampleID(rec)
	if rec.Type == perfdata.TypeSample && err == nil && !sb.sampled.processes[id.PID] {
		sb.AddSampled(id.PID)
	}
	if err != nil || id.Time == 0 || id.Time == NoTime || id.Has&perfdata.SampleTime == 0 {
		return
	}
	if sb.sampled.from == 0 || id.Time < sb.sampled.from {
		sb.sampled.from = id.Time
	}
	sb.sampled.to = max(sb.sampled.to, id.Time)
}

// clockKind is a clock that both a capture and a bundle can have times of.
type clockKind uint8

const (
	noClock clockKind = iota
	perfClock
	monotonicClock
	boottimeClock
	realtimeClock
)

// clockOf returns the clock of a file's records (perf record -k).
func clockOf(f *perfdata.File) clockKind {
	if f == nil || len(f.Events) == 0 {
		return noClock
	}
	a := &f.Events[0].Attr
	if a.SampleType&perfdata.SampleTime == 0 {
		return noClock
	}
	if !a.Has(perfdata.FlagUseClockID) {
		return perfClock
	}
	const realtime, monotonic, boottime = 0, 1, 7 // clock_gettime(2)
	switch a.ClockID {
	case realtime:
		return realtimeClock
	case monotonic:
		return monotonicClock
	case boottime:
		return boottimeClock
	}
	return noClock
}

// read returns one of the readings.
func (k clockKind) read(c *bundle.Clocks) uint64 {
	switch k {
	case monotonicClock:
		return c.Monotonic
	case boottimeClock:
		return c.Boottime
	case realtimeClock:
		return c.Realtime
	}
	return c.Perf
}

// converter returns the conversion of times of clock from to clock to. It is linear between
// the two readings of both in the bundle, as clocks drift.
func converter(m *bundle.Manifest, from, to clockKind) func(uint64) uint64 {
	if from == to {
		return func(t uint64) uint64 { return t }
	}
	begin, end := from.read(&m.Begin), from.read(&m.End)
	first := int64(to.read(&m.Begin) - begin)
	drift := float64(int64(to.read(&m.End)-end) - first)
	length := float64(max(end-begin, 1))
	if end < begin {
		drift = 0
	}
	return func(t uint64) uint64 {
		if t == 0 || t == NoTime {
			return t // the start, and the order of the file: no times of a clock
		}
		part := float64(int64(t-begin)) / length
		return t + uint64(first+int64(drift*part))
	}
}

// compare returns the reason why a bundle is not of the capture's boot, "" if it is: by the
// kernel's build ID, the run-time address of _text and a common time.
func (sb *State) compare(l *bootBundle) string {
	m := &l.Manifest
	own, theirs := NewIdentifier(sb, ObjectQuery{}, nil).kernel, m.KernelID()
	sameID := !own.IsZero() && !theirs.IsZero()
	if sameID && !own.Matches(theirs) {
		return fmt.Sprintf("it is of another kernel: %s, the capture is of %s", theirs, own)
	}
	text := uint64(m.Text)
	if sb.Kernel.symbol != "_text" {
		text = l.symbol(sb.Kernel.symbol)
	}
	sameText := sb.Kernel.address != 0 && text != 0
	if sameText && text != sb.Kernel.address {
		return fmt.Sprintf("it is of another boot: %s at %#x, in the capture at %#x", sb.Kernel.symbol,
			text, sb.Kernel.address)
	}
	x := &sb.Records.File.Features
	switch {
	case !sameID && !sameText:
		return "neither the kernel's build ID nor its address is in both"
	case !sameID && (x.OSRelease == "" || x.OSRelease != m.OSRelease):
		return "the capture does not name its kernel"
	case !sameText && (x.Hostname == "" || x.Hostname != m.Host):
		return "the kernel's address is hidden, and the host is not the same"
	}
	return sb.compareTimes(l)
}

// symbol returns the address of a symbol in the bundle's kernel mapping, which is named after the
// symbol that it begins with; 0 if there is none.
func (l *bootBundle) symbol(name string) uint64 {
	if l.records == nil || name == "" {
		return 0
	}
	var m perfdata.Mmap
	for r := l.records.AllRecords(); r.Next(); {
		rec := r.Record()
		if rec.Type != perfdata.TypeMmap && rec.Type != perfdata.TypeMmap2 ||
			rec.CPUMode() != perfdata.CPUModeKernel || l.records.Mmap(rec, &m) != nil {
			continue
		}
		if string(m.Filename) == ingest.KernelMapName+name {
			return m.PgOff
		}
	}
	return l.kallsym(name)
}

// maxClockStep is the largest step of the wall clock between two captures of one boot.
const maxClockStep = uint64(time.Hour)

// compareTimes returns the reason if bundle and capture have no common time, "" if they
// have, and prepares the conversion of times.
func (sb *State) compareTimes(l *bootBundle) string {
	m := &l.Manifest
	clock := clockOf(sb.Records.File)
	switch {
	case clock == noClock || sb.sampled.from == 0:
		return "the capture's records have no times that the bundle could be compared with"
	case m.End.Perf == 0:
		return "the bundle has no creation time"
	}
	begin, end := clock.read(&m.Begin), clock.read(&m.End)
	switch {
	case sb.sampled.to < begin:
		return fmt.Sprintf("no time in common: the capture ends %v before the bundle begins",
			span(sb.sampled.to, begin))
	case sb.sampled.from > end:
		return fmt.Sprintf("no time in common: the capture begins %v after the bundle ends",
			span(end, sb.sampled.from))
	}
	if cd := sb.Records.File.Features.ClockData; cd != nil {
		wall := cd.WallNanos + (begin - cd.ClockNanos)
		if step := max(wall, m.Begin.Realtime) - min(wall, m.Begin.Realtime); step > maxClockStep {
			return fmt.Sprintf("it is of another boot: the wall clocks are %v apart", span(0, step))
		}
	}
	from := clockOf(l.records)
	if from == noClock {
		from = perfClock // of the modules' times
	}
	l.convert = converter(m, from, clock)
	return ""
}

// span formats the time between two readings.
func span(from, to uint64) time.Duration {
	return time.Duration(min(to-from, math.MaxInt64)).Round(time.Millisecond)
}
