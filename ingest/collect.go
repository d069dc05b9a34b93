package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"symbolize/ingest/addrspace"
	"symbolize/ingest/intern"
	"symbolize/ingest/perfdata"
)

// collector is what all workers of the second pass share. It is read only.
type collector struct {
	*sideband
	opts     *Options
	events   []Event
	event    []int  // by event of the file: index in events, -1 if filtered out
	wantComm []bool // by comm: wanted; nil for all
	pids     map[int32]bool
}

// newCollector applies the filters to what the file has.
func newCollector(sb *sideband, opts *Options) (*collector, error) {
	c := &collector{sideband: sb, opts: opts}
	if err := c.chooseEvents(); err != nil {
		return nil, err
	}
	if len(opts.Comms) > 0 {
		c.wantComm = make([]bool, len(sb.comms))
		for i, name := range sb.comms {
			c.wantComm[i] = slices.Contains(opts.Comms, name)
		}
	}
	if len(opts.PIDs) > 0 {
		c.pids = make(map[int32]bool)
		for _, pid := range opts.PIDs {
			c.pids[pid] = true
		}
	}
	return c, nil
}

// chooseEvents makes one event of the profile of all attrs with the same name.
func (c *collector) chooseEvents() error {
	var names []string
	for i := range c.file.Events {
		ev := &c.file.Events[i]
		at := -1
		if !slices.Contains(names, ev.Name) {
			names = append(names, ev.Name)
		}
		if c.opts.Event == "" || c.opts.Event == ev.Name {
			at = slices.IndexFunc(c.events, func(e Event) bool { return e.Name == ev.Name })
			if at < 0 {
				at = len(c.events)
				c.events = append(c.events, newEvent(ev))
			} else if c.events[at].Period != newEvent(ev).Period {
				c.events[at].Period = 0
			}
		}
		c.event = append(c.event, at)
	}
	if c.opts.Event != "" && len(c.events) == 0 {
		return fmt.Errorf("%s: no event %q in it, only %s", c.file.Name, c.opts.Event,
			strings.Join(names, ", "))
	}
	return nil
}

func newEvent(ev *perfdata.Event) Event {
	e := Event{Name: ev.Name, Unit: "count"}
	const cpuClock, taskClock = 0, 1
	if a := &ev.Attr; a.Type == perfdata.AttrSoftware && (a.Config == cpuClock ||
		a.Config == taskClock) {
		e.Unit = "nanoseconds"
	}
	if !ev.Attr.Has(perfdata.FlagFreq) {
		e.Period = ev.Attr.SamplePeriod
	}
	return e
}

// unnamed is the bit of a comm code that says: no record names the thread, the
// rest is its number.
const unnamed = 1 << 31

// commCode packs what a thread is called, or its number where nothing says it.
func commCode(comm uint32, tid int32) uint32 {
	if comm == addrspace.NoComm {
		return unnamed | uint32(tid)
	}
	return comm
}

// commName returns the name for a code; ":TID" is what perf prints for threads
// without one.
func (sb *sideband) commName(code uint32) string {
	if code&unnamed != 0 {
		return ":" + strconv.Itoa(int(int32(code<<1)>>1))
	}
	return sb.comms[code]
}

func (c *collector) wanted(pid int32, comm uint32) bool {
	if c.pids != nil && !c.pids[pid] {
		return false
	}
	if c.wantComm == nil {
		return true
	}
	if comm&unnamed != 0 {
		return slices.Contains(c.opts.Comms, c.commName(comm))
	}
	return c.wantComm[comm]
}

// threadState is a thread's name and its process's address space over a time in
// which neither changes.
type threadState struct {
	pid, tid    int32
	comm        uint32
	version     addrspace.Version
	from, until uint64
	valid       bool

	// The labels of the thread's last sample, and their number with a worker.
	labelled bool
	labels   labels
	label    uint32
}

const threadCache = 1 << 10

// reader decodes the samples of the wanted events, processes and comms: what
// folding and replay have in common. It is for one goroutine.
type reader struct {
	c       *collector
	records *perfdata.RecordReader
	sample  perfdata.Sample
	split   *splitter
	threads []threadState // direct-mapped by tid
	plain   bool          // chains may be simplified, as their addresses do not matter
	kspan   addrspace.Span
	haveK   bool

	// Of the present sample.
	rec         *perfdata.Record
	time        uint64
	event       int
	comm        uint32
	user        addrspace.Version
	kernel      addrspace.Version
	kpart, part []byte
	thread      *threadState

	stats    Stats
	warnings []warningAt
}

func newReader(c *collector) *reader {
	return &reader{c: c, split: newSplitter(c.file), threads: make([]threadState, threadCache)}
}

// chunk starts reading records [from, to).
func (r *reader) chunk(from, to int64) {
	if r.records == nil {
		r.records = r.c.file.Records(from, to)
		return
	}
	r.records.Reset(from, to)
}

// next advances to the next wanted sample.
func (r *reader) next() bool {
	for r.records.Next() {
		rec := r.records.Record()
		if rec.Type != perfdata.TypeSample {
			continue
		}
		if err := r.c.file.DecodeSample(rec, &r.sample); err != nil {
			r.bad(rec, err)
			continue
		}
		r.event = r.c.event[r.sample.Event]
		if r.event < 0 {
			r.stats.FilteredOut++
			continue
		}
		r.rec = rec
		r.time = r.c.clock.at(r.sample.Time, rec.Offset)
		if !r.who() {
			r.stats.FilteredOut++
			continue
		}
		r.kpart, r.part = r.split.split(rec, &r.sample)
		if r.plain {
			r.part = r.split.simplify(r.part, r.c.spaces)
		}
		return true
	}
	return false
}

