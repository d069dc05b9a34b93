package sideband

import (
	"math"

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
