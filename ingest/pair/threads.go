package pair

import (
	"maps"
	"slices"
	"strings"
)

// Why says how a thread stopped running.
type Why uint8

// The reasons of a switch-out.
const (
	Blocked   Why = iota // it waits until another thread or an interrupt wakes it
	Preempted            // it is ready to run
	Dead                 // it runs never again
)

// Step is a thread that woke another, or the end of a chain of them.
type Step struct {
	Point          // of the waking, in the thread that ran then
	Interrupt bool // an interrupt woke, in the time of that thread; the last step
	Cycle     bool // the thread is already in the chain, or is the waiter; the last step
}

// Wait is a time in which a thread did not run.
type Wait struct {
	Out Point // the switch-out; without a stack and label if CutStart or New
	In  Point // the switch-in, with the caller's stack and label; CPU -1 if the recording ended
	// Ready is when the thread became ready to run: Out.Time if it was preempted, otherwise the
	// waking; 0 if unknown.
	Ready    uint64
	Wakers   []Step // Wakers[0] woke the thread, Wakers[1] that one …; valid during Emit
	CutStart bool   // it began before the recording
	New      bool   // the thread was made at Out.Time and waits for its first CPU
}

// Threads follows the threads of a recording by the events of the scheduler. Calls are in order of
// time; From is the start of the recording. The idle thread, 0, has no waits. The CPU of a Point is
// -1 if unknown.
type Threads struct {
	From       uint64
	Losses     Losses
	WakerDepth int         // maximum length of Wait.Wakers; 0 for none
	Partial    bool        // other CPUs were not recorded: a thread may run there between two runs
	Emit       func(*Wait) // may be nil, as Run and Ended
	Run        func(from Point, to uint64)
	Ended      func(tid int32) // after the last run of the thread, and before a new one with its number

	Waits, Runs Stats

	threads map[int32]*thread
	cpus    []processor
	dead    []uint64 // a bit for each number of a thread that ended, and was not made again
	wait    Wait     // scratch
}

// Limits of Linux: twice PID_MAX_LIMIT, as callers may number threads of two PID namespaces, and more
// than NR_CPUS of any machine.
const (
	maxTID = 1 << 23
	maxCPU = 1 << 16
)

// processor is what is known of a CPU, which runs one thread at a time.
type processor struct {
	known bool  // a switch on it was recorded
	runs  int32 // the thread that runs; 0 for the idle thread, or if it is unknown
	left  int32 // the thread of the last switch-out, until its second record; Nobody after it
}

// Nobody is the TID of records of threads that have ended.
const Nobody = -1

type threadState uint8

const (
	stateUnknown threadState = iota
	stateRunning
	stateWaiting
)

type thread struct {
	state    threadState
	since    Point  // in that state
	exit     uint64 // time of its EXIT record, after which it has not stopped running; 0 for none
	cutStart bool   // in the state since before the recording
	made     bool   // waits for its first CPU
	ready    uint64 // see Wait, of the current or last wait
	// Of the last wait that another thread or an interrupt ended. Times in which the thread only
	// had lost its CPU do not change them.
	woken  uint64
	wakers []Step
}

// Out records that the thread of p stops running. The Wait that begins has its stack and label.
func (t *Threads) Out(p Point, why Why) {
	t.leave(p)
	c := t.processor(p.CPU)
	known := c != nil && c.known
	if c != nil {
		*c = processor{known: true, left: p.TID}
	}
	if p.TID == 0 {
		return
	}
	x := t.stopped(p, known)
	if why == Dead {
		t.end(p.TID)
		return
	}
	x.state, x.since, x.exit, x.cutStart, x.made = stateWaiting, p, 0, false, false
	if x.ready = 0; why == Preempted {
		x.ready = p.Time
	} else {
		x.woken, x.wakers = 0, x.wakers[:0]
	}
}

// stopped ends the run of a thread at a point. switched is set if a switch on its CPU was recorded
// before: otherwise the thread of the first record runs since the start of the recording.
func (t *Threads) stopped(p Point, switched bool) *thread {
	x, known := t.thread(p.TID)
	switch {
	case x.state == stateRunning && p.CPU >= 0 && x.since.CPU >= 0 && x.since.CPU != p.CPU:
		t.Runs.broken(t.Losses, x.since.Time, p.Time) // it moved, and did not run meanwhile
	case x.state == stateRunning:
		t.ran(x, p.Time)
	case x.state == stateWaiting:
		t.Waits.broken(t.Losses, x.since.Time, p.Time)
		t.Runs.NoStart.Add(0, 0)
	case !known && !t.died(p.TID) && !switched:
		x.since, x.cutStart = Point{Time: t.From, TID: p.TID, CPU: p.CPU}, true
		t.ran(x, p.Time)
	default:
		t.Runs.NoStart.Add(0, 0)
	}
	x.state = stateUnknown
	return x
}

