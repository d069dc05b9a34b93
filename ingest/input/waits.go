package input

import (
	"cmp"
	"context"
	"maps"
	"math/bits"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/intern"
	"symbolize/ingest/pair"
	"symbolize/ingest/sideband"
)

// deriver makes the samples of a derived event. It reads the records of the file in their order,
// numbers stacks and labels, and passes what is left in order of time to ingest/pair: its memory
// grows with the distinct stacks and labels, the living threads, and the events of two rounds.
type deriver struct {
	*reader
	derivation *derivation
	window     pair.Window[derivedRecord]
	threads    pair.Threads
	table      pair.Table
	add        func(*derivedSample) // receives the derived samples

	kept     keptChains
	subjects merge.Numbers[subject]
	labels   []uint32        // by subject: the number of the labels without further tags, plus 1
	pids     map[int32]int32 // of threads
	numbers  threadNumbers
	keys     keyer
	cpu      map[int32]*cpuTime // of wallClock, by thread
	// shares has what share shared out for each thread with a number; a replay has those of the
	// fold, and the number of them that it passed.
	shares   map[int32][]cpuShare
	replayed map[int32]int // nil in a fold
	started  bool
	first    uint64 // times of the records read so far
	last     uint64
	now      uint64 // time of the record that emit passes on
	remote   uint64 // wake-ups of which the waker is unknown
}

// derivedRecord is what is left of a record until its time comes.
type derivedRecord struct {
	kind      recordKind
	why       pair.Why
	interrupt bool
	remote    bool       // who wakes is unknown
	weight    uint64     // of roleOnCPU
	point     pair.Point // of the thread that the record is about
	other     int32      // the thread that runs next, or is woken
	key       pair.Key
}

type recordKind uint8

const (
	recordSwitch recordKind = iota // from one thread to another
	recordIn                       // a SWITCH record
	recordOut
	recordWake
	recordFork
	recordExit
	recordExec
	recordStart
	recordEnd
	recordOnCPU
)

// derivedSample is a sample of a derived event.
type derivedSample struct {
	subject uint32
	stack   uint32 // a kept chain; pair.NoStack if it was not recorded
	missing missingStack
	tags    string // besides those of the subject
	weight  uint64
	count   uint64
	time    uint64 // when it ended
	wakers  []pair.Step
}

// missingStack is why a sample has no stack.
type missingStack uint8

const (
	notMissing missingStack = iota
	beganBefore
	notStarted
	notSampled
	missingStacks
)

var missingNames = [missingStacks]string{
	beganBefore: ingest.WaitedBeforePath,
	notStarted:  ingest.NotYetRunPath,
	notSampled:  ingest.NotSampledPath,
}

func newDeriver(r *reader) *deriver {
	return &deriver{reader: r, derivation: r.c.derived, kept: keptChains{seed: intern.MakeSeed()},
		keys: keyer{seed: intern.MakeSeed()}, pids: make(map[int32]int32),
		cpu: make(map[int32]*cpuTime), shares: make(map[int32][]cpuShare), first: sideband.NoTime}
}

// run reads the file.
func (d *deriver) run(ctx context.Context) error {
	c := d.c
	losses, err := c.losses(ctx)
	if err != nil {
		return err
	}
	if d.numbers, err = c.threadNumbers(ctx); err != nil {
		return err
	}
	d.window.Emit = d.emit
	d.threads = pair.Threads{Losses: losses, Emit: d.waited, Ended: d.share,
		WakerDepth: d.derivation.depth}
	online := c.Records.File.Features.CPUsOnline
	d.threads.Partial = c.Records.CPUs > 0 && uint32(c.Records.CPUs) < online
	if d.derivation.wakers {
		d.threads.WakerDepth = max(1, d.derivation.depth)
	}
	if d.derivation.kind == wallClock {
		d.threads.Run = d.ran
	}
	d.table = pair.Table{Losses: losses, Emit: d.paired, OfThreads: d.derivation.ofThreads,
		Partial: d.threads.Partial && !d.derivation.ofCPUs}
	if err := c.inTime(ctx, d.record, d.window.Round, d.window.Upto); err != nil {
		return err
	}
	if err := d.window.Rest(); err != nil {
		return err
	}
	d.now = d.last
	d.threads.Finish(d.last)
	d.table.Finish(d.last)
	for _, tid := range slices.Sorted(maps.Keys(d.cpu)) {
		d.share(tid)
	}
	return nil
}

