package merge

import (
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/intern"
	"symbolize/ingest/pair"
)

// TrimWaits removes the scheduler's functions from the stacks of waits, which have an
// ingest.StateTag: a stack begins at the function that waited, and the part of a waker above it at
// the function that woke. It needs names. Parts of nothing but the scheduler are kept.
func TrimWaits(p *ingest.Profile) {
	isWait := waitsByTags(p)
	if !slices.Contains(isWait, true) {
		return
	}
	t := newWaitTrimmer(p)
	forest, trimmed := intern.NewForest(), false
	numbers := [2][]uint32{make([]uint32, len(p.Callers)), make([]uint32, len(p.Callers))}
	stacks := make([]ingest.StackID, len(p.Samples))
	for i := range p.Samples {
		s := &p.Samples[i]
		of := &numbers[0][s.Stack]
		if isWait[s.Tags] {
			of = &numbers[1][s.Stack]
		}
		if *of == 0 {
			list := t.stack(s.Stack)
			if n := len(list); isWait[s.Tags] {
				list = t.trim(list)
				trimmed = trimmed || len(list) < n
			}
			*of = 1 + forest.Add(list)
		}
		stacks[i] = ingest.StackID(*of - 1)
	}
	if !trimmed {
		return
	}
	for i, s := range stacks {
		p.Samples[i].Stack = s
	}
	SetStacks(p, forest.Trees(), t.locations)
	p.Samples = Samples(p.Samples)
}

// WaitStart returns the number of a wait's first frames that are not part of its stack, of n with
// these locations.
func WaitStart(p *ingest.Profile, n int, location func(i int) ingest.LocationID) int {
	for i := range n {
		if waits, _ := isScheduler(p, location(i)); !waits {
			return i
		}
	}
	return 0
}

// isScheduler is pair.IsScheduler for a location; false without names.
func isScheduler(p *ingest.Profile, l ingest.LocationID) (waits, wakes bool) {
	if p.Names == nil || p.Objects[p.Locations[l].Object].Kind != ingest.Kernel {
		return false, false
	}
	frames := p.Names.At(l)
	if len(frames) == 0 {
		return false, false
	}
	return pair.IsScheduler(p.Names.Functions[frames[len(frames)-1].Func].SystemName)
}

// waitsByTags reports which tags of samples, by their string, are those of waits.
func waitsByTags(p *ingest.Profile) []bool {
	known, waits := make([]bool, len(p.Strings)), make([]bool, len(p.Strings))
	for i := range p.Samples {
		if s := &p.Samples[i]; !known[s.Tags] {
			state := p.Tag(s, ingest.StateTag)
			known[s.Tags], waits[s.Tags] = true, state != "" && state != ingest.RunningState
		}
	}
	return waits
}

// waitTrimmer trims stacks, which are lists of locations, innermost first.
type waitTrimmer struct {
	p         *ingest.Profile
	locations []ingest.LocationID // each
	// By location: functions of the scheduler between the function that waits, or wakes, and the
	// tracepoint; and frames between the part of a waker and that of the thread it woke.
	waits, wakes, between []bool
	list                  []uint32
}

func newWaitTrimmer(p *ingest.Profile) *waitTrimmer {
	n := len(p.Locations)
	t := &waitTrimmer{p: p, locations: make([]ingest.LocationID, n),
		waits: make([]bool, n), wakes: make([]bool, n), between: make([]bool, n)}
	for i := range t.locations {
		l := ingest.LocationID(i)
		t.locations[i] = l
		t.waits[i], t.wakes[i] = isScheduler(p, l)
		t.between[i] = p.Objects[p.Locations[l].Object].File.Path == ingest.WakersPath
	}
	return t
}

// stack returns a stack in memory that the next call reuses.
func (t *waitTrimmer) stack(s ingest.StackID) []uint32 {
	t.list = t.list[:0]
	for l := range t.p.Frames(s) {
		t.list = append(t.list, uint32(l))
	}
	return t.list
}

// trim trims a stack in place. The parts of wakers come first, each in reverse order.
func (t *waitTrimmer) trim(list []uint32) []uint32 {
	out := list[:0]
	for {
		at := slices.IndexFunc(list, func(l uint32) bool { return t.between[l] })
		if at < 0 {
			break
		}
		end := at
		for end > 0 && t.wakes[list[end-1]] {
			end--
		}
		if end == 0 {
			end = at
		}
		out = append(append(out, list[:end]...), list[at])
		list = list[at+1:]
	}
	begin := slices.IndexFunc(list, func(l uint32) bool { return !t.waits[l] })
	return append(out, list[max(begin, 0):]...)
}