// leave ends the run of another thread on the CPU of a point. It ended, or its switch-out was not
// recorded.
func (t *Threads) leave(p Point) {
	c := t.processor(p.CPU)
	if c == nil || c.runs == 0 || c.runs == p.TID {
		return
	}
	x := t.threads[c.runs]
	if x == nil || x.state != stateRunning || x.since.CPU != p.CPU {
		return
	}
	if x.exit > 0 {
		t.ran(x, x.exit)
		t.end(x.since.TID)
		return
	}
	t.Runs.broken(t.Losses, x.since.Time, p.Time)
	x.state = stateUnknown
}

// processor returns a CPU; nil if it is unknown.
func (t *Threads) processor(cpu int32) *processor {
	if cpu < 0 || cpu >= maxCPU {
		return nil
	}
	for int(cpu) >= len(t.cpus) {
		t.cpus = append(t.cpus, processor{left: Nobody})
	}
	return &t.cpus[cpu]
}

// In records that a thread starts running. If its number is new, it waited since the start of the
// recording.
func (t *Threads) In(p Point) {
	t.leave(p)
	if c := t.processor(p.CPU); c != nil {
		c.known, c.runs = true, p.TID
	}
	if p.TID == 0 {
		return
	}
	x, known := t.thread(p.TID)
	exit := uint64(0)
	switch {
	case x.state == stateWaiting:
		t.waited(x, p, false)
	case x.state == stateRunning:
		t.runBroken(x, p.Time)
		t.Waits.NoStart.Add(0, 0)
	case !known && t.died(p.TID):
		exit = max(1, p.Time) // its EXIT record was the last one, or its number is another thread's
	case !known:
		if t.before(x, p); p.Time > t.From {
			t.waited(x, p, false)
		}
	default:
		t.Waits.NoStart.Add(0, 0)
	}
	x.state, x.since, x.exit, x.cutStart, x.made = stateRunning, p, exit, false, false
}

// Again is In for a second record of the same switch: it does nothing if the thread runs already.
// These records do not have the numbers of threads after their EXIT record, but -1.
func (t *Threads) Again(p Point) {
	if c := t.processor(p.CPU); c != nil {
		c.left = Nobody
	}
	if p.TID == Nobody {
		return
	}
	if x := t.threads[p.TID]; x == nil || x.state != stateRunning {
		t.In(p)
	}
}

// OutAgain is Out for a second record of the same switch: it does nothing if the thread waits
// already, or has ended.
func (t *Threads) OutAgain(p Point, why Why) {
	if c := t.processor(p.CPU); c != nil && (c.left == p.TID || p.TID == Nobody) {
		c.left = Nobody
		return
	}
	x := t.threads[p.TID]
	known := x != nil && x.state != stateUnknown
	if known && x.state == stateWaiting || !known && t.died(p.TID) {
		return
	}
	t.Out(p, why)
}

// Exit records that a thread ends. It may run, and even wait, for some time, of which recordings of
// processes have no records. Its last run ends here, unless it stops running later.
func (t *Threads) Exit(p Point) {
	if p.TID == 0 {
		return
	}
	x := t.threads[p.TID]
	c := t.processor(p.CPU)
	switch {
	case c == nil:
		t.stopped(p, true)
	case x != nil && x.state == stateRunning && x.since.CPU == p.CPU:
		x.exit = max(1, p.Time)
		return
	case x == nil && !c.known && !t.died(p.TID):
		x, _ = t.thread(p.TID)
		x.state, x.cutStart, x.exit = stateRunning, true, max(1, p.Time)
		x.since = Point{Time: t.From, TID: p.TID, CPU: p.CPU}
		c.known, c.runs = true, p.TID
		return
	case x != nil:
		t.stopped(p, true)
	}
	t.end(p.TID)
}

// Rename records that a running thread goes on with the number of p, as the thread that executes a
// program gets the number of its process. The thread that had that number has ended.
func (t *Threads) Rename(from int32, p Point) {
	if x := t.threads[from]; x == nil || x.state != stateRunning {
		return
	}
	t.stopped(Point{Time: p.Time, TID: from, CPU: p.CPU}, true)
	t.end(from)
	t.New(p)
	x := t.threads[p.TID]
	x.state, x.made, x.ready = stateRunning, false, 0
	if c := t.processor(p.CPU); c != nil {
		c.known, c.runs = true, p.TID
	}
}

