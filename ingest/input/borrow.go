package input

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
)

// Borrowing says what a capture took from a bundle of Options.Borrow, or why it took
// nothing.
type Borrowing struct {
	From      string // path of the bundle
	Refused   string // why nothing could be taken; "" if it could
	Programs  int    // BPF programs whose code and lines came from it
	Symbols   int    // functions of BPF that no record of the capture names
	Modules   int    // kernel modules whose place no record of the capture tells
	Processes int    // whose mappings no record of the capture tells
	Kernel    bool   // where the kernel lies, which the capture does not say
}

// String says it in a few words: "taken from NAME: code and lines of 3 BPF programs, …",
// "nothing taken from NAME: it is of another boot …".
func (b *Borrowing) String() string {
	if b.Refused != "" {
		return "nothing taken from " + b.From + ": " + b.Refused
	}
	var parts []string
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{b.Programs, "code and lines of 1 BPF program", "code and lines of %d BPF programs"},
		{b.Symbols, "the name of 1 BPF function", "names of %d BPF functions"},
		{b.Modules, "the place of 1 kernel module", "places of %d kernel modules"},
		{b.Processes, "the mappings of 1 process", "mappings of %d processes"},
	} {
		switch {
		case x.n == 1:
			parts = append(parts, x.one)
		case x.n > 1:
			parts = append(parts, fmt.Sprintf(x.many, x.n))
		}
	}
	if b.Kernel {
		parts = append(parts, "where the kernel lies")
	}
	if len(parts) == 0 {
		return "nothing taken from " + b.From + ": the capture has all that the bundle has"
	}
	return "taken from " + b.From + ": " + strings.Join(parts, ", ")
}

// Borrowed returns what the capture took from each bundle of Options.Borrow, in
// their order. It is known after Profile or Programs.
func (c *Capture) Borrowed() []Borrowing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stackSide != nil {
		return c.stackSide.borrowings
	}
	if c.side == nil {
		return nil
	}
	return c.side.borrowings
}

// lender is a bundle of the same boot.
type lender struct {
	*bundle.Bundle
	perf     *perfdata.File
	programs []bpf.Program
	convert  func(uint64) uint64 // of a time in its records to the borrower's clock
	at       int                 // in sideband.borrowings
}

// borrow takes from the bundles what the capture lacks. It is called when all records
// were read and before they are played.
func (sb *sideband) borrow(ctx context.Context, from []*Capture) error {
	for _, c := range from {
		if err := ctx.Err(); err != nil {
			return err
		}
		sb.borrowings = append(sb.borrowings, Borrowing{From: c.path})
		b := &sb.borrowings[len(sb.borrowings)-1]
		if c.bundle == nil {
			b.Refused = "it is no bundle"
			continue
		}
		l := lender{Bundle: c.bundle, perf: c.perf, at: len(sb.borrowings) - 1}
		if b.Refused = sb.compare(&l); b.Refused != "" {
			continue
		}
		// What is damaged in the bundle is told where its own profile is made.
		l.programs, _ = c.Programs()
		sb.borrowFrom(&l)
	}
	return nil
}

// noteTime keeps the first and the last time of the capture, and whose samples it has.
func (sb *sideband) noteTime(rec *perfdata.Record) {
	id, err := sb.file.SampleID(rec)
	if rec.Type == perfdata.TypeSample && err == nil && !sb.sampled[id.PID] {
		if sb.sampled == nil {
			sb.sampled = make(map[int32]bool)
		}
		sb.sampled[id.PID] = true
	}
	if err != nil || id.Time == 0 || id.Time == noTime || id.Has&perfdata.SampleTime == 0 {
		return
	}
	if sb.firstTime == 0 || id.Time < sb.firstTime {
		sb.firstTime = id.Time
	}
	sb.lastTime = max(sb.lastTime, id.Time)
}

// clockKind is a clock that both a capture and a bundle can speak of.
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

// converter returns how a time of clock from is told in clock to, by the two readings
// of the bundle; clocks drift, so it goes straight from the first to the second.
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
		if t == 0 || t == noTime {
			return t // before everything, and in the order of the file
		}
		part := float64(int64(t-begin)) / length
		return t + uint64(first+int64(drift*part))
	}
}

