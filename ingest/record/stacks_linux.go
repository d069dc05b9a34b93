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

// stacks has the sampler count stacks, and the mappings taken of processes whose frames
// are bare addresses.
type stacks struct {
	s     *session
	procs *processes
	sm    *sampler.Sampler
	// changes are those of the kernel's address space.
	changes *history.CodeLog

	pause, longest time.Duration  // between two drains
	reported       map[int32]bool // processes that the sampler reported since the last one
	recent         map[int32]bool // those that it reported in drainEvery from since on
	since          time.Time

	asked  atomic.Bool        // for a part
	turned time.Time          // when the part was turned; zero: it was not
	ended  uint64             // likewise, by CLOCK_MONOTONIC; for who has received it from parts
	parts  chan *sampler.Part // the requested part, nil after an error

	unproven uint64 // samples, see sampler.Part

	stopping atomic.Bool
	done     chan struct{} // closed when the loop has ended; nil: it was not begun
}

// load makes the sampler, which samples nothing yet. The kernel's features are probed by
// loading programs, which must not appear among the recorded loads.
func (x *stacks) load() error {
	o := *x.s.opts.Stacks
	x.longest = longestPause(&o)
	x.reported, x.recent = make(map[int32]bool), make(map[int32]bool)
	o.Mappings = func(pid int32) {
		if !sampler.IsOutside(pid) { // nothing can be read of those
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
		return stacksError(fmt.Errorf("%w: there is no process %d", sampler.ErrTarget, o.PIDs[0]))
	}
	o.Changes = x.changes
	x.sm, err = sampler.New(o)
	return stacksError(err)
}

func (x *stacks) start() error {
	if err := x.sm.Start(); err != nil {
		return stacksError(err)
	}
	x.done, x.parts = make(chan struct{}), make(chan *sampler.Part, 1)
	go x.loop()
	return nil
}

// loop takes samples until stop. It does nothing that could delay it, for samples not taken in time
// are lost.
func (x *stacks) loop() {
	defer close(x.done)
	for !x.stopping.Load() {
		woken := x.sm.Wait(x.pause)
		x.take(woken)
		if woken {
			time.Sleep(leastPause)
		}
		x.turn()
	}
	for x.asked.Load() { // who asked waits
		time.Sleep(leastTurn)
		x.turn()
	}
}

// leastTurn is how long samples may take that were begun before a turn.
const leastTurn = 20 * time.Millisecond

// turn hands out a part that was asked for: first it has the sampler turn to the next one, then
// it waits until nothing more comes for the one before.
func (x *stacks) turn() {
	switch {
	case x.turned.IsZero() && x.sm.Full():
		x.s.flushSoon()
		fallthrough
	case x.turned.IsZero():
		if !x.asked.Load() {
			return
		}
		if err := x.sm.Turn(); err != nil {
			x.s.warn("what was sampled is not made durable: %v", err)
			x.asked.Store(false)
			x.parts <- nil
			return
		}
		x.ended = x.s.host.Monotonic()
		x.turned, x.pause = time.Now(), leastTurn
	case time.Since(x.turned) >= leastTurn:
		x.turned = time.Time{}
		x.asked.Store(false)
		x.parts <- x.sm.Cut()
	}
}

// cut returns the samples since the last cut, complete, and the time of their end by CLOCK_MONOTONIC;
// nil if that is not possible.
func (x *stacks) cut() (p *sampler.Part, end uint64) {
	x.asked.Store(true)
	select {
	case p = <-x.parts:
		if p != nil {
			end = x.ended
		}
	case <-x.done:
	}
	return p, end
}

// addPart explains a part, and adds it to a bundle as a segment of it. It returns the
// manifest's entry for it, and the mappings that addresses need.
func (x *stacks) addPart(w *bundle.Writer, p *sampler.Part) (m bundle.Samples, by *places,
	err error) {
	by = newPlaces(x.procs)
	if err := x.explainPart(p, by); err != nil {
		by = nil
	}
	if m, err = p.Write(w, true); err == nil {
		m.Files = x.procs.files(p.HasFile)
	}
	return m, by, err
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

// take takes the new stacks, and has the mappings read of processes that they come from: soon
// again if there are any, for a process may not live long, else later every time. Woken:
// there is a new process. It is read at once, but not again and again, for the mappings
// rarely change.
func (x *stacks) take(woken bool) {
	clear(x.reported)
	x.sm.Drain()
	x.pause = nextPause(x.pause, x.longest, len(x.reported) > 0)
	if time.Since(x.since) >= drainEvery {
		clear(x.recent)
		x.since = time.Now()
	}
	if len(x.reported) > 0 {
		x.procs.mapped.sync() // it may ask for files that are not mapped for long
	}
	for pid := range x.reported {
		x.procs.sampled(pid)
		if woken && !x.recent[pid] {
			x.procs.hurry(pid)
		} else {
			x.procs.changed(pid)
		}
		x.recent[pid] = true
	}
}

// leastPause is between two drains even where a new process asks for each.
const leastPause = time.Millisecond

// nextPause returns the pause after this one.
func nextPause(pause, longest time.Duration, reported bool) time.Duration {
	if reported {
		return drainEvery
	}
	return max(drainEvery, min(2*pause, longest))
}

// longestPause returns how long the sampler may be left alone: until a quarter of its ring
// is full, of stacks as deep as can be, where it is known how many there are in a second.
func longestPause(o *sampler.Options) time.Duration {
	if o.Event.Kind != sampler.Clock {
		return drainEvery
	}
	cpus, err := sys.OnlineCPUs()
	if err != nil {
		return drainEvery
	}
	return pauseAt(cmp.Or(o.Frequency, sampler.DefaultFrequency) * len(cpus))
}

// pauseAt is longestPause for samples per second on all CPUs together.
func pauseAt(rate int) time.Duration {
	pause := sampler.RingStacks / 4 * time.Second / time.Duration(rate)
	return min(max(pause, drainEvery), time.Second)
}

func (x *stacks) stop() {
	if x.done != nil && !x.stopping.Swap(true) {
		x.sm.Wake()
		<-x.done
	}
	if x.sm != nil {
		x.sm.Stop()
	}
}

// explain locates bare addresses in the stacks, once the mappings of all their
// processes are read.
func (x *stacks) explain() {
	if x.procs.ids == nil {
		return
	}
	found := newPlaces(x.procs)
	if err := x.explainPart(x.sm.Part, found); err == nil {
		x.procs.places = found
	}
	if x.unproven > 0 {
		x.s.warn("%d samples have addresses that were looked up in mappings as they were up to a "+
			"second later: code that was mapped in between would have given them its name", x.unproven)
	}
}

// explainPart locates the bare addresses of a part.
func (x *stacks) explainPart(p *sampler.Part, by *places) error {
	x.procs.mapped.sync()
	err := p.Explain(by)
	if err != nil {
		x.s.warn("addresses without a build ID have no names: %v", err)
	}
	x.unproven += p.Unproven()
	for kind, cause := range unplaced {
		x.s.lost(cause, p.Unplaced(kind))
	}
	return err
}

// unplaced are the causes for which samples have addresses without a place.
var unplaced = map[sampler.PlaceKind]string{
	sampler.Gone:      "names of samples: their process had ended before its mappings could be read",
	sampler.Unread:    "names of samples: the mappings of their process could not be read in time",
	sampler.Ambiguous: "names of samples: their process changed its mappings, at times that are not known",
}

func (x *stacks) add(w *bundle.Writer) error {
	m, err := x.sm.Write(w)
	if err != nil {
		return err
	}
	if err := x.sm.Err(); err != nil {
		x.s.warn("counts of stacks: %v", err)
	}
	m.Files = x.procs.files(x.sm.HasFile)
	x.s.manifest.Samples = append(x.s.manifest.Samples, m)
	st := x.sm.Stats()
	x.s.summary.Stacks = &st
	return nil
}

func (x *stacks) close() {
	if x.sm != nil {
		x.sm.Close()
	}
}
