package input

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"symbolize/ingest"
	"symbolize/ingest/addrspace"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/input/merge"
	"symbolize/ingest/sideband"
	"symbolize/ingest/texts"
)

// threadState is a thread's name and its process's address space during a span of time without
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

	// Of a derived event: the process is known by deriver.pids, and the subject of the last sample.
	known    bool
	subject  subject
	subjectN uint32 // 1 + its number
}

const threadCache = 1 << 10

// reader decodes the selected samples for folding and replay. It is not safe for concurrent use.
type reader struct {
	c       *collector
	records *perfdata.RecordReader
	split   *splitter
	// counters has the previous readings of counters; nil if no sample has readings, and in a
	// replay, which has the counts in queued.
	counters *sideband.Counters
	queued   []sideband.Count
	threads  []threadState // direct-mapped by tid
	tagger   *tagger       // nil if no tags are kept
	plain    bool          // chains may be simplified, as recorded addresses are not output
	// counted reports that the current sample was counted and need not be split; may be nil.
	counted func() bool
	kspan   addrspace.Span
	haveK   bool

	current
	counts    []sideband.Count // of the counters of the current sample
	delivered int              // number of counts delivered

	stats    ingest.Stats
	warnings []sideband.Warning
}

// current is the sample that a reader has decoded last, with what is known of its thread and time.
type current struct {
	sample      perfdata.Sample
	rec         *perfdata.Record
	time        uint64
	branches    branchReader
	event       int
	weight      uint64
	comm        uint32
	user        addrspace.Version
	kernel      addrspace.Version
	kpart, part []byte
	cut         bool // the chain was invalid, and replaced by the sample's own address
	lone        bool // the chain had no address, and was replaced likewise
	thread      *threadState
	guest       bool // of a virtual machine, by ID_INDEX
}

func newReader(c *collector) *reader {
	r := &reader{c: c, split: newSplitter(c.Records.File), threads: make([]threadState, threadCache),
		tagger: c.newTagger()}
	r.split.deferred = c.Records.DeferredChain
	if c.unwinder != nil {
		u := &stackReader{r: r, unwinder: c.unwinder.Worker()}
		r.split.unwind, r.split.leaf = u.part, u.withCaller
	}
	return r
}

// chunk starts reading the records of a chunk.
func (r *reader) chunk(c sideband.Chunk) {
	r.records = r.c.Records.Read(r.records, c)
	r.counters = r.c.Records.CountersFrom(c)
}

// next advances to the next selected sample.
func (r *reader) next() bool {
	if r.deliver() {
		return true
	}
	for r.records.Next() {
		rec := r.records.Record()
		if rec.Type == perfdata.TypeSample && r.decode(rec) && r.deliver() {
			return true
		}
	}
	return false
}

// decode decodes the sample of a record, and reports whether any of its counts is selected. deliver
// then returns these one after another.
func (r *reader) decode(rec *perfdata.Record) bool {
	if err := r.c.Records.File.DecodeSample(rec, &r.sample); err != nil {
		r.bad(rec, err)
		return false
	}
	r.count(rec)
	if len(r.counts) == 0 {
		return false
	}
	s := &r.sample
	r.rec = rec
	r.time = r.c.Clock.At(s.Time, sideband.PositionOf(rec))
	if s.Time < r.c.after || s.Time > r.c.until || !r.process() {
		r.stats.FilteredOut += uint64(len(r.counts))
		r.counts = r.counts[:0]
		return false
	}
	if r.c.want.Branches != NoBranches {
		r.event, r.weight = r.counts[0].Event, 1
		return r.startBranches(s)
	}
	if r.counted != nil && r.counted() {
		r.counts = r.counts[:0]
		return false
	}
	r.parts()
	return true
}

