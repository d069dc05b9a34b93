package pair

import "slices"

// maxPending bounds the events of a Window: a recording without rounds is sorted within that many.
const maxPending = 1 << 19

// Window sorts the events of a recording by time. perf record writes the buffers of the CPUs one
// after another. Each pass over all buffers ends with a FINISHED_ROUND record: no later event is
// older than the latest event of the previous round. This bound is perf's own
// (tools/perf/util/ordered-events.c), and limits the window to two rounds.
type Window[T any] struct {
	// Emit receives the events in order of time; equal times in the order of the file. Its error
	// ends the sorting.
	Emit func(time uint64, event T) error
	Late uint64 // emitted events older than their predecessor, which only damaged files have

	pending  []pending[T]
	spare    []pending[T] // of sort
	ends     []int        // of the runs of sort
	latest   uint64       // of all events so far
	complete uint64       // events up to this time are in the window when this round ends
	emitted  uint64       // time of the last emitted event
}

type pending[T any] struct {
	time  uint64
	event T
}

// Add adds the next event of the file, in any order of time. Beyond maxPending events it emits the
// older half.
func (w *Window[T]) Add(time uint64, event T) error {
	w.pending = append(w.pending, pending[T]{time, event})
	w.latest = max(w.latest, time)
	if len(w.pending) < maxPending {
		return nil
	}
	w.sort()
	return w.emit(maxPending / 2)
}

// Round ends a round, and emits the events that no later one can precede.
func (w *Window[T]) Round() error {
	limit := w.complete
	w.complete = w.latest
	return w.Upto(limit)
}

// Upto emits the events up to a time, if the caller knows that no later one precedes them.
func (w *Window[T]) Upto(limit uint64) error {
	w.sort()
	n, _ := slices.BinarySearchFunc(w.pending, limit, func(p pending[T], limit uint64) int {
		if p.time <= limit {
			return -1
		}
		return 1
	})
	return w.emit(n)
}

// Rest emits the remaining events.
func (w *Window[T]) Rest() error {
	w.sort()
	return w.emit(len(w.pending))
}

// sort merges the runs of pending events that are in order: the events of a CPU are. Events of equal
// time stay in the order of the file.
func (w *Window[T]) sort() {
	list, spare, ends := w.pending, w.spare, w.ends[:0]
	for i := range list {
		if i+1 == len(list) || list[i+1].time < list[i].time {
			ends = append(ends, i+1)
		}
	}
	for len(ends) > 1 {
		spare = spare[:0]
		from, merged := 0, ends[:0]
		for i := 0; i < len(ends); i += 2 {
			a, b := list[from:ends[i]], []pending[T](nil)
			if from = ends[i]; i+1 < len(ends) {
				b = list[from:ends[i+1]]
				from = ends[i+1]
			}
			for len(a) > 0 && len(b) > 0 {
				if b[0].time < a[0].time {
					spare, b = append(spare, b[0]), b[1:]
				} else {
					spare, a = append(spare, a[0]), a[1:]
				}
			}
			spare = append(append(spare, a...), b...)
			merged = append(merged, len(spare))
		}
		list, spare, ends = spare, list, merged
	}
	w.pending, w.spare, w.ends = list, spare, ends
}

// emit emits the first n events.
func (w *Window[T]) emit(n int) error {
	for i := range w.pending[:n] {
		p := &w.pending[i]
		if p.time < w.emitted {
			w.Late++
		}
		w.emitted = max(w.emitted, p.time)
		if err := w.Emit(p.time, p.event); err != nil {
			return err
		}
	}
	w.pending = slices.Delete(w.pending, 0, n)
	return nil
}
