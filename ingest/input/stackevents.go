package input

import (
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/texts"
)

// cpuClock is the event of running threads in bundles.
const cpuClock = "cpu-clock"

// chooseEvents selects the events of the set. ingest.WallEvent is made of the clock and the threads
// off CPU.
func (f *stackFolder) chooseEvents() {
	f.event = make([]int, len(f.set.Events))
	wanted := func(e stackmap.Event) bool { return f.opts.Event == "" || e.Name == f.opts.Event }
	if f.opts.Event == ingest.WallEvent && f.hasTimes(cpuClock) && f.hasTimes(ingest.OffCPUEvent) {
		f.wall = true
		wanted = func(e stackmap.Event) bool { return e.Name == cpuClock || e.Name == ingest.OffCPUEvent }
		f.events = []ingest.Event{{Name: ingest.WallEvent, Unit: "nanoseconds"}}
	}
	for i, e := range f.set.Events {
		switch {
		case !wanted(e):
			f.event[i] = -1
		case !f.wall:
			f.event[i] = len(f.events)
			f.events = append(f.events, ingest.Event{Name: e.Name, Unit: e.Unit, Period: e.Period})
		}
	}
}

// hasTimes reports whether the set has an event that is weighed by time.
func (f *stackFolder) hasTimes(event string) bool {
	return slices.ContainsFunc(f.set.Events, func(e stackmap.Event) bool {
		return e.Name == event && e.Unit == "nanoseconds"
	})
}

// checkEvent returns an error if the set lacks the selected event.
func (f *stackFolder) checkEvent() error {
	if f.opts.Event == "" || len(f.events) > 0 {
		return nil
	}
	err := &ingest.EventError{Capture: f.file.path, Event: f.opts.Event}
	for _, e := range f.set.Events {
		err.Has = append(err.Has, e.Name)
	}
	if f.opts.Event == ingest.WallEvent || f.opts.Event == ingest.OffCPUEvent {
		return texts.WithHint(err, "record it with `symbolize capture --stacks --wall`")
	}
	return err
}

// hasStates reports whether selected samples have the states of threads.
func (f *stackFolder) hasStates() bool {
	return slices.ContainsFunc(f.set.Samples, func(s stackmap.Sample) bool {
		return s.State != 0 && f.event[s.Event] >= 0
	})
}

// tagsOf returns the number of the tags of a sample, the state of its thread and who woke it, 0 for
// none.
func (f *stackFolder) tagsOf(sm *stackmap.Sample) uint32 {
	state := stateNone
	switch {
	case sm.State > 0:
		state, _ = f.states.stop(uint64(sm.State - 1))
	case f.wall && f.set.Events[sm.Event].Name == cpuClock:
		state = stateRunning
	case f.wall:
		state = stateUnknown
	}
	text := ""
	if state != stateNone {
		text = ingest.JoinTags(ingest.StateTag, f.states.name(state))
	}
	if sm.Waker > 0 && f.wakers {
		name := interruptName
		if w := &f.set.Wakers[sm.Waker-1]; !w.Interrupt {
			name = w.Comm
		}
		text = ingest.AppendTags(text, ingest.JoinTags(ingest.WakerTag, name))
	}
	if text == "" {
		return 0
	}
	return f.tags.Number(text)
}