// record adds a record to the window.
func (d *deriver) record(rec *perfdata.Record) error {
	if rec.Type == perfdata.TypeSample {
		return d.sampled(rec)
	}
	id, _ := d.c.Records.File.SampleID(rec) // the first pass has reported damage
	if id.Time > 0 {                        // perf did not make the record
		d.note(id.Time)
	}
	switch rec.Type {
	case perfdata.TypeComm, perfdata.TypeFork, perfdata.TypeExit:
		return d.life(rec, &id)
	case perfdata.TypeSwitch, perfdata.TypeSwitchCPUWide:
		if id.Time > 0 {
			return d.switched(rec, &id)
		}
	}
	return nil
}

// note extends the interval of the recording to a time.
func (d *deriver) note(time uint64) {
	if time != sideband.NoTime {
		d.first, d.last = min(d.first, time), max(d.last, time)
	}
}

// life adds a record of the beginning or the end of a thread or its program.
func (d *deriver) life(rec *perfdata.Record, id *perfdata.SampleID) error {
	var x perfdata.Comm
	var task perfdata.Task
	r := derivedRecord{point: pair.Point{CPU: cpuOf(id)}}
	switch rec.Type {
	case perfdata.TypeComm:
		if d.c.Records.File.Comm(rec, &x) != nil {
			return nil
		}
		d.pids[x.TID] = x.PID
		if r.kind, r.point.TID = recordExec, x.TID; !x.Exec {
			return nil
		}
	default:
		if d.c.Records.File.Task(rec, &task) != nil {
			return nil
		}
		r.kind, r.point.TID = recordExit, task.TID
		if rec.Type == perfdata.TypeFork {
			d.pids[task.TID] = task.PID
			r.kind = recordFork
		}
	}
	if id.Time == 0 || task.Synthesized {
		return nil
	}
	return d.push(id.Time, r)
}

// cpuOf returns the CPU of a record; -1 if it was not recorded.
func cpuOf(id *perfdata.SampleID) int32 {
	if id.Has&perfdata.SampleCPU == 0 {
		return -1
	}
	return int32(id.CPU)
}

func (d *deriver) push(time uint64, x derivedRecord) error {
	if time == sideband.NoTime {
		return nil
	}
	x.point.Time = time
	return d.window.Add(time, x)
}

// switched adds a SWITCH record, which recordings with --switch-events have besides sched_switch: a
// recording of one process has no other for its threads that start to run, and the kernel may drop
// samples where it keeps these.
func (d *deriver) switched(rec *perfdata.Record, id *perfdata.SampleID) error {
	if d.derivation.kind == pairOf {
		return nil
	}
	x := derivedRecord{kind: recordIn, point: pair.Point{TID: id.TID, CPU: cpuOf(id), Stack: pair.NoStack}}
	if d.numbers.differ && id.TID == 0 {
		x.point.TID = pair.Nobody // the idle thread, or a thread outside of the namespace
	}
	if rec.Misc&perfdata.MiscSwitchOut != 0 {
		state := stateUnknown
		if rec.Misc&perfdata.MiscSwitchOutPreempt != 0 {
			state, x.why = statePreempted, pair.Preempted
		}
		x.kind, x.point.Label = recordOut, d.subjectOf(id.TID, id.Time, state)
	}
	return d.push(id.Time, x)
}

