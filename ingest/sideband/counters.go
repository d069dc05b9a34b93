package sideband

import (
	"sort"

	"symbolize/ingest/format/perfdata"
)

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