// count sets the counts to deliver, of selected events: the sample's period, or the counts of its
// group's counters since the previous sample. As in perf, counts of 0 are not delivered
// (deliver_sample_value in tools/perf/util/session.c).
func (r *reader) count(rec *perfdata.Record) {
	s := &r.sample
	r.counts, r.delivered = r.counts[:0], 0
	switch {
	case len(s.Read) == 0:
	case r.counters != nil:
		r.counts = r.counters.Counts(s, r.counts)
	default:
		r.counts = append(r.counts, r.queued...)
	}
	if len(r.counts) == 0 {
		r.counts = append(r.counts, sideband.Count{Event: s.Event, Count: s.Period})
		if r.c.latency {
			r.counts[0].Count = r.c.latencyOf(&r.sample)
		}
		if r.c.weights != nil {
			r.weigh(rec)
		}
	}
	selected := 0
	for _, n := range r.counts {
		switch {
		case n.Event < 0:
			r.stats.UnknownIDs++
		case n.Lower:
			r.bad(rec, fmt.Errorf("%s: offset %#x: a counter of %s reads less than before",
				r.c.Records.File.Name, rec.Offset, r.c.Records.File.Events[n.Event].Name))
		case n.Count == 0 && len(s.Read) > 0:
		case r.c.event[n.Event] < 0:
			r.stats.FilteredOut++
		default:
			n.Event = r.c.event[n.Event]
			r.counts[selected] = n
			selected++
		}
	}
	r.counts = r.counts[:selected]
}

// deliver sets event and weight to the next count of the current sample; false if there is none.
func (r *reader) deliver() bool {
	switch r.c.want.Branches {
	case BranchEntries:
		return r.nextBranch()
	case BranchRuns, BranchTraces:
		return r.nextPart()
	}
	if r.delivered == len(r.counts) {
		return false
	}
	n := &r.counts[r.delivered]
	r.event, r.weight = n.Event, n.Count
	r.delivered++
	return true
}