func (r *reader) bad(rec *perfdata.Record, err error) {
	if errors.Is(err, perfdata.ErrUnknownID) {
		r.stats.UnknownIDs++
		return
	}
	r.stats.BadRecords++
	if len(r.warnings) < maxWarnings {
		r.warnings = append(r.warnings, warningAt{rec.Offset, Warning{Text: err.Error(), Partial: true}})
	}
}

// who finds the thread's name and the address spaces, and says whether the
// sample passes the filters.
func (r *reader) who() bool {
	s := &r.sample
	st := &r.threads[uint32(s.TID)%threadCache]
	if !st.valid || st.tid != s.TID || st.pid != s.PID || r.time < st.from ||
		r.time >= st.until && st.until != addrspace.Forever {
		*st = r.threadState(s.PID, s.TID, r.time)
	}
	if !r.haveK || !r.kspan.Holds(r.time) {
		r.kspan, r.haveK = r.c.spaces.Kernel(r.time), true
	}
	r.thread = st
	r.comm, r.user, r.kernel = st.comm, st.version, r.kspan.Version()
	return r.c.wanted(s.PID, st.comm)
}

func (r *reader) threadState(pid, tid int32, t uint64) threadState {
	name, proc := r.c.spaces.Thread(tid, t), r.c.spaces.Process(pid, t)
	return threadState{
		pid: pid, tid: tid, comm: commCode(name.Value, tid), version: proc.Version(),
		from: max(name.From, proc.From), until: min(name.Until, proc.Until), valid: true,
	}
}

// worker folds the samples of some chunks.
type worker struct {
	*reader
	finder       locator
	numbers      *intern.Pairs // of places
	kernelChains *chainTable
	userChains   *chainTable
	rows         *rowTable
	places       []intern.Pair // by local location, when all chunks are done
	first, last  uint64        // recorded times of samples
	err          error
}

func newWorker(c *collector) *worker {
	w := &worker{reader: newReader(c), rows: newRowTable(), first: noTime}
	w.plain = true
	w.numbers = intern.NewPairs()
	w.finder.sb = c.sideband
	w.finder.number = func(object uint32, offset uint64) uint32 {
		return w.numbers.Add(intern.Pair{Object: object, Offset: offset})
	}
	w.kernelChains = newChainTable(&w.finder)
	w.userChains = newChainTable(&w.finder)
	return w
}

// collect is the second pass: workers take chunks of the file and fold the samples
// in them, each into tables of its own.
func collect(ctx context.Context, c *collector) ([]*worker, error) {
	n := c.opts.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	n = max(1, min(n, len(c.chunks)-1))
	workers := make([]*worker, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range workers {
		w := newWorker(c)
		workers[i] = w
		wg.Go(func() {
			for {
				k := int(next.Add(1)) - 1
				if k >= len(c.chunks)-1 || w.err != nil {
					return
				}
				if w.err = ctx.Err(); w.err == nil {
					w.fold(c.chunks[k], c.chunks[k+1])
				}
			}
		})
	}
	wg.Wait()
	for _, w := range workers {
		if w.err != nil {
			return nil, w.err
		}
	}
	return workers, nil
}

// fold folds the samples of one chunk.
func (w *worker) fold(from, to int64) {
	w.chunk(from, to)
	for w.next() {
		s := &w.sample
		kernel := w.kernelChains.add(w.kpart, w.user, w.kernel)
		user := w.userChains.add(w.part, w.user, w.kernel)
		if kernel.frames == 0 && user.frames == 0 { // markers and rubbish only
			cut := (kernel.flags | user.flags) & partCut
			kernel, user = w.alone()
			user.flags |= cut
		}
		w.rows.add(row{kernel: kernel.part, user: user.part, label: w.label(), count: 1,
			weight: s.Period})
		w.stats.Samples++
		w.stats.Weight += s.Period
		w.stats.Frames += uint64(kernel.frames) + uint64(user.frames)
		if (kernel.flags|user.flags)&partCut != 0 {
			w.stats.CutChains++
		}
		w.first, w.last = min(w.first, s.Time), max(w.last, s.Time)
	}
	if err := w.records.Err(); err != nil && w.err == nil {
		w.err = err // the file changed since the first pass, or cannot be read any more
	}
}

// label numbers the labels of the present sample. Those of the thread's last
// sample are mostly the same.
func (w *worker) label() uint32 {
	s, st, keep := &w.sample, w.thread, w.c.opts.Keep
	l := labels{comm: w.comm, pid: -1, tid: -1, cpu: -1, event: uint16(w.event)}
	if keep.PID {
		l.pid = s.PID
	}
	if keep.TID {
		l.tid = s.TID
	}
	if keep.CPU {
		l.cpu = int32(s.CPU)
	}
	if !st.labelled || st.labels != l {
		st.labels, st.label, st.labelled = l, w.rows.label(l), true
	}
	return st.label
}

// alone gives a sample whose chain has no address the stack of its own one; where
// that is none either, the stack was not recorded.
func (w *worker) alone() (kernel, user chainValue) {
	k, u := w.split.lone(w.rec, &w.sample)
	kernel = w.kernelChains.add(k, w.user, w.kernel)
	user = w.userChains.add(u, w.user, w.kernel)
	if kernel.frames == 0 && user.frames == 0 {
		user = w.userChains.add(notUnwound, w.user, w.kernel)
	}
	return kernel, user
}
