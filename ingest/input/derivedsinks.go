package input

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/intern"
	"symbolize/ingest/pair"
	"symbolize/ingest/sideband"
)

// subject has the labels of the thread of a derived sample.
type subject struct {
	comm          uint32
	pid, tid, cpu int32
	tags          uint32 // by the reader's tagger, 0 for none
	state         uint8
	pair          string // what * matched in the name of a pair's start, or its system call
	selected      bool
}

// subject numbers the labels of the reader's current sample.
func (d *deriver) subject(state uint8, selected bool) uint32 {
	s := &d.sample
	x := subject{comm: d.numbers.name(d.comm), pid: s.PID, tid: d.numbers.shown(s.TID), cpu: int32(s.CPU), state: state,
		selected: selected, pair: d.derivation.roles[s.Event].name}
	if call := d.derivation.roles[s.Event].call; call != nil {
		x.pair = d.c.syscall(call, s.Raw)
	}
	if d.tagger != nil {
		x.tags = d.tagger.number(&d.current)
	}
	if t := d.thread; t.subjectN == 0 || t.subject != x {
		t.subject, t.subjectN = x, 1+d.subjects.Number(x)
	}
	return d.thread.subjectN - 1
}

// subjectOf numbers the labels of a thread that has no sample of its own.
func (d *deriver) subjectOf(tid int32, time uint64, state uint8) uint32 {
	pid := d.pidOf(tid)
	st := d.threadState(pid, tid, time)
	tid = d.numbers.shown(tid)
	s := perfdata.Sample{PID: pid, TID: tid}
	comm := d.numbers.name(st.comm)
	return d.subjects.Number(subject{comm: comm, pid: pid, tid: tid, cpu: -1, state: state,
		selected: d.c.cpus == nil && d.c.selected(&s, comm)})
}

// pidOf returns the process of a thread, by the records so far.
func (d *deriver) pidOf(tid int32) int32 {
	if pid, ok := d.pids[tid]; ok {
		return pid
	}
	return d.numbers.shown(tid)
}

// commOf returns the name of a subject's thread.
func (d *deriver) commOf(n uint32) string { return d.c.Threads.CommName(d.subjects.List[n].comm) }

// tagsOf returns the tags of a derived sample.
func (d *deriver) tagsOf(s *derivedSample) uint32 {
	x := &d.subjects.List[s.subject]
	text := ""
	if x.tags != 0 {
		text = d.c.tags.At(x.tags)
	}
	if x.state != 0 {
		text = ingest.AppendTags(text, ingest.JoinTags(ingest.StateTag, d.c.states.name(x.state)))
	}
	if x.pair != "" {
		text = ingest.AppendTags(text, ingest.JoinTags(ingest.PairTag, x.pair))
	}
	if text = ingest.AppendTags(text, s.tags); text == "" {
		return 0
	}
	return d.c.tags.Number(text)
}

// keptChain is the chain of a sample whose part in a derived event is not known yet.
type keptChain struct {
	chain        chain
	user, kernel addrspace.Version
	cut          bool
}

// keptChains numbers them.
type keptChains struct {
	seed  intern.Seed
	index intern.Table[uint32]
	list  []keptChain
	key   []byte
}

// keep numbers the chain of the reader's current sample.
func (d *deriver) keep() uint32 {
	t := &d.kept
	t.key = binary.LittleEndian.AppendUint64(t.key[:0], uint64(d.user)<<32|uint64(d.kernel))
	at := len(t.key)
	t.key = append(t.key[:at], newChain(chain(t.key[at:]), d.kpart, d.part)...)
	v, fresh := t.index.Add(t.seed.Hash(t.key))
	if fresh {
		*v = uint32(len(t.list))
		t.list = append(t.list, keptChain{slices.Clone(chain(t.key[at:])), d.user, d.kernel, d.cut})
	}
	return *v
}