// sampled adds a sample of an event with a role.
func (d *deriver) sampled(rec *perfdata.Record) error {
	s, file := &d.sample, d.c.Records.File
	if err := file.DecodeSample(rec, s); err != nil {
		d.bad(rec, err)
		return nil
	}
	d.note(s.Time)
	r := &d.derivation.roles[s.Event]
	if r.role == noRole {
		return nil
	}
	if s.TID <= 0 && file.Events[s.Event].Attr.Type == perfdata.AttrTracepoint {
		// The thread is idle, has ended, or is outside of the namespace.
		if machine := machineNumber(s.Raw, file.BigEndian); machine != 0 {
			d.setThread(d.numbers.of(machine, s.Time))
		}
	}
	x, state, ok := d.decodeRole(r)
	if !ok {
		d.bad(rec, errShortRaw(file, rec))
		return nil
	}
	if s.TID != x.point.TID {
		d.setThread(x.point.TID)
	}
	d.rec, d.time = rec, d.c.Clock.At(s.Time, sideband.PositionOf(rec))
	selected := d.process()
	if d.guest {
		return nil
	}
	if !d.thread.known {
		d.pids[s.TID], d.thread.known = s.PID, true
	}
	if x.kind != recordEnd {
		x.point.Label = d.subject(state, selected)
		if d.needsStack(&x, selected) {
			d.parts()
			x.point.Stack = d.keep()
		}
	}
	return d.push(s.Time, x)
}

// setThread sets the thread of the current sample.
func (d *deriver) setThread(tid int32) {
	d.sample.TID, d.sample.PID = tid, d.pidOf(tid)
}

// decodeRole makes the record of the current sample, without its label and stack. ok is false if
// fields are missing.
func (d *deriver) decodeRole(r *eventRole) (x derivedRecord, state uint8, ok bool) {
	s, big := &d.sample, d.c.Records.File.BigEndian
	x.point = pair.Point{TID: s.TID, CPU: -1, Stack: pair.NoStack}
	if s.Fields&perfdata.SampleCPU != 0 {
		x.point.CPU = int32(s.CPU)
	}
	switch r.role {
	case roleSwitch:
		prev, ok1 := r.thread.Number(s.Raw, big)
		next, ok2 := r.next.Number(s.Raw, big)
		bits, ok3 := r.state.Number(s.Raw, big)
		x.kind = recordSwitch
		x.point.TID, x.other = d.numbers.of(int32(prev), s.Time), d.numbers.of(int32(next), s.Time)
		state, x.why = d.c.states.stop(bits)
		return x, state, ok1 && ok2 && ok3
	case roleWake:
		woken, ok := r.thread.Number(s.Raw, big)
		x.kind, x.other, x.interrupt = recordWake, d.numbers.of(int32(woken), s.Time), inInterrupt(s.Raw)
		x.remote = r.remote && (x.interrupt || s.TID == 0)
		return x, state, ok
	case roleOnCPU:
		x.kind, x.weight, state = recordOnCPU, s.Period, stateRunning
	case roleStart, roleEnd:
		x.kind, x.key = recordEnd, d.keys.key(s, r, big)
		if r.role == roleStart {
			x.kind = recordStart
		}
	}
	return x, state, true
}

// needsStack reports whether the stack of a record can become part of a sample.
func (d *deriver) needsStack(x *derivedRecord, selected bool) bool {
	switch {
	case x.kind == recordWake:
		return d.derivation.depth > 0
	case x.kind == recordSwitch && d.derivation.kind == runQueue:
		return true
	}
	return selected && x.point.TID != 0
}

