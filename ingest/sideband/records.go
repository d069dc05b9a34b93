package sideband

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"symbolize/ingest/format/perfdata"
)

// Position is where a record is in a capture. Positions grow in the order in which records
// are read; the distance of two is not a number of bytes in general. The Position of a record
// in a perf.data file is its file offset.
type Position int64

// AtEnd is the position after all records.
const AtEnd Position = math.MaxInt64

// PositionOf returns the position of a record.
func PositionOf(rec *perfdata.Record) Position { return Position(rec.Offset) }

// order is the position as the time of captures without recorded times.
func (p Position) order() uint64 { return uint64(p) }

// Chunk is the records from one position to before another.
type Chunk struct{ From, To Position }

// NumChunks is the number of chunks of the records.
func (x *Records) NumChunks() int { return max(0, len(x.starts)-1) }

// Chunk returns chunk i.
func (x *Records) Chunk(i int) Chunk { return Chunk{x.starts[i], x.starts[i+1]} }

// Read makes r, nil for a new reader, read a chunk.
func (x *Records) Read(r *perfdata.RecordReader, c Chunk) *perfdata.RecordReader {
	if r == nil {
		return x.File.Records(int64(c.From), int64(c.To))
	}
	r.Reset(int64(c.From), int64(c.To))
	return r
}

// At reads one record by its position and size.
func (x *Records) At(r *perfdata.RecordReader, at Position, size int) (*perfdata.Record, error) {
	return r.At(int64(at), size)
}

// counterKey is one counter. An inherited one counts in each thread apart from the others, and
// its readings have the same ID (perf_evsel__attr_has_per_thread_sample_period in
// tools/lib/perf/evsel.c).
type counterKey struct {
	id  uint64
	tid int32 // 0 for those that are not inherited
}

// chunkReading is the last reading of a counter in the chunk that starts at a position.
type chunkReading struct {
	chunk Position
	value uint64
}

// readings are the values of counters that samples have (PERF_SAMPLE_READ), as far as chunks
// need them that are read apart from those before them: by counter the last one of each chunk.
type readings map[counterKey][]chunkReading

// Counters turns the readings of a recording's samples into the counts since the reading
// before. The samples are to be given in the order of the recording, from the start of a chunk
// on. It is for one goroutine.
type Counters struct {
	x    *Records
	from Position
	last map[counterKey]uint64
	list []perfdata.Reading
}

// CountersFrom returns the counters at the start of a chunk; nil if no event has readings.
func (x *Records) CountersFrom(c Chunk) *Counters {
	if x.readings == nil {
		return nil
	}
	return &Counters{x: x, from: c.From, last: make(map[counterKey]uint64)}
}

// Count is the difference of a counter from its reading before.
type Count struct {
	Event int // index in File.Events, -1 for a counter of none
	Count uint64
	Lower bool // the reading is lower than the one before, which no counter does
}

// Counts appends the counts of a sample's readings, in their order; nothing for a sample
// without. A first reading is a count in itself, as perf has it.
func (c *Counters) Counts(s *perfdata.Sample, out []Count) []Count {
	c.list = c.x.File.Readings(s, c.list[:0])
	for _, r := range c.list {
		event, ok := c.x.File.EventOfID(r.ID)
		if !ok {
			out = append(out, Count{Event: -1})
			continue
		}
		key := c.x.counter(s, r.ID)
		before, known := c.last[key]
		if !known {
			before = c.x.readings.before(key, c.from)
		}
		c.last[key] = r.Value
		out = append(out, Count{Event: event, Count: r.Value - before, Lower: r.Value < before})
	}
	return out
}

// counter returns the counter of an ID in a sample.
func (x *Records) counter(s *perfdata.Sample, id uint64) counterKey {
	if x.File.Events[s.Event].Attr.Has(perfdata.FlagInherit) {
		return counterKey{id, s.TID}
	}
	return counterKey{id: id}
}

// before returns the last reading of a counter before a chunk, 0 if there is none.
func (m readings) before(key counterKey, chunk Position) uint64 {
	list := m[key]
	n := sort.Search(len(list), func(i int) bool { return list[i].chunk >= chunk })
	if n == 0 {
		return 0
	}
	return list[n-1].value
}

// hasReadings reports whether an event's samples have the values of counters.
func hasReadings(f *perfdata.File) bool {
	for i := range f.Events {
		if f.Events[i].Attr.SampleType&perfdata.SampleRead != 0 {
			return true
		}
	}
	return false
}

// noteReadings enters the readings of a sample in the present chunk. Damage is reported when
// samples are read.
func (x *Records) noteReadings(rec *perfdata.Record) {
	if x.File.DecodeSample(rec, &x.sample) != nil {
		return
	}
	chunk := x.starts[len(x.starts)-1]
	x.list = x.File.Readings(&x.sample, x.list[:0])
	for _, r := range x.list {
		key := x.counter(&x.sample, r.ID)
		list := x.readings[key]
		if n := len(list); n > 0 && list[n-1].chunk == chunk {
			list[n-1].value = r.Value
		} else {
			x.readings[key] = append(list, chunkReading{chunk, r.Value})
		}
	}
}