// label numbers the labels of a derived sample.
func (d *deriver) label(s *derivedSample) uint32 {
	if int(s.subject) < len(d.labels) && s.tags == "" && d.labels[s.subject] != 0 {
		return d.labels[s.subject] - 1
	}
	x, keep := &d.subjects.List[s.subject], d.c.want.Keep
	l := merge.Labels{Comm: x.comm, PID: -1, TID: -1, CPU: -1, Tags: d.tagsOf(s)}
	if keep.PID {
		l.PID = x.pid
	}
	if keep.TID {
		l.TID = x.tid
	}
	if keep.CPU {
		l.CPU = x.cpu
	}
	n := d.c.labels.Number(l)
	if s.tags == "" {
		for len(d.labels) < len(d.subjects.List) {
			d.labels = append(d.labels, 0)
		}
		d.labels[s.subject] = n + 1
	}
	return n
}

// derive makes the worker that folds a derived event.
func derive(ctx context.Context, c *collector) ([]*worker, map[int32][]cpuShare, error) {
	w := newWorker(c, newBatchQueues(1), 0, intern.MakeSeed())
	d := newDeriver(w.reader)
	composed := composer{w: w, kept: &d.kept}
	d.add = func(s *derivedSample) {
		label := d.label(s)
		stack := composed.stack(s)
		w.chains.more.Add(merge.Row{Stack: stack, Label: label, Count: s.count,
			Weight: s.weight})
		w.stats.Samples += s.count
		w.stats.Weight += s.weight
		w.stats.Frames += s.count * uint64(composed.depth)
		w.seen(s.time)
	}
	if err := d.run(ctx); err != nil {
		return nil, nil, err
	}
	w.derivedWarnings = d.report()
	return []*worker{w}, d.shares, nil
}

// composer makes the stacks of derived samples: the stack of the sample, or a frame for why it is
// missing, and those of its wakers above it. The wakers' frames are in reverse order, so that the
// function that woke is next to the function that waited. An interrupted thread has no part in a
// waking: of it only the kernel's frames are shown.
type composer struct {
	w      *worker
	kept   *keptChains
	frames []uint32
	known  []composedStack // by kept chain
	depth  int             // of the last stack
}

type composedStack struct {
	stack uint32
	depth int // 0: not yet located
}

// Frames between the stacks of a chain of wakers, and at its end.
const (
	wokenBy     = "[woken by]"
	wakerCycle  = "[woken in a cycle]"
	interruptBy = "[woken by an interrupt]"
)

func (c *composer) stack(s *derivedSample) uint32 {
	if s.missing == notMissing && s.stack != pair.NoStack && len(s.wakers) == 0 {
		return c.alone(s.stack)
	}
	c.frames = c.frames[:0]
	for _, step := range slices.Backward(s.wakers) {
		c.waker(&step)
	}
	if s.missing == notMissing && s.stack != pair.NoStack {
		c.locate(s.stack, false)
	} else {
		object := c.w.c.Objects.Nameless(ingest.NoStack, s.missingName(), ingest.StackLost)
		c.frames = append(c.frames, c.w.finder.number(object, 0, false))
	}
	c.depth = len(c.frames)
	return c.w.chains.stacks.Add(c.frames)
}

// alone returns the stack of a kept chain.
func (c *composer) alone(n uint32) uint32 {
	for len(c.known) <= int(n) {
		c.known = append(c.known, composedStack{})
	}
	k := &c.known[n]
	if k.depth == 0 {
		c.frames = c.frames[:0]
		c.locate(n, false)
		*k = composedStack{c.w.chains.stacks.Add(c.frames), len(c.frames)}
	}
	c.depth = k.depth
	if c.kept.list[n].cut {
		c.w.stats.CutChains++
	}
	return k.stack
}

// locate adds the frames of a kept chain, or only its kernel part.
func (c *composer) locate(n uint32, kernel bool) {
	k := &c.kept.list[n]
	kpart, part := k.chain.parts()
	if kernel {
		part = nil
	}
	c.w.finder.locate(kpart, part, k.user, k.kernel)
	if c.w.finder.flags&partCut != 0 {
		k.cut = true
	}
	for i := range c.w.finder.spots {
		c.frames = append(c.frames, c.w.finder.spots[i].place)
	}
}