// emit passes a record on in order of time.
func (d *deriver) emit(time uint64, x derivedRecord) error {
	if !d.started {
		d.started, d.threads.From = true, min(d.first, time)
	}
	d.now = time
	switch x.kind {
	case recordSwitch:
		d.threads.Out(x.point, x.why)
		in := x.point
		if in.TID = x.other; !d.recorded(in.TID) {
			in.TID = 0 // nothing more is known of it than of the idle thread
		}
		d.threads.In(in)
	case recordIn:
		d.threads.Again(x.point)
	case recordOut:
		d.threads.OutAgain(x.point, x.why)
	case recordWake:
		d.threads.Ran(x.point.TID, time)
		if !d.recorded(x.other) {
			break
		}
		woken := pair.Point{Time: time, TID: x.other, CPU: x.point.CPU}
		if x.remote {
			d.remote++
			d.threads.WakeUnknown(woken)
			break
		}
		d.threads.Wake(woken, x.point, x.interrupt)
	case recordFork:
		if d.derivation.kind != pairOf {
			d.threads.New(x.point)
		}
	case recordExit:
		if d.derivation.kind != pairOf {
			d.threads.Exit(x.point)
		}
		d.table.Exit(x.point.TID, time)
	case recordExec:
		d.exec(x.point)
	case recordStart:
		d.table.Start(x.key, x.point)
	case recordEnd:
		d.table.End(x.key, time)
	case recordOnCPU:
		d.onCPU(&x)
	}
	return nil
}

// exec follows a thread that executes a program: it has the number of its process from then on.
func (d *deriver) exec(p pair.Point) {
	d.table.Exec(p.TID, p.Time, d.pidOf)
	from := d.threads.Running(p.CPU)
	if p.TID <= 0 || from == 0 || from == p.TID || d.pidOf(from) != p.TID {
		return
	}
	d.threads.Rename(from, p)
}

// clip returns the length of the part of a span within Selection.Time. ok is false if there is none.
func (d *deriver) clip(from, to uint64) (nanos uint64, ok bool) {
	start, end := max(from, d.c.after), min(to, d.c.until)
	if end < start || end == start && from < to {
		return 0, false
	}
	return end - start, true
}

// waited makes samples of a wait.
func (d *deriver) waited(w *pair.Wait) {
	s := derivedSample{subject: w.Out.Label, stack: w.Out.Stack, time: w.In.Time}
	switch {
	case w.New:
		s.subject, s.missing = d.subjectOf(w.Out.TID, w.Out.Time, stateNew), notStarted
	case w.CutStart:
		s.subject, s.missing = d.subjectOf(w.Out.TID, w.Out.Time, stateUnknown), beganBefore
	}
	from := w.Out.Time
	switch {
	case d.derivation.kind == runQueue && w.Ready == 0, d.derivation.kind == offCPU && w.CutStart:
		return // nothing but its time is known
	case d.derivation.kind == runQueue:
		from, s.stack, s.missing = w.Ready, w.In.Stack, notMissing
		x := d.subjects.List[s.subject]
		x.cpu = w.In.CPU
		s.subject = d.subjects.Number(x)
		if w.In.Stack != pair.NoStack {
			s.tags = ingest.JoinTags(ingest.InsteadTag, d.commOf(w.In.Label))
		}
	case len(w.Wakers) > 0:
		s.wakers = w.Wakers
		if d.derivation.wakers {
			s.tags = ingest.JoinTags(ingest.WakerTag, d.wakerName(&w.Wakers[0]))
		}
		s.wakers = s.wakers[:min(d.derivation.depth, len(s.wakers))]
	}
	d.deliverSpan(&s, from, w.In.Time)
}

// recorded reports whether records other than switches to it, and wakings, have a thread. A
// recording of one process has no others of other threads.
func (d *deriver) recorded(tid int32) bool {
	_, ok := d.pids[tid]
	return ok
}

// wakerName names who woke a thread.
func (d *deriver) wakerName(s *pair.Step) string {
	if s.Interrupt {
		return interruptName
	}
	return d.commOf(s.Label)
}

const interruptName = "[interrupt]"

// paired makes the sample of a pair.
func (d *deriver) paired(start pair.Point, end uint64) {
	d.deliverSpan(&derivedSample{subject: start.Label, stack: start.Stack, time: end}, start.Time, end)
}