// deferred are the user chains that came in records of their own, behind their samples. Equal
// ones are kept once; one of a sample takes 24 bytes beside.
type deferred struct {
	refs    []deferredRef // sorted when all records are read
	chains  [][]byte
	numbers map[string]uint32
	record  perfdata.DeferredChain // scratch
}

// deferredRef is one record.
type deferredRef struct {
	cookie uint64
	tid    int32 // 0 if the records do not have it
	chain  uint32
	at     Position
}

func compareDeferred(a, b deferredRef) int {
	return cmp.Or(cmp.Compare(a.cookie, b.cookie), cmp.Compare(a.tid, b.tid), cmp.Compare(a.at, b.at))
}

// deferredChain enters a CALLCHAIN_DEFERRED record.
func (x *Records) deferredChain(rec *perfdata.Record) error {
	d := &x.deferred
	if err := x.File.DeferredChain(rec, &d.record); err != nil {
		return err
	}
	id, err := x.File.SampleID(rec)
	if err != nil {
		return err
	}
	n, ok := d.numbers[string(d.record.Chain)]
	if !ok {
		if d.numbers == nil {
			d.numbers = make(map[string]uint32)
		}
		n = uint32(len(d.chains))
		chain := slices.Clone(d.record.Chain)
		d.chains = append(d.chains, chain)
		d.numbers[string(chain)] = n
	}
	d.refs = append(d.refs, deferredRef{d.record.Cookie, id.TID, n, PositionOf(rec)})
	return nil
}

// finish makes the chains ready to be looked up.
func (d *deferred) finish() {
	d.numbers = nil
	slices.SortFunc(d.refs, compareDeferred)
}

// DeferredChain returns the user chain that a sample of a thread refers to by its cookie, words
// as recorded; nil if it was never delivered. Several samples can share one: the thread was not
// in user mode between them.
func (x *Records) DeferredChain(tid int32, cookie uint64) []byte {
	d := &x.deferred
	for _, tid := range []int32{tid, 0} {
		i, _ := slices.BinarySearchFunc(d.refs, deferredRef{cookie: cookie, tid: tid}, compareDeferred)
		if i < len(d.refs) && d.refs[i].cookie == cookie && d.refs[i].tid == tid {
			return d.chains[d.refs[i].chain]
		}
	}
	return nil
}

// containment has the facts of a capture's records on control groups and namespaces.
type containment struct {
	cgroups    map[uint64]string // paths by number
	namespaces map[int32][]threadNamespaces
}

// threadNamespaces are the namespaces of a thread from a time on.
type threadNamespaces struct {
	time  uint64
	links [perfdata.NumNamespaces]perfdata.Namespace
}

// cgroup enters a CGROUP record.
func (sb *State) cgroup(rec *perfdata.Record) error {
	var c perfdata.Cgroup
	if err := sb.Records.File.Cgroup(rec, &c); err != nil {
		return err
	}
	if sb.containment.cgroups == nil {
		sb.containment.cgroups = make(map[uint64]string)
	}
	sb.containment.cgroups[c.ID] = string(c.Path)
	return nil
}

// enterNamespaces enters a NAMESPACES record. The kernel writes one for each new thread, and
// when one changes its namespaces.
func (sb *State) enterNamespaces(rec *perfdata.Record) error {
	var n perfdata.Namespaces
	if err := sb.Records.File.Namespaces(rec, &n); err != nil {
		return err
	}
	x := &sb.containment
	if x.namespaces == nil {
		x.namespaces = make(map[int32][]threadNamespaces)
	}
	x.namespaces[n.TID] = append(x.namespaces[n.TID],
		threadNamespaces{sb.timeOf(rec), n.Links})
	return nil
}

// sortNamespaces brings the namespaces of each thread into the order of time.
func (x *containment) sortNamespaces() {
	for _, list := range x.namespaces {
		slices.SortStableFunc(list, func(a, b threadNamespaces) int {
			return cmp.Compare(a.time, b.time)
		})
	}
}

// CgroupPath returns the path of a control group by its number, "" if no record has it.
func (sb *State) CgroupPath(number uint64) string { return sb.containment.cgroups[number] }

// Namespace returns the number of a thread's namespace at a time, by its index in
// perfdata.Namespaces.Links; 0 if no record has it.
func (sb *State) Namespace(tid int32, time uint64, index int) uint64 {
	list := sb.containment.namespaces[tid]
	n, found := slices.BinarySearchFunc(list, time, func(x threadNamespaces, t uint64) int {
		return cmp.Compare(x.time, t)
	})
	for found && n+1 < len(list) && list[n+1].time == time {
		n++ // the last of that time
	}
	if !found {
		n--
	}
	if n < 0 {
		return 0
	}
	return list[n].links[index].Inode
}
