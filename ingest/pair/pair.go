// Package pair computes times between two events of a recording: how long threads did not run and
// what ended that (Threads), and the time between a start and an end with equal keys (Table).
//
// The caller brings the events into order of time by a Window, and passes them on:
//
//	threads := pair.Threads{Emit: func(w *pair.Wait) { … }, Run: func(from pair.Point, to uint64) { … }}
//	window := pair.Window[event]{Emit: func(time uint64, e event) error {
//		switch e.kind {
//		case out: // sched_switch, of the previous thread
//			threads.Out(e.point, e.state)
//		case in: // sched_switch, of the next thread
//			threads.In(e.point)
//		…
//	}}
//
// Nothing is guessed. An interval during which records were lost (Losses), or of which one end is
// unknown, is not emitted but counted with its reason in Stats. Memory grows with the threads that
// live and the starts without an end, not with events: stacks and labels are numbers of the caller.
//
// Times are in ns of the recording's clock. The types are not safe for concurrent use.
package pair

import (
	"cmp"
	"slices"
	"sort"
)

// NoStack is the Stack of a Point without one: its event was not recorded.
const NoStack = ^uint32(0)

// Point is an event of a thread. Stack and Label are numbers of the caller.
type Point struct {
	Time         uint64
	TID, CPU     int32
	Stack, Label uint32
}

// Span is a range of time, both ends included.
type Span struct{ From, To uint64 }

// Losses are the spans in which records were lost, on any CPU.
type Losses []Span

// NewLosses returns the spans in order, with overlapping ones joined.
func NewLosses(spans []Span) (l Losses) {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range spans {
		if n := len(l); n > 0 && s.From <= l[n-1].To {
			l[n-1].To = max(l[n-1].To, s.To)
		} else {
			l = append(l, s)
		}
	}
	return l
}

// Overlap reports whether records were lost between two times.
func (l Losses) Overlap(from, to uint64) bool {
	i := sort.Search(len(l), func(i int) bool { return l[i].To >= from })
	return i < len(l) && l[i].From <= to
}

// Stats counts intervals. Those of Lost, NoStart, NoEnd, Elsewhere, Open, Ended and Back are not
// emitted.
type Stats struct {
	Emitted  Sum // all that were emitted
	CutStart Sum // emitted: they began before the recording, their start has no stack
	CutEnd   Sum // emitted: they ended after the recording
	Lost     Sum // records were lost during the interval
	NoStart  Sum // an end without a start; the time is unknown
	NoEnd    Sum // another start came before an end; the time until then
	// Elsewhere are intervals of a recording of some CPUs: on the others they may have ended.
	Elsewhere Sum
	Open      Sum // of a Table: a start without an end; the time until the end of the recording
	Ended     Sum // of a Table: a start without an end, of a thread that ended
	Back      Sum // the end is before the start
}

// Sum is a number of intervals with their time in ns.
type Sum struct{ Count, Nanos uint64 }

// Add counts an interval.
func (s *Sum) Add(from, to uint64) {
	s.Count++
	if to > from {
		s.Nanos += to - from
	}
}

// usable counts an interval, and reports whether it can be emitted.
func (s *Stats) usable(losses Losses, from, to uint64) bool {
	switch {
	case to < from:
		s.Back.Add(from, to)
	case losses.Overlap(from, to):
		s.Lost.Add(from, to)
	default:
		s.Emitted.Add(from, to)
		return true
	}
	return false
}

// broken counts an interval without an end, until another start.
func (s *Stats) broken(losses Losses, from, to uint64) {
	if losses.Overlap(from, to) {
		s.Lost.Add(from, to)
	} else {
		s.NoEnd.Add(from, to)
	}
}

// Key is what a start and its end have in common, such as a hash of their fields.
type Key struct{ Hi, Lo uint64 }

// Table pairs starts with the next end of the same key.
type Table struct {
	Losses    Losses
	OfThreads bool // each key is of one thread
	Partial   bool // starts and ends on other CPUs were not recorded
	Stats     Stats
	Emit      func(start Point, end uint64)

	open     map[Key]Point
	byThread map[int32][]Key // the keys of open, if OfThreads
}

// Start adds a start. An open start with the same key has no end.
func (t *Table) Start(k Key, p Point) {
	if old, ok := t.take(k); ok {
		t.Stats.broken(t.Losses, old.Time, p.Time)
	}
	if t.open == nil {
		t.open, t.byThread = make(map[Key]Point), make(map[int32][]Key)
	}
	t.open[k] = p
	if t.OfThreads {
		t.byThread[p.TID] = append(t.byThread[p.TID], k)
	}
}

// take removes the open start of a key.
func (t *Table) take(k Key) (p Point, ok bool) {
	if p, ok = t.open[k]; !ok {
		return p, false
	}
	delete(t.open, k)
	if list := t.byThread[p.TID]; len(list) > 1 {
		i := slices.Index(list, k)
		t.byThread[p.TID] = slices.Delete(list, i, i+1)
	} else {
		delete(t.byThread, p.TID)
	}
	return p, true
}

// End ends the open start of a key.
func (t *Table) End(k Key, time uint64) {
	start, ok := t.take(k)
	if !ok {
		t.Stats.NoStart.Add(0, 0)
		return
	}
	if t.Partial {
		t.Stats.Elsewhere.Add(start.Time, time)
		return
	}
	if t.Stats.usable(t.Losses, start.Time, time) {
		t.Emit(start, time)
	}
}

// Exit counts the open starts of a thread that ended, such as the system call in which it did.
// Those of keys that other threads can end stay open.
func (t *Table) Exit(tid int32, time uint64) {
	for _, k := range slices.Clone(t.byThread[tid]) {
		p, _ := t.take(k)
		t.dropped(&t.Stats.Ended, p.Time, time)
	}
}

// Exec counts the open starts of the other threads of a process that executes a program: these
// threads have ended, or go on with its number.
func (t *Table) Exec(pid int32, time uint64, process func(tid int32) int32) {
	for tid := range t.byThread {
		if tid != pid && process(tid) == pid {
			t.Exit(tid, time)
		}
	}
}

// dropped counts a start without an end.
func (t *Table) dropped(as *Sum, from, to uint64) {
	if t.Losses.Overlap(from, to) {
		as = &t.Stats.Lost
	}
	as.Add(from, to)
}

// Finish counts the open starts at the end of the recording. They are no intervals: what they began
// went on, or its end was not recorded.
func (t *Table) Finish(end uint64) {
	for _, p := range t.open {
		t.dropped(&t.Stats.Open, p.Time, end)
	}
	t.open, t.byThread = nil, nil
}