// deliverSpan adds the part of a sample within Selection.Time.
func (d *deriver) deliverSpan(s *derivedSample, from, to uint64) {
	nanos, ok := d.clip(from, to)
	if !ok {
		d.stats.FilteredOut++
		return
	}
	s.weight, s.count = nanos, 1
	d.deliverSample(s)
}

// deliverSample adds a sample if its thread is selected.
func (d *deriver) deliverSample(s *derivedSample) {
	if !d.subjects.List[s.subject].selected {
		d.stats.FilteredOut++
		return
	}
	d.add(s)
}

// cpuShare is the time that a thread ran, and the weight of its samples meanwhile.
type cpuShare struct{ nanos, weight uint64 }

// cpuTime adds the samples.
type cpuTime struct {
	cpuShare
	samples map[cpuSample]*cpuSum
	last    uint64 // when the last run began
}

type cpuSample struct{ subject, stack uint32 }

type cpuSum struct{ count, weight uint64 }

// ran adds the run of a thread.
func (d *deriver) ran(from pair.Point, to uint64) {
	if nanos, ok := d.clip(from.Time, to); ok {
		x := d.cpuOf(from.TID)
		x.nanos += nanos
		x.last = max(x.last, from.Time)
	}
}

func (d *deriver) cpuOf(tid int32) *cpuTime {
	x := d.cpu[tid]
	if x == nil {
		x = &cpuTime{samples: make(map[cpuSample]*cpuSum)}
		d.cpu[tid] = x
	}
	return x
}

// onCPU adds a sample of a running thread. Its weight is known when the thread has ended.
func (d *deriver) onCPU(x *derivedRecord) {
	if t := x.point.Time; x.point.TID == 0 || t < d.c.after || t > d.c.until {
		return
	}
	c := d.cpuOf(x.point.TID)
	c.weight += x.weight
	if d.replayed != nil {
		of := d.shares[x.point.TID][d.replayed[x.point.TID]]
		d.deliverSample(&derivedSample{subject: x.point.Label, stack: x.point.Stack, count: 1,
			weight: mulDiv(of.nanos, c.weight, of.weight) -
				mulDiv(of.nanos, c.weight-x.weight, of.weight), time: x.point.Time})
		return
	}
	key := cpuSample{x.point.Label, x.point.Stack}
	sum := c.samples[key]
	if sum == nil {
		sum = new(cpuSum)
		c.samples[key] = sum
	}
	sum.count++
	sum.weight += x.weight
}

// share shares out the time that a thread ran among its samples, by their weights.
func (d *deriver) share(tid int32) {
	x := d.cpu[tid]
	if x == nil {
		return
	}
	delete(d.cpu, tid)
	if d.replayed == nil {
		d.shares[tid] = append(d.shares[tid], x.cpuShare)
	} else {
		d.replayed[tid]++
	}
	if x.weight == 0 && x.nanos > 0 {
		d.deliverSample(&derivedSample{subject: d.subjectOf(tid, x.last, stateRunning),
			stack: pair.NoStack, missing: notSampled, weight: x.nanos, count: 1, time: d.now})
		return
	}
	keys := slices.SortedFunc(maps.Keys(x.samples), func(a, b cpuSample) int {
		return cmp.Or(cmp.Compare(a.subject, b.subject), cmp.Compare(a.stack, b.stack))
	})
	var weight, nanos uint64 // so far
	for _, k := range keys {
		sum := x.samples[k]
		weight += sum.weight
		upTo := mulDiv(x.nanos, weight, x.weight)
		d.deliverSample(&derivedSample{subject: k.subject, stack: k.stack, weight: upTo - nanos,
			count: sum.count, time: d.now})
		nanos = upTo
	}
}

// mulDiv returns a*b/c, where b is at most c.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	quo, _ := bits.Div64(hi, lo, c)
	return quo
}
