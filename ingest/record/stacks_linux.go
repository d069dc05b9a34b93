package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sampler"
	"symbolize/ingest/record/sys"
)

// stacks runs the samplers, one for each event, and reads the mappings of processes that have bare
// addresses in their stacks.
type stacks struct {
	s     *recording
	procs *processes
	list  []*sampler.Sampler // Wait and Wake are of the first
	// changes of the kernel's address space
	changes *history.CodeLog

	pause, longest time.Duration  // between two drains
	reported       map[int32]bool // processes reported by the sampler since the last drain
	recent         map[int32]bool // processes reported in the drainEvery starting at since
	since          time.Time

	requested atomic.Bool          // a part is requested
	turned    time.Time            // time of Turn; zero: no Turn is pending
	ended     uint64               // its end by CLOCK_MONOTONIC, valid when parts was received
	parts     chan []*sampler.Part // the requested part of each sampler; nil after an error

	unproven uint64 // samples, see sampler.Part

	stopping atomic.Bool
	done     chan struct{} // closed when the loop has ended; nil: not started
}

// load makes the sampler, without starting it. Probing the kernel's features loads programs, which
// must not appear in the recorded loads.
func (x *stacks) load() error {
	o := *x.s.opts.Stacks
	x.longest = longestPause(&o)
	x.reported, x.recent = make(map[int32]bool), make(map[int32]bool)
	o.Mappings = func(pid int32) {
		if !sampler.IsOutside(pid) { // processes outside the namespace cannot be read
			x.reported[pid] = true
		}
	}
	_, vdso, err := ownVDSO(&x.s.host)
	if err != nil {
		vdso = buildid.ID{}
	}
	x.procs.identify(vdso)
	if o.HostPIDs = x.s.opts.HostProc != ""; !o.HostPIDs && !sampler.InitialNamespace() {
		x.s.warnAhead("in a container processes of the host and of other containers are sampled " +
			"without their mappings: their addresses without a build ID will have no names; " +
			"mount the host's /proc and name it with --host-proc, or run with --pid=host")
	}
	if len(o.PIDs) > 0 && !slices.ContainsFunc(o.PIDs, x.procs.exists) {
		return stacksError(fmt.Errorf("%w: no process %d", sampler.ErrTarget, o.PIDs[0]))
	}
	o.Changes = x.changes
	for _, of := range o.Events() {
		sm, err := sampler.New(of)
		if err != nil {
			return stacksError(err)
		}
		if x.list = append(x.list, sm); len(x.list) > 1 {
			if err := x.list[0].WakeBy(sm); err != nil {
				return stacksError(err)
			}
		}
	}
	return nil
}

func (x *stacks) start() error {
	for _, sm := range x.list {
		if err := sm.Start(); err != nil {
			return stacksError(err)
		}
	}
	x.done, x.parts = make(chan struct{}), make(chan []*sampler.Part, 1)
	go x.loop()
	return nil
}

// loop drains the sampler until stop. Nothing in it may block: samples that are not drained in time
// are lost.
func (x *stacks) loop() {
	defer close(x.done)
	for !x.stopping.Load() {
		woken := x.list[0].Wait(x.pause)
		switch unrecorded := x.receive(woken); {
		case woken && unrecorded:
			time.Sleep(leastPause)
		case woken:
			time.Sleep(recordedPause)
		}
		x.turn()
	}
	for x.requested.Load() { // cut waits for the request
		time.Sleep(leastTurn)
		x.turn()
	}
}

// leastTurn is the longest time between the start of a sample and its arrival.
const leastTurn = 20 * time.Millisecond

// turn completes a requested part: it first calls Turn, and later, when no samples of the old part
// can arrive any more, Cut.
func (x *stacks) turn() {
	switch {
	case x.turned.IsZero() && slices.ContainsFunc(x.list, (*sampler.Sampler).Full):
		x.s.flushSoon()
		fallthrough
	case x.turned.IsZero():
		if !x.requested.Load() {
			return
		}
		for _, sm := range x.list {
			if err := sm.Turn(); err != nil {
				x.s.warn("samples are not flushed: %v", err)
				x.requested.Store(false)
				x.parts <- nil
				return
			}
		}
		x.ended = x.s.host.Monotonic()
		x.turned, x.pause = time.Now(), leastTurn
	case time.Since(x.turned) >= leastTurn:
		x.turned = time.Time{}
		x.requested.Store(false)
		var parts []*sampler.Part
		for _, sm := range x.list {
			parts = append(parts, sm.Cut())
		}
		x.parts <- parts
	}
}

// cut returns the complete samples since the last cut, nil on failure, and the time of their end by
// CLOCK_MONOTONIC.
func (x *stacks) cut() (parts []*sampler.Part, end uint64) {
	x.requested.Store(true)
	select {
	case parts = <-x.parts:
		if parts != nil {
			end = x.ended
		}
	case <-x.done:
	}
	return parts, end
}

