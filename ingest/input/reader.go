package input

import (
	"errors"

	"symbolize/ingest"
	"symbolize/ingest/fold/addrspace"
	"symbolize/ingest/fold/merge"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// threadState is a thread's name and its process's address space in a span of time without
// changes.
type threadState struct {
	pid, tid    int32
	comm        uint32
	version     addrspace.Version
	from, until uint64
	valid       bool

	// The labels of the thread's last sample, and their number.
	labelled bool
	labels   merge.Labels
	label    uint32
}

const threadCache = 1 << 10

// reader decodes the samples of the wanted events, processes and comms, for folding and
// replay. It is for one goroutine.
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
	cut         bool // the chain was rubbish: the parts are made of the sample's own address
	thread      *threadState

	stats    ingest.Stats
	warnings []sideband.Warning
}

func newReader(c *collector) *reader {
	r := &reader{c: c, split: newSplitter(c.Records.File), threads: make([]threadState, threadCache)}
	if c.unwinder != nil {
		u := &stackReader{r: r, unwinder: c.unwinder.Worker()}
		r.split.unwind = u.part
	}
	return r
}

// chunk starts reading the records of a chunk.
func (r *reader) chunk(c sideband.Chunk) {
	r.records = r.c.Records.Read(r.records, c)
}

// next advances to the next wanted sample.
func (r *reader) next() bool {
	for r.records.Next() {
		if rec := r.records.Record(); rec.Type == perfdata.TypeSample && r.take(rec) {
			return true
		}
	}
	return false
}

// take decodes the sample of a record, and reports whether it is wanted.
func (r *reader) take(rec *perfdata.Record) bool {
	if err := r.c.Records.File.DecodeSample(rec, &r.sample); err != nil {
		r.bad(rec, err)
		return false
	}
	r.event = r.c.event[r.sample.Event]
	if r.event < 0 || r.sample.Time < r.c.after || r.sample.Time > r.c.until {
		r.stats.FilteredOut++
		return false
	}
	r.rec = rec
	r.time = r.c.Clock.At(r.sample.Time, sideband.PositionOf(rec))
	if !r.who() {
		r.stats.FilteredOut++
		return false
	}
	r.parts()
	return true
}

// parts splits the chain of the present sample. A chain without any address gives
// way to the sample's own; where that is none either, the stack was not recorded.
func (r *reader) parts() {
	if r.sample.HasUserStack {
		r.countCopy()
	}
	r.kpart, r.part = r.split.split(r.rec, &r.sample)
	r.cut = false
	if !hasFrames(r.kpart) && !hasFrames(r.part) {
		r.cut = hasRubbish(r.kpart) || hasRubbish(r.part)
		r.kpart, r.part = r.split.lone(r.rec, &r.sample)
		if !hasFrames(r.kpart) && !hasFrames(r.part) {
			r.kpart, r.part = nil, notUnwound
		}
	}
	if r.plain {
		r.part = r.split.simplify(r.part, r.c.Spaces)
	}
}

// countCopy counts a copied stack.
func (r *reader) countCopy() {
	s, st := &r.sample, &r.stats.Copied
	st.Samples++
	st.Bytes = max(st.Bytes, uint64(s.UserAsked))
	if s.UserAsked > 0 && len(s.UserStack) == s.UserAsked {
		st.Full++
	}
}

func (r *reader) bad(rec *perfdata.Record, err error) {
	if errors.Is(err, perfdata.ErrUnknownID) {
		r.stats.UnknownIDs++
		return
	}
	r.stats.BadRecords++
	if len(r.warnings) < sideband.MaxWarnings {
		r.warnings = append(r.warnings,
			sideband.Warning{At: sideband.PositionOf(rec), Warning: ingest.Warning{Text: err.Error(), Partial: true}})
	}
}

// who finds the thread's name and the address spaces, and reports whether the sample passes
// the filters.
func (r *reader) who() bool {
	s := &r.sample
	st := &r.threads[uint32(s.TID)%threadCache]
	if !st.valid || st.tid != s.TID || st.pid != s.PID || r.time < st.from ||
		r.time >= st.until && st.until != addrspace.Forever {
		*st = r.threadState(s.PID, s.TID, r.time)
	}
	if !r.haveK || !r.kspan.Holds(r.time) {
		r.kspan, r.haveK = r.c.Spaces.Kernel(r.time), true
	}
	r.thread = st
	r.comm, r.user, r.kernel = st.comm, st.version, r.kspan.Version()
	return r.c.wanted(s.PID, st.comm)
}

func (r *reader) threadState(pid, tid int32, t uint64) threadState {
	name, proc := r.c.Spaces.Thread(tid, t), r.c.Spaces.Process(pid, t)
	return threadState{
		pid: pid, tid: tid, comm: sideband.CommCode(name.Value, tid), version: proc.Version(),
		from: max(name.From, proc.From), until: min(name.Until, proc.Until), valid: true,
	}
}

// label numbers the labels of the present sample, which mostly are those of the thread's
// last sample.
func (r *reader) label() uint32 {
	s, st, keep := &r.sample, r.thread, r.c.opts.Keep
	l := merge.Labels{Comm: r.comm, PID: -1, TID: -1, CPU: -1, Event: uint16(r.event)}
	if keep.PID {
		l.PID = s.PID
	}
	if keep.TID {
		l.TID = s.TID
	}
	if keep.CPU {
		l.CPU = int32(s.CPU)
	}
	if !st.labelled || st.labels != l {
		st.labels, st.label, st.labelled = l, r.c.labels.Number(l), true
	}
	return st.label
}
