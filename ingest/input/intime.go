package input

import (
	"container/heap"
	"context"

	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/sideband"
)

// A recording is sorted by reading its records in an order from which a pair.Window makes the order
// of time. In one file that is the order of the file, with a FINISHED_ROUND record after each round.
// A directory of perf record --threads has a file for each reading thread, and no rounds: its files
// are read side by side, the record with the least time first.
//
// A file of one CPU is in order of time, but for records that an interrupt made while another was
// written. In a file of several CPUs, which are read in turn, a round ends when a CPU comes again: as
// in one file, no later record is older than the latest one of the round before.

// inTime calls read for all records. complete is called with a time now and then: all records up to
// that time were read.
func (c *collector) inTime(ctx context.Context, read func(*perfdata.Record) error,
	round func() error, complete func(uint64) error) error {
	if parts := c.Records.File.Parts; len(parts) > 1 && c.Clock.Timed {
		return c.mergeParts(ctx, parts, checkParts, read, complete)
	}
	var records *perfdata.RecordReader // one for all chunks, as it has a large buffer
	for i := range c.Records.NumChunks() {
		if err := ctx.Err(); err != nil {
			return err
		}
		records = c.Records.Read(records, c.Records.Chunk(i))
		for records.Next() {
			err := error(nil)
			if rec := records.Record(); rec.Type == perfdata.TypeFinishedRound {
				err = round()
			} else {
				err = read(rec)
			}
			if err != nil {
				return err
			}
		}
		if err := records.Err(); err != nil {
			return err
		}
	}
	return nil
}

const (
	partBuffer  = 128 << 10 // of each file
	checkParts  = 1 << 13   // records between two calls of complete
	partSlack   = 10e6      // ns by which a record of a CPU may come late
	noCPU       = -1
	notRecorded = -2
)

// partReader reads one file of a directory.
type partReader struct {
	records *perfdata.RecordReader
	file    *perfdata.File
	time    uint64 // of the current record; of one without a time that of the record before it
	latest  uint64
	several bool // CPUs
	// With several CPUs: the current one, those of this round, the latest time up to the round before
	// it, and that up to the one before that.
	cpu                int32
	round              map[int32]bool
	previous, complete uint64
}

// next advances to the next record.
func (p *partReader) next() bool {
	if !p.records.Next() {
		return false
	}
	time, cpu := p.at()
	if time > 0 {
		p.time = time
	}
	if p.several && cpu >= 0 && cpu != p.cpu {
		if p.cpu = cpu; p.round[cpu] {
			clear(p.round)
			p.complete, p.previous = p.previous, p.latest
		}
		p.round[cpu] = true
	}
	p.latest = max(p.latest, p.time)
	return true
}

// at returns the time of the current record, 0 if it has none, and its CPU.
func (p *partReader) at() (time uint64, cpu int32) {
	id, err := p.file.SampleID(p.records.Record())
	if err != nil || id.Time == sideband.NoTime || id.Time == 0 {
		return 0, notRecorded
	}
	return id.Time, cpuOf(&id)
}

// bound is a time up to which all records of the file were read.
func (p *partReader) bound() uint64 {
	if p.several {
		return p.complete
	}
	return p.latest - min(p.latest, partSlack)
}

// hasSeveral reports whether a file has records of several CPUs.
func (p *partReader) hasSeveral(ctx context.Context) (bool, error) {
	first := int32(notRecorded)
	for n := 0; p.records.Next(); n++ {
		if n%checkParts == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		_, cpu := p.at()
		if cpu == noCPU || first >= 0 && cpu >= 0 && cpu != first {
			return true, nil
		}
		first = max(first, cpu)
	}
	return false, p.records.Err()
}

// partHeap has the readers that are not at their end, the least time first.
type partHeap []*partReader

func (h partHeap) Len() int           { return len(h) }
func (h partHeap) Less(i, k int) bool { return h[i].time < h[k].time }
func (h partHeap) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }
func (h *partHeap) Push(x any)        { *h = append(*h, x.(*partReader)) }
func (h *partHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// mergeParts is inTime of the files of a directory. complete is called after every so many records.
func (c *collector) mergeParts(ctx context.Context, parts []perfdata.Section, every int,
	read func(*perfdata.Record) error, complete func(uint64) error) error {
	var readers partHeap
	for _, s := range parts {
		p := &partReader{file: c.Records.File, cpu: notRecorded, round: make(map[int32]bool)}
		p.records = c.Records.File.RecordsBuffered(s.Offset, s.End(), partBuffer)
		var err error
		if p.several, err = p.hasSeveral(ctx); err != nil {
			return err
		}
		p.records.Reset(s.Offset, s.End())
		if p.next() {
			readers = append(readers, p)
		}
	}
	heap.Init(&readers)
	for n := 0; len(readers) > 0; n++ {
		p := readers[0]
		if err := read(p.records.Record()); err != nil {
			return err
		}
		if p.next() {
			heap.Fix(&readers, 0)
		} else if heap.Pop(&readers); p.records.Err() != nil {
			return p.records.Err()
		}
		if n%every != 0 || len(readers) == 0 {
			continue
		}
		bound := readers[0].bound()
		for _, p := range readers {
			bound = min(bound, p.bound())
		}
		if err := complete(bound); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