// addParts explains the parts of the samplers and adds them to a bundle as a segment. It returns
// the manifest's entries and the mappings that addresses need.
func (x *stacks) addParts(w *bundle.Writer, parts []*sampler.Part) (list []bundle.Samples,
	by *places, err error) {
	by = x.explainParts(parts)
	for _, p := range parts {
		m, err := p.Write(w, true)
		if err != nil {
			return nil, nil, err
		}
		m.Files = x.procs.files(p.HasFile)
		list = append(list, m)
	}
	return list, by, nil
}

func stacksError(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: %w", ErrRights, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStacks, err)
	}
	return nil
}

func (x *stacks) drain() time.Duration { return 0 }

// receive drains the sampler and reads the mappings of the processes that it reports, unless
// records have them. If there are any, the next drain is soon, because a process may be
// short-lived; otherwise the pauses get longer. woken: the sampler met a new process, which is read
// at once, but not repeatedly, because mappings rarely change. receive reports whether records
// lacked the mappings of a process.
func (x *stacks) receive(woken bool) (unrecorded bool) {
	clear(x.reported)
	for _, sm := range x.list {
		sm.Drain()
	}
	x.pause = nextPause(x.pause, x.longest, len(x.reported) > 0)
	if time.Since(x.since) >= drainEvery {
		clear(x.recent)
		x.since = time.Now()
	}
	if len(x.reported) > 0 {
		x.procs.mapped.sync() // it may request short-lived files
	}
	for pid := range x.reported {
		x.procs.sampled(pid)
		switch {
		case x.procs.recorded(pid):
			continue
		case woken && !x.recent[pid]:
			x.procs.readNow(pid)
		default:
			x.procs.changed(pid)
		}
		x.recent[pid], unrecorded = true, true
	}
	return unrecorded
}

// leastPause is the shortest pause between drains, even if new processes request one; recordedPause
// is the shortest one if records have the mappings of the last ones.
const (
	leastPause    = time.Millisecond
	recordedPause = 25 * time.Millisecond
)

// nextPause returns the pause after this one.
func nextPause(pause, longest time.Duration, reported bool) time.Duration {
	if reported {
		return drainEvery
	}
	return max(drainEvery, min(2*pause, longest))
}

// longestPause returns how long the sampler can run without a drain: until a quarter of its ring is
// full of stacks of full depth, if the number of samples per second is known.
func longestPause(o *sampler.Options) time.Duration {
	if o.Event.Kind != sampler.Clock || o.Wall {
		return drainEvery
	}
	cpus, err := sys.OnlineCPUs()
	if err != nil {
		return drainEvery
	}
	return pauseAt(cmp.Or(o.Frequency, sampler.DefaultFrequency) * len(cpus))
}

// pauseAt is longestPause for a number of samples per second on all CPUs.
func pauseAt(rate int) time.Duration {
	pause := sampler.RingStacks / 4 * time.Second / time.Duration(rate)
	return min(max(pause, drainEvery), time.Second)
}

func (x *stacks) stop() {
	if x.done != nil && !x.stopping.Swap(true) {
		x.list[0].Wake()
		<-x.done
	}
	for _, sm := range x.list {
		sm.Stop()
	}
}

// explain locates bare addresses in the stacks, after the mappings of all their processes were
// read.
func (x *stacks) explain() {
	if x.procs.ids == nil {
		return
	}
	var parts []*sampler.Part
	for _, sm := range x.list {
		parts = append(parts, sm.Part)
	}
	x.procs.places = x.explainParts(parts)
	if x.unproven > 0 {
		x.s.warn("%d samples have addresses that were looked up in mappings read up to a second "+
			"later: code mapped in between may have given them its name", x.unproven)
	}
}

// explainParts locates the bare addresses of parts, and returns the mappings that they need; nil
// after an error.
func (x *stacks) explainParts(parts []*sampler.Part) *places {
	x.procs.mapped.sync()
	by := newPlaces(x.procs)
	var failed error
	for _, p := range parts {
		if err := p.Explain(by); err != nil {
			failed = err
			x.s.warn("addresses without a build ID have no names: %v", err)
		}
		x.unproven += p.Unproven()
		for kind, cause := range unplaced {
			x.s.lost(cause, p.Unplaced(kind))
		}
	}
	if failed != nil {
		return nil
	}
	return by
}

// unplaced holds the causes of addresses without a place.
var unplaced = map[sampler.PlaceKind]string{
	sampler.Gone:      "names of samples: their process had ended before its mappings could be read",
	sampler.Unread:    "names of samples: the mappings of their process could not be read in time",
	sampler.Ambiguous: "names of samples: their process changed its mappings at unknown times",
}

func (x *stacks) add(w *bundle.Writer) error {
	for i, sm := range x.list {
		m, err := sm.Write(w)
		if err != nil {
			return err
		}
		if err := sm.Err(); err != nil {
			x.s.warn("counts of stacks: %v", err)
		}
		m.Files = x.procs.files(sm.HasFile)
		x.s.manifest.Samples = append(x.s.manifest.Samples, m)
		st := sm.Stats()
		if i > 0 {
			x.s.summary.Stacks.Add(&st)
			continue
		}
		x.s.summary.Stacks = &st
	}
	return nil
}

func (x *stacks) close() {
	for _, sm := range x.list {
		sm.Close()
	}
}