// waker adds the frames of a waker, its outermost first.
func (c *composer) waker(step *pair.Step) {
	between := wokenBy
	switch {
	case step.Cycle:
		c.frames = append(c.frames, c.named(wakerCycle))
		return
	case step.Interrupt:
		between = interruptBy
	}
	if step.Stack != pair.NoStack {
		at := len(c.frames)
		c.locate(step.Stack, step.Interrupt)
		slices.Reverse(c.frames[at:])
	}
	c.frames = append(c.frames, c.named(between))
}

// named returns the place of a frame that no code has.
func (c *composer) named(name string) uint32 {
	return c.w.finder.number(c.w.c.Objects.NamedCode(name, ingest.WakersPath, false), 0, false)
}

// missingName names the frame of a sample without a stack.
func (s *derivedSample) missingName() string {
	if s.missing == notMissing {
		return ingest.NoStackPath
	}
	return missingNames[s.missing]
}

// keyer makes the keys of pairs.
type keyer struct {
	seed intern.Seed
	text []byte
}

// key returns the key of a sample of an event with a role.
func (k *keyer) key(s *perfdata.Sample, role *eventRole, big bool) pair.Key {
	k.text = append(k.text[:0], role.name...)
	for i := range role.keys {
		f := &role.keys[i]
		k.text = append(k.text, 0)
		if f.field != nil {
			k.text = append(k.text, f.field.String(s.Raw, big)...)
			continue
		}
		v := uint32(s.TID)
		switch f.name {
		case "pid":
			v = uint32(s.PID)
		case "cpu":
			v = s.CPU
		}
		k.text = binary.LittleEndian.AppendUint32(k.text, v)
	}
	h := k.seed.Hash(k.text)
	return pair.Key{Hi: h.Hi, Lo: h.Lo}
}

// losses returns the spans in which records were lost: from the last record of a CPU before a LOST
// record to that record.
func (c *collector) losses(ctx context.Context) (pair.Losses, error) {
	var spans []pair.Span
	left := c.Records.Types[perfdata.TypeLost]
	last := make(map[uint32]uint64)
	var records *perfdata.RecordReader
	for i := 0; i < c.Records.NumChunks() && left > 0; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		records = c.Records.Read(records, c.Records.Chunk(i))
		for left > 0 && records.Next() {
			rec := records.Record()
			if rec.Type == perfdata.TypeLost {
				left--
			}
			id, err := c.Records.File.SampleID(rec)
			if err != nil || id.Has&perfdata.SampleTime == 0 || id.Time == sideband.NoTime {
				continue
			}
			if rec.Type == perfdata.TypeLost {
				spans = append(spans, pair.Span{From: last[id.CPU], To: id.Time})
			}
			last[id.CPU] = id.Time
		}
		if err := records.Err(); err != nil {
			return nil, err
		}
	}
	return pair.NewLosses(spans), nil
}

// errShortRaw is the error of a tracepoint's sample without its fields.
func errShortRaw(f *perfdata.File, rec *perfdata.Record) error {
	return fmt.Errorf("%s: offset %#x: the sample ends before the fields of its tracepoint", f.Name,
		rec.Offset)
}

// replayDerived is replay for a derived event: the samples come in the order of their ends.
func (s *perfSource) replayDerived(ctx context.Context, p *ingest.Profile,
	visit func(*ReplaySample) error) error {
	r := newReplayer(s.folded, p)
	d := newDeriver(r.reader)
	d.shares, d.replayed = s.folded.shares, make(map[int32]int)
	var failed error
	d.add = func(s *derivedSample) {
		if failed == nil {
			failed = visit(r.derived(d, s))
		}
	}
	return errors.Join(d.run(ctx), failed)
}

