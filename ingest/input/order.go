package input

import (
	"cmp"
	"context"
	"slices"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// queuedSample is the time of a sample, the place of its record, and the counts of its
// counters: a count is the difference to the reading before it in the recording, not in time.
type queuedSample struct {
	time   uint64
	at     sideband.Position
	size   int
	counts []sideband.Count
}

// sampleQueue puts the samples of a perf.data in order of time. perf record writes one
// CPU's buffer after the other, so the file is not in that order. Each pass over all
// buffers ends with a FINISHED_ROUND record: no later sample is older than the latest one
// of the round before. That bound is perf's own (tools/perf/util/ordered-events.c), and
// keeps the queue as short as two rounds.
type sampleQueue struct {
	pending  []queuedSample
	latest   uint64 // of all samples so far
	complete uint64 // samples up to this time are queued when this round ends
}

func (q *sampleQueue) add(s queuedSample) {
	q.pending = append(q.pending, s)
	q.latest = max(q.latest, s.time)
}

// round ends a round, and emits the samples that no later one can precede.
func (q *sampleQueue) round(emit func(queuedSample) error) error {
	err := q.upTo(q.complete, emit)
	q.complete = q.latest
	return err
}

// rest emits the remaining samples.
func (q *sampleQueue) rest(emit func(queuedSample) error) error {
	return q.upTo(^uint64(0), emit)
}

func (q *sampleQueue) upTo(limit uint64, emit func(queuedSample) error) error {
	slices.SortFunc(q.pending, func(a, b queuedSample) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.at, b.at))
	})
	n := 0
	for n < len(q.pending) && q.pending[n].time <= limit {
		if err := emit(q.pending[n]); err != nil {
			return err
		}
		n++
	}
	q.pending = slices.Delete(q.pending, 0, n)
	return nil
}

// inOrder calls emit for the samples of a capture in order of time.
func inOrder(ctx context.Context, c *collector, emit func(queuedSample) error) error {
	var q sampleQueue
	var s perfdata.Sample
	var records *perfdata.RecordReader // one for all chunks, as it has a large buffer
	counters := c.Records.CountersFrom(sideband.Chunk{})
	for i := range c.Records.NumChunks() {
		if err := ctx.Err(); err != nil {
			return err
		}
		records = c.Records.Read(records, c.Records.Chunk(i))
		for records.Next() {
			rec := records.Record()
			switch rec.Type {
			case perfdata.TypeFinishedRound:
				if err := q.round(emit); err != nil {
					return err
				}
			case perfdata.TypeSample:
				if c.Records.File.DecodeSample(rec, &s) == nil { // others were counted by Profile
					at := sideband.PositionOf(rec)
					next := queuedSample{time: c.Clock.At(s.Time, at), at: at, size: rec.Size}
					if len(s.Read) > 0 {
						next.counts = counters.Counts(&s, nil)
					}
					q.add(next)
				}
			}
		}
		if err := records.Err(); err != nil {
			return err
		}
	}
	return q.rest(emit)
}