// parts splits the chain of the current sample. A chain without any address is replaced by the
// sample's own address; without that the stack was not recorded.
func (r *reader) parts() {
	if r.sample.HasUserStack {
		r.countCopy()
	}
	r.cut, r.lone, r.split.late = false, false, false
	if r.guest {
		r.kpart, r.part = nil, guestPart
		return
	}
	r.kpart, r.part = r.split.split(r.rec, &r.sample)
	if !hasFrames(r.kpart) && !hasFrames(r.part) {
		r.lone, r.cut = true, hasRubbish(r.kpart) || hasRubbish(r.part)
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
	if len(r.warnings) <= sideband.MaxWarnings {
		r.warnings = append(r.warnings,
			sideband.Warning{At: sideband.PositionOf(rec), Warning: ingest.Warning{Text: err.Error(), Partial: true}})
	}
}

// process finds the thread's name and the address spaces, and reports whether the sample passes the
// filters.
func (r *reader) process() bool {
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
	var comm uint32
	if comm, r.guest = r.c.Records.Guest(s); r.guest {
		r.comm, r.user = comm, 0
	}
	return r.c.selected(s, r.comm)
}

func (r *reader) threadState(pid, tid int32, t uint64) threadState {
	name, proc := r.c.Spaces.Thread(tid, t), r.c.Spaces.Process(pid, t)
	return threadState{
		pid: pid, tid: tid, comm: sideband.CommCode(name.Value, tid), version: proc.Version(),
		from: max(name.From, proc.From), until: min(name.Until, proc.Until), valid: true,
	}
}

// label numbers the labels of the current sample, which mostly equal the labels of the thread's
// last sample.
func (r *reader) label() uint32 {
	s, st, keep := &r.sample, r.thread, r.c.want.Keep
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
	if r.tagger != nil {
		l.Tags = r.tagger.number(&r.current)
	}
	if !st.labelled || st.labels != l {
		st.labels, st.label, st.labelled = l, r.c.labels.Number(l), true
	}
	return st.label
}

// Flags of an entry of a branch stack (struct perf_branch_entry).
const (
	branchMispredicted = 1 << 0
	branchPredicted    = 1 << 1

	branchSpecShift = 24 // PERF_BR_SPEC_…
	branchSpecMask  = 3
	branchWrongPath = 1 // speculated, not taken
)

// branchReader makes samples of the entries of branch stacks: the stack of each is the target of
// the branch, called by its source.
type branchReader struct {
	left  []byte // undelivered entries of the current sample
	flags uint64 // of the current entry
	words []byte

	parts []branchPart // of BranchRuns and BranchTraces, undelivered, the last first
	part  string       // of the current one
}

// branchPart is a sample made for BranchRuns or BranchTraces; its stack has the nonzero elements of
// pcs. Flags are those of the branch.
type branchPart struct {
	part  string
	pcs   [3]uint64
	flags uint64
}

// The values of the tag for the prediction of a branch; 0 if the processor reports none.
const (
	wasPredicted uint64 = 1 + iota
	wasMispredicted
)

// chooseBranches prepares Selection.Branches.
func (c *collector) chooseBranches() error {
	if c.want.Branches == NoBranches {
		return nil
	}
	file := c.Records.File
	if !c.anyHas(perfdata.SampleBranchStack) {
		if c.want.Branches == BranchTraces {
			c.want.Branches = NoBranches
			return nil
		}
		return texts.WithHint(fmt.Errorf("%s: its samples have no branch stacks", file.Name),
			"record them with `perf record -b`, on a processor that has them")
	}
	for i := range c.events {
		c.events[i].Unit, c.events[i].Period = "count", 0
	}
	if c.want.Branches != BranchEntries {
		c.sources = append(c.sources, tagSource{key: ingest.BranchTag,
			value: func(x *current) uint64 { return uint64(slices.Index(branchParts[:], x.branches.part)) },
			text:  func(v uint64) string { return branchParts[v] }})
	}
	if c.want.Branches == BranchRuns {
		return nil
	}
	c.sources = append(c.sources, tagSource{key: ingest.PredictionTag,
		value: func(x *current) uint64 {
			switch {
			case x.branches.flags&branchMispredicted != 0:
				return wasMispredicted
			case x.branches.flags&branchPredicted != 0:
				return wasPredicted
			}
			return 0
		},
		text: func(v uint64) string {
			if v == wasMispredicted {
				return ingest.Mispredicted
			}
			return ingest.Predicted
		}})
	return nil
}

// branchParts are the values of ingest.BranchTag; 0 means none.
var branchParts = [...]string{"", ingest.BranchSampled, ingest.BranchTaken, ingest.BranchRun,
	ingest.BranchBogus, ingest.BranchTrace}

// startBranches prepares the branch stack of a sample, and reports whether it has anything to
// deliver.
func (r *reader) startBranches(s *perfdata.Sample) bool {
	b := &r.branches
	if r.c.want.Branches == BranchEntries {
		b.left = s.Branches
		return len(s.Branches) > 0
	}
	b.parts = b.parts[:0]
	if s.IP != 0 && (r.c.want.Branches == BranchRuns || len(s.Branches) == 0) {
		b.parts = append(b.parts, branchPart{part: ingest.BranchSampled, pcs: [3]uint64{s.IP}})
	}
	if r.c.want.Branches == BranchRuns {
		b.addRuns(s.Branches)
	} else {
		b.addTraces(s.Branches)
	}
	return len(b.parts) > 0
}

// addTraces adds the branches of a stack, the newest first, each with the source of the next. It
// follows BOLT (DataAggregator::parseLBRSample): branches between kernel and user code, of
// interrupts and system calls, are left out, and traces of either pass over those of the other.
func (b *branchReader) addTraces(entries []byte) {
	var newer [2]uint64 // source of the next branch in user code, and in the kernel; 0 for none
	for x, ok := nextEntry(&entries); ok; x, ok = nextEntry(&entries) {
		from, to := x.from, x.to
		if x.wrongPath() || (from < kernelHalf) != (to < kernelHalf) {
			continue
		}
		mode := 0
		if from >= kernelHalf {
			mode = 1
		}
		part := branchPart{ingest.BranchTrace, [3]uint64{newer[mode], to, from}, x.flags}
		if newer[mode] == 0 {
			part.part = ingest.BranchTaken
		}
		b.parts = append(b.parts, part)
		newer[mode] = from
	}
}

// Bounds of the code between two branches, bytes. The lower bound is for a loop that is the newest
// branch and that the processor has recorded twice.
const (
	longestRun  = 1 << 20
	longestLoop = 1 << 12
)

// addRuns adds the branches of a stack, the newest first, and the code between two of them. It
// follows AutoFDO (PerfDataSampleReader::Append in sample_reader.cc), except that it ignores
// branches that were only speculated.
func (b *branchReader) addRuns(entries []byte) {
	var newer [2]uint64 // source and target of the branch after this one; 0 for none
	n := 0
	for x, ok := nextEntry(&entries); ok; x, ok = nextEntry(&entries) {
		if x.wrongPath() {
			continue
		}
		from, to := x.from, x.to
		// There is no run between branches if the kernel is entered or left.
		if n++; n > 1 && (to < kernelHalf) == (newer[0] < kernelHalf) {
			part := branchPart{part: ingest.BranchRun, pcs: [3]uint64{to, newer[0]}}
			twice := n == 2 && newer == [2]uint64{from, to}
			if end := newer[0]; end < to || end-to > longestRun || twice && end-to > longestLoop {
				part.part = ingest.BranchBogus
			}
			b.parts = append(b.parts, part)
			if part.part == ingest.BranchBogus {
				newer = [2]uint64{from, to}
				continue
			}
		}
		b.parts = append(b.parts, branchPart{part: ingest.BranchTaken, pcs: [3]uint64{to, from}})
		newer = [2]uint64{from, to}
	}
}

// nextPart makes the next part the reader's current sample; false if there is none.
func (r *reader) nextPart() bool {
	b := &r.branches
	n := len(b.parts) - 1
	if n < 0 {
		return false
	}
	p := &b.parts[n]
	b.parts, b.part, b.flags, b.words = b.parts[:n], p.part, p.flags, b.words[:0]
	for _, pc := range p.pcs {
		if pc != 0 {
			b.addWord(pc)
		}
	}
	r.kpart, r.part, r.cut = nil, b.words, false
	return true
}

// addWord adds an exact address with its mode to the chain.
func (b *branchReader) addWord(pc uint64) {
	mode := uint64(contextUser)
	if pc >= kernelHalf {
		mode = contextKernel
	}
	b.words = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b.words, mode), pc)
}