// derived sets out to a derived sample.
func (r *replayer) derived(d *deriver, s *derivedSample) *ReplaySample {
	x := &d.subjects.List[s.subject]
	r.out = ReplaySample{Comm: r.c.Threads.CommName(x.comm), PID: x.pid, TID: x.tid, CPU: x.cpu, Time: s.time,
		Period: s.weight, Frames: r.out.Frames[:0]}
	if s.stack != pair.NoStack && s.missing == notMissing {
		k := &d.kept.list[s.stack]
		kpart, part := k.chain.parts()
		r.frames(kpart, part, k.user, k.kernel)
	}
	if x.state != stateNone {
		r.out.State = d.c.states.name(x.state)
	}
	if x.state != stateNone && x.state != stateRunning { // as merge.TrimWaits
		r.out.Frames = r.out.Frames[merge.WaitStart(r.p, len(r.out.Frames),
			func(i int) ingest.LocationID { return r.out.Frames[i].Location }):]
	}
	return &r.out
}

// report describes what a derived event leaves out, and what it cuts.
func (d *deriver) report() (list []ingest.Warning) {
	st, what := &d.threads.Waits, "waits"
	if d.derivation.kind == pairOf {
		st, what = &d.table.Stats, "pairs"
	}
	all := st.Emitted.Count + st.Lost.Count + st.NoEnd.Count + st.Elsewhere.Count + st.Open.Count +
		st.Ended.Count + st.Back.Count
	add := func(s pair.Sum, text, hint string) {
		if s.Count > 0 {
			list = append(list, ingest.Warning{Hint: hint, Text: fmt.Sprintf("%s: %d of %d %s (%.3f s) %s",
				d.c.want.Event, s.Count, all, what, float64(s.Nanos)/1e9, text)})
		}
	}
	add(st.Lost, "are left out, as records were lost meanwhile", "record with more memory: perf record -m 16M")
	noEnd := "record all CPUs, and a second record of each switch: perf record -a --switch-events"
	if d.derivation.kind == pairOf {
		noEnd = ""
	}
	add(st.NoEnd, "are left out, as their end was not recorded", noEnd)
	add(st.Elsewhere, fmt.Sprintf("are left out: only %d of %d CPUs were recorded, and what their threads did on "+
		"others is unknown", d.c.Records.CPUs, d.c.Records.File.Features.CPUsOnline),
		"record all CPUs: perf record -a")
	if d.derivation.kind == offCPU {
		add(st.CutStart, "are left out, as they began before the recording and have no stack", "")
	}
	add(st.CutEnd, "had not ended when the recording did, and count until then", "")
	add(st.Ended, "never returned, and are left out: their threads ended", "")
	add(st.Open, "have no recorded end, and are left out: they went on when the recording ended, or it was lost", "")
	add(st.Back, "are left out, as they end before they start", "")
	note := func(n uint64, text string) {
		if n > 0 {
			list = append(list, ingest.Warning{Text: fmt.Sprintf("%s: %d %s", d.c.want.Event, n, text)})
		}
	}
	note(st.NoStart.Count, "ends of "+what+" have no recorded start, and are left out")
	note(d.window.Late, "records came later than the order of perf.data allows")
	if d.remote > 0 && (d.derivation.wakers || d.derivation.depth > 0) {
		note(d.remote, "wake-ups have no waker: they come from interrupts, or from another CPU, which sched_wakeup "+
			"does not tell apart")
		list[len(list)-1].Hint = "record the waking itself: perf record -a -g -e " + schedSwitch + "," + schedWaking
	}
	if r := d.threads.Runs; d.derivation.kind == wallClock {
		note(r.Lost.Count+r.NoEnd.Count+r.Back.Count, fmt.Sprintf("times in which a thread ran (%.3f s) are "+
			"left out, as their end was not recorded or records were lost", float64(r.Lost.Nanos+r.NoEnd.Nanos)/1e9))
	}
	if lost := d.c.Records.Stats.Lost; lost > 0 && len(d.threads.Losses) == 0 {
		note(lost, "records were lost at unknown times: "+what+" may be too long")
	}
	return list
}