// Running returns the thread that runs on a CPU; 0 if it is unknown.
func (t *Threads) Running(cpu int32) int32 {
	if c := t.processor(cpu); c != nil {
		return c.runs
	}
	return 0
}

// end forgets a thread that has ended.
func (t *Threads) end(tid int32) {
	delete(t.threads, tid)
	t.setDied(tid, true)
	if t.Ended != nil {
		t.Ended(tid)
	}
}

// Ran records that a thread ran at a time. If it had not been seen to start, when its wait ended is
// unknown.
func (t *Threads) Ran(tid int32, time uint64) {
	if x := t.threads[tid]; x != nil && x.state == stateWaiting && x.since.Time < time {
		t.Waits.broken(t.Losses, x.since.Time, time)
		x.state = stateUnknown
	}
}

// before makes a thread wait since before the recording.
func (t *Threads) before(x *thread, p Point) {
	x.state, x.cutStart = stateWaiting, true
	x.since = Point{Time: t.From, TID: p.TID, CPU: p.CPU, Stack: NoStack}
	x.ready, x.woken, x.wakers = 0, 0, x.wakers[:0]
}

// Wake records that a thread becomes ready to run. by is the thread that ran then; if interrupt is
// set, an interrupt in its time woke the thread. Only the first waking of a wait counts.
func (t *Threads) Wake(woken, by Point, interrupt bool) {
	if x := t.wake(woken); x != nil && t.WakerDepth > 0 {
		x.wakers = t.chain(x.wakers[:0], woken.TID, x.since.Time, by, interrupt || by.TID == 0)
	}
}

// WakeUnknown is Wake if the thread that woke is unknown.
func (t *Threads) WakeUnknown(woken Point) { t.wake(woken) }

// wake returns the thread that becomes ready; nil if it was ready before.
func (t *Threads) wake(woken Point) *thread {
	if woken.TID == 0 {
		return nil
	}
	x := t.threads[woken.TID]
	if x == nil && t.died(woken.TID) {
		return nil
	}
	if x == nil {
		x, _ = t.thread(woken.TID)
		t.before(x, woken)
	}
	if x.state != stateWaiting || x.ready != 0 {
		return nil
	}
	x.ready, x.woken = woken.Time, woken.Time
	return x
}

// chain appends who woke a thread that waited since a time, and who woke that one, if it was woken
// since.
func (t *Threads) chain(list []Step, waiter int32, since uint64, by Point, interrupt bool) []Step {
	list = append(list, Step{Point: by, Interrupt: interrupt})
	x := t.threads[by.TID]
	if interrupt || x == nil || x.woken == 0 || x.woken < since {
		return list
	}
	for _, s := range x.wakers {
		if len(list) == t.WakerDepth || s.Time < since {
			return list
		}
		s.Cycle = !s.Interrupt && (s.TID == waiter || slices.ContainsFunc(list, func(o Step) bool {
			return o.TID == s.TID
		}))
		list = append(list, s)
		if s.Cycle || s.Interrupt {
			return list
		}
	}
	return list
}

// New records that a thread was made; it waits for its first CPU. A living thread with that number
// has ended unseen.
func (t *Threads) New(p Point) {
	if p.TID == 0 {
		return
	}
	x, _ := t.thread(p.TID)
	switch x.state {
	case stateWaiting:
		t.Waits.broken(t.Losses, x.since.Time, p.Time)
	case stateRunning:
		t.runBroken(x, p.Time)
	}
	t.end(p.TID)
	t.setDied(p.TID, false)
	p.Stack = NoStack
	t.threads[p.TID] = x
	*x = thread{state: stateWaiting, since: p, made: true, ready: p.Time, wakers: x.wakers[:0]}
}

// runBroken ends the run of a thread of which another record came: at its EXIT record, otherwise
// when it ended is unknown.
func (t *Threads) runBroken(x *thread, time uint64) {
	if x.exit > 0 {
		t.ran(x, x.exit)
	} else {
		t.Runs.broken(t.Losses, x.since.Time, time)
	}
}

// Finish cuts all that has not ended at the end of the recording.
func (t *Threads) Finish(end uint64) {
	for _, tid := range slices.Sorted(maps.Keys(t.threads)) {
		switch x := t.threads[tid]; {
		case x.state == stateRunning && x.exit > 0:
			t.ran(x, x.exit)
		case x.state == stateRunning:
			t.ran(x, end)
		case x.state == stateWaiting:
			t.waited(x, Point{Time: end, TID: tid, CPU: -1, Stack: NoStack}, true)
		}
	}
	t.threads = nil
}