// compare reports why a bundle is not of the same boot as the capture, "" if it is:
// by the kernel's build ID, the run-time address of _text and a time in common.
func (sb *sideband) compare(l *lender) string {
	m := &l.Manifest
	own, theirs := newIdentifier(sb, ObjectQuery{}, nil).kernel, m.KernelID()
	sameID := !own.IsZero() && !theirs.IsZero()
	if sameID && !own.Matches(theirs) {
		return fmt.Sprintf("it is of another kernel: %s, the capture is of %s", theirs, own)
	}
	text := uint64(m.Text)
	if sb.textName != "_text" {
		text = l.symbol(sb.textName)
	}
	sameText := sb.text != 0 && text != 0
	if sameText && text != sb.text {
		return fmt.Sprintf("it is of another boot: %s at %#x, in the capture at %#x", sb.textName,
			text, sb.text)
	}
	x := &sb.file.Features
	switch {
	case !sameID && !sameText:
		return "neither the kernel's build ID nor its address is in both"
	case !sameID && (x.OSRelease == "" || x.OSRelease != m.OSRelease):
		return "the capture does not say which kernel it is of"
	case !sameText && (x.Hostname == "" || x.Hostname != m.Host):
		return "the kernel's address is hidden, and the host is not the same"
	}
	return sb.compareTimes(l)
}

// symbol returns the address of a symbol in the bundle's kernel mapping, which is
// named after the symbol that it begins with; 0 if there is none.
func (l *lender) symbol(name string) uint64 {
	if l.perf == nil || name == "" {
		return 0
	}
	var m perfdata.Mmap
	for r := l.perf.AllRecords(); r.Next(); {
		rec := r.Record()
		if rec.Type != perfdata.TypeMmap && rec.Type != perfdata.TypeMmap2 ||
			rec.CPUMode() != perfdata.CPUModeKernel || l.perf.Mmap(rec, &m) != nil {
			continue
		}
		if string(m.Filename) == ingest.KernelMapName+name {
			return m.PgOff
		}
	}
	return l.kallsym(name)
}

// maxClockStep is how far the wall clock may have been set between two captures of one
// boot.
const maxClockStep = uint64(time.Hour)

// compareTimes reports why the bundle and the capture have no time in common, and
// prepares the conversion of times.
func (sb *sideband) compareTimes(l *lender) string {
	m := &l.Manifest
	clock := clockOf(sb.file)
	switch {
	case clock == noClock || sb.firstTime == 0:
		return "the capture's records have no times that the bundle could be compared with"
	case m.End.Perf == 0:
		return "the bundle does not say when it was made"
	}
	begin, end := clock.read(&m.Begin), clock.read(&m.End)
	switch {
	case sb.lastTime < begin:
		return fmt.Sprintf("no time in common: the capture ends %v before the bundle begins",
			span(sb.lastTime, begin))
	case sb.firstTime > end:
		return fmt.Sprintf("no time in common: the capture begins %v after the bundle ends",
			span(end, sb.firstTime))
	}
	if cd := sb.file.Features.ClockData; cd != nil {
		wall := cd.WallNanos + (begin - cd.ClockNanos)
		if step := max(wall, m.Begin.Realtime) - min(wall, m.Begin.Realtime); step > maxClockStep {
			return fmt.Sprintf("it is of another boot: the wall clocks are %v apart", span(0, step))
		}
	}
	from := clockOf(l.perf)
	if from == noClock {
		from = perfClock // of the modules' times
	}
	l.convert = converter(m, from, clock)
	return ""
}

// span is the time between two, in a form to be read.
func span(from, to uint64) time.Duration {
	return time.Duration(min(to-from, math.MaxInt64)).Round(time.Millisecond)
}

// takeBorrowed puts the programs that records were tied to and that came from bundles
// into the list of the capture's own, in place of those of which less was known.
func (sb *sideband) takeBorrowed(t *tie) {
	taken := make(map[*bpf.Program]bool)
	for _, r := range t.of {
		taken[r.p] = true
	}
	last := make(map[uint32]int) // by ID: the last one that is taken
	for i := range sb.borrowed {
		if p := &sb.borrowed[i]; taken[p] {
			last[p.ID] = i
			sb.borrowings[sb.lentBy[i]].Programs++
		}
	}
	if len(last) == 0 {
		return
	}
	sb.programsRecorded = true
	sb.programs = slices.DeleteFunc(slices.Clone(sb.programs), func(o bpf.Program) bool {
		_, ok := last[o.ID]
		return ok && o.Missing != ""
	})
	for i := range sb.borrowed {
		p := &sb.borrowed[i]
		if taken[p] && (p.Missing == "" || last[p.ID] == i) {
			sb.programs = append(sb.programs, *p)
		}
	}
}

// lend adds build IDs that the bundle knows and the capture may lack.
func (sb *sideband) lend(id buildid.ID, mode perfdata.CPUMode, name string) {
	if !id.IsZero() {
		sb.lent = append(sb.lent, perfdata.BuildIDEntry{ID: id, PID: -1, CPUMode: mode,
			Filename: name})
	}
}
