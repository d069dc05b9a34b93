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

// stacks runs the sampler, and reads the mappings of processes that have bare addresses in their
// stacks.
type stacks struct {
	s     *session
	procs *processes
	sm    *sampler.Sampler
	// changes of the kernel's address space
	changes *history.CodeLog

	pause, longest time.Duration  // between two drains
	reported       map[int32]bool // processes reported by the sampler since the last drain
	recent         map[int32]bool // processes reported in the drainEvery starting at since
	since          time.Time

	requested atomic.Bool        // a part is requested
	turned    time.Time          // time of Turn; zero: no Turn is pending
	ended     uint64             // its end by CLOCK_MONOTONIC, valid when parts was received
	parts     chan *sampler.Part // the requested part; nil after an error

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

// loop drains the sampler until stop. Nothing in it may block: samples that are not drained in time
// are lost.
func (x *stacks) loop() {
	defer close(x.done)
	for !x.stopping.Load() {
		woken := x.sm.Wait(x.pause)
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
	case x.turned.IsZero() && x.sm.Full():
		x.s.flushSoon()
		fallthrough
	case x.turned.IsZero():
		if !x.requested.Load() {
			return
		}
		if err := x.sm.Turn(); err != nil {
			x.s.warn("samples are not flushed: %v", err)
			x.requested.Store(false)
			x.parts <- nil
			return
		}
		x.ended = x.s.host.Monotonic()
		x.turned, x.pause = time.Now(), leastTurn
	case time.Since(x.turned) >= leastTurn:
		x.turned = time.Time{}
		x.requested.Store(false)
		x.parts <- x.sm.Cut()
	}
}

// cut returns the complete samples since the last cut, nil on failure, and the time of their end by
// CLOCK_MONOTONIC.
func (x *stacks) cut() (p *sampler.Part, end uint64) {
	x.requested.Store(true)
	select {
	case p = <-x.parts:
		if p != nil {
			end = x.ended
		}
	case <-x.done:
	}
	return p, end
}

// addPart explains a part and adds it to a bundle as a segment. It returns the manifest's entry and
// the mappings that addresses need.
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

// receive drains the sampler and reads the mappings of the processes that it reports, unless
// records have them. If there are any, the next drain is soon, because a process may be
// short-lived; otherwise the pauses get longer. woken: the sampler met a new process, which is read
// at once, but not repeatedly, because mappings rarely change. receive reports whether records
// lacked the mappings of a process.
func (x *stacks) receive(woken bool) (unrecorded bool) {
	clear(x.reported)
	x.sm.Drain()
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
	recordedPause = 10 * time.Millisecond
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
	if o.Event.Kind != sampler.Clock {
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
		x.sm.Wake()
		<-x.done
	}
	if x.sm != nil {
		x.sm.Stop()
	}
}

// explain locates bare addresses in the stacks, after the mappings of all their processes were
// read.
func (x *stacks) explain() {
	if x.procs.ids == nil {
		return
	}
	found := newPlaces(x.procs)
	if err := x.explainPart(x.sm.Part, found); err == nil {
		x.procs.places = found
	}
	if x.unproven > 0 {
		x.s.warn("%d samples have addresses that were looked up in mappings read up to a second "+
			"later: code mapped in between may have given them its name", x.unproven)
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

// unplaced holds the causes of addresses without a place.
var unplaced = map[sampler.PlaceKind]string{
	sampler.Gone:      "names of samples: their process had ended before its mappings could be read",
	sampler.Unread:    "names of samples: the mappings of their process could not be read in time",
	sampler.Ambiguous: "names of samples: their process changed its mappings at unknown times",
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