// nextBranch makes the next entry of the branch stack the reader's current sample; false if there
// is none. Empty entries are skipped.
func (r *reader) nextBranch() bool {
	b := &r.branches
	x, ok := nextEntry(&b.left)
	if !ok {
		return false
	}
	b.flags = x.flags
	b.words = b.words[:0]
	b.addWord(x.to)
	b.addWord(x.from)
	r.kpart, r.part, r.cut = nil, b.words, false
	return true
}

// branchEntry is an entry of a branch stack.
type branchEntry struct{ from, to, flags uint64 }

// wrongPath reports whether the processor only speculated that the branch would be taken.
func (x *branchEntry) wrongPath() bool {
	return x.flags>>branchSpecShift&branchSpecMask == branchWrongPath
}

// nextEntry cuts the next entry off a branch stack; false if there is none. Entries that the processor
// has not filled, or with addresses that no code has, are skipped.
func nextEntry(entries *[]byte) (x branchEntry, ok bool) {
	le := binary.LittleEndian
	for len(*entries) >= perfdata.BranchSize {
		b := *entries
		*entries = b[perfdata.BranchSize:]
		x = branchEntry{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])}
		if (x.from != 0 || x.to != 0) && x.from < contextMax && x.to < contextMax {
			return x, true
		}
	}
	return branchEntry{}, false
}
