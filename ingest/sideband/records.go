package sideband

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"symbolize/ingest/format/perfdata"
)

// Position is the position of a record in a capture. Positions increase in the order of reading;
// their difference is in general not a number of bytes. In a perf.data file it is the file offset.
type Position int64

// AtEnd is the position after all records.
const AtEnd Position = math.MaxInt64

// PositionOf returns the position of a record.
func PositionOf(rec *perfdata.Record) Position { return Position(rec.Offset) }

// order is the position as the time of captures without recorded times.
func (p Position) order() uint64 { return uint64(p) }

// Chunk is a range of records, without those at To.
type Chunk struct{ From, To Position }

// NumChunks is the number of chunks of the records.
func (x *Records) NumChunks() int { return max(0, len(x.starts)-1) }

// Chunk returns chunk i.
func (x *Records) Chunk(i int) Chunk { return Chunk{x.starts[i], x.starts[i+1]} }

// Read makes r, or a new reader if r is nil, read a chunk.
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

// counterKey is one counter. An inherited counter counts separately in each thread, with the same
// ID (perf_evsel__attr_has_per_thread_sample_period in tools/lib/perf/evsel.c).
type counterKey struct {
	id  uint64
	tid int32 // 0 if it is not inherited
}

// chunkReading is the last reading of a counter in the chunk that starts at a Position.
type chunkReading struct {
	chunk Position
	value uint64
}

// readings are values of counters in samples (PERF_SAMPLE_READ) for chunks that are read
// separately: by counter the last value in each chunk.
type readings map[counterKey][]chunkReading

// Counters turns the readings of a recording's samples into counts since the previous reading. The
// samples must be passed in the order of the recording, from the start of a chunk. It is not safe
// for concurrent use.
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

// Count is the difference of a counter from its previous reading.
type Count struct {
	Event int // index in File.Events, -1 for an unknown counter
	Count uint64
	Lower bool // the reading is lower than the previous one, which is impossible
}

// Counts appends the counts of a sample's readings, in their order; nothing for a sample without
// readings. As in perf, a first reading is a count.
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

// noteReadings records the readings of a sample in the current chunk. Damage is reported when
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

// deferred are the user chains that came in records of their own, after their samples. Equal chains
// are kept once; each record needs 24 bytes besides.
type deferred struct {
	refs    []deferredRef // sorted after all records are read
	chains  [][]byte
	numbers map[string]uint32
	record  perfdata.DeferredChain // scratch
}

// deferredRef is one record.
type deferredRef struct {
	cookie uint64
	tid    int32 // 0 if records do not have it
	chain  uint32
	at     Position
}

func compareDeferred(a, b deferredRef) int {
	return cmp.Or(cmp.Compare(a.cookie, b.cookie), cmp.Compare(a.tid, b.tid), cmp.Compare(a.at, b.at))
}

// deferredChain adds a CALLCHAIN_DEFERRED record.
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

// finish prepares the chains for look-ups.
func (d *deferred) finish() {
	d.numbers = nil
	slices.SortFunc(d.refs, compareDeferred)
}

// DeferredChain returns the recorded words of the user chain with a cookie, of a sample of a
// thread; nil if it was not delivered. Several samples share a chain if the thread was not in user
// mode between them.
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

// namesOthers reports whether the recording has events about threads without samples, whose names
// are printed: of tracepoints, and context switches.
func (x *Records) namesOthers() bool {
	return len(x.Switches) > 0 || slices.ContainsFunc(x.File.Events, func(e perfdata.Event) bool {
		return e.Attr.Type == perfdata.AttrTracepoint
	})
}