func (t *Threads) thread(tid int32) (x *thread, known bool) {
	if x, known = t.threads[tid]; !known {
		if t.threads == nil {
			t.threads = make(map[int32]*thread)
		}
		x = new(thread)
		t.threads[tid] = x
	}
	return x, known
}

// died reports whether the last thread with a number has ended.
func (t *Threads) died(tid int32) bool {
	word := int(uint32(tid) / 64)
	return word < len(t.dead) && t.dead[word]>>(uint32(tid)%64)&1 != 0
}

func (t *Threads) setDied(tid int32, dead bool) {
	word := int(uint32(tid) / 64)
	switch {
	case dead && uint32(tid) < maxTID:
		for len(t.dead) <= word {
			t.dead = append(t.dead, 0)
		}
		t.dead[word] |= 1 << (uint32(tid) % 64)
	case word < len(t.dead):
		t.dead[word] &^= 1 << (uint32(tid) % 64)
	}
}

// waited ends the wait of a thread.
func (t *Threads) waited(x *thread, in Point, cut bool) {
	end := in.Time
	if t.Partial {
		t.Waits.Elsewhere.Add(x.since.Time, end)
		return
	}
	if !t.Waits.usable(t.Losses, x.since.Time, end) {
		return
	}
	if x.cutStart {
		t.Waits.CutStart.Add(x.since.Time, end)
	}
	if cut {
		t.Waits.CutEnd.Add(x.since.Time, end)
	}
	if t.Emit == nil {
		return
	}
	t.wait = Wait{Out: x.since, In: in, Ready: x.ready, CutStart: x.cutStart, New: x.made}
	if x.ready > 0 && x.ready == x.woken {
		t.wait.Wakers = x.wakers
	}
	t.Emit(&t.wait)
}

// ran ends the run of a thread.
func (t *Threads) ran(x *thread, end uint64) {
	if !t.Runs.usable(t.Losses, x.since.Time, end) {
		return
	}
	if t.Run != nil {
		t.Run(x.since, end)
	}
}

// waitFunctions are the kernel functions between the function that blocks and the tracepoint
// sched:sched_switch, wakeFunctions those between the function that wakes and sched:sched_waking or
// sched:sched_wakeup.
var (
	waitFunctions = []string{"__schedule", "schedule", "schedule_idle", "schedule_preempt_disabled",
		"schedule_rtlock", "__schedule_loop", "preempt_schedule", "preempt_schedule_common",
		"preempt_schedule_irq", "preempt_schedule_notrace", "preempt_schedule_thunk",
		"preempt_schedule_notrace_thunk", "__cond_resched", "_cond_resched", "dynamic_cond_resched"}
	wakeFunctions = []string{"try_to_wake_up", "wake_up_process", "wake_up_state",
		"default_wake_function", "ttwu_runnable", "ttwu_do_activate", "ttwu_do_wakeup",
		"sched_ttwu_pending"}
)

// tracepointFunctions are the beginnings of the names of functions that call a tracepoint's programs.
var tracepointFunctions = []string{"__traceiter_sched_", "__bpf_trace_sched_", "perf_trace_sched_",
	"trace_event_raw_event_sched_", "perf_trace_run_bpf_submit", "trace_call_bpf"}

// interruptFunctions are the kernel functions that run interrupts, on x86 and arm64.
var interruptFunctions = []string{"common_interrupt", "asm_common_interrupt", "handle_softirqs",
	"__do_softirq", "handle_irq_event", "call_on_irq_stack", "el0_interrupt", "el1_interrupt"}

// IsInterrupt reports whether a kernel function runs an interrupt, by its symbol.
func IsInterrupt(symbol string) bool {
	name, _, _ := strings.Cut(symbol, ".")
	return slices.Contains(interruptFunctions, name) || strings.HasPrefix(name, "sysvec_")
}

// IsScheduler reports whether a kernel function, by its symbol, is between the function that waits
// and the tracepoint of its Wait, and whether it is between the function that wakes and that of the
// waking.
func IsScheduler(symbol string) (waits, wakes bool) {
	name, _, _ := strings.Cut(symbol, ".") // __schedule.constprop.0 and .cold
	both := slices.ContainsFunc(tracepointFunctions, func(begin string) bool {
		return strings.HasPrefix(name, begin)
	})
	return both || slices.Contains(waitFunctions, name), both || slices.Contains(wakeFunctions, name)
}
