package files

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
)

// QueueBlock is the capacity of a Queue's buffers, in bytes.
const QueueBlock = 1 << 20

// Queue writes to a Spool from a goroutine of its own, so that whoever makes the bytes need
// not wait for the file. It is for one goroutine.
type Queue struct {
	jobs chan job
	free chan []byte
	done chan struct{}
	err  atomic.Pointer[error]
}

// job is a block, and the number of zeros behind it.
type job struct {
	block []byte
	skip  int64
}

// queued is how many blocks can wait; as many more are with the goroutines.
const queued = 2

// NewQueue returns a Queue for a Spool, which belongs to it until Close.
func NewQueue(s *Spool) *Queue {
	q := &Queue{jobs: make(chan job, queued), free: make(chan []byte, 2*queued),
		done: make(chan struct{})}
	go q.write(s)
	return q
}

func (q *Queue) write(s *Spool) {
	defer close(q.done)
	for j := range q.jobs {
		if q.err.Load() == nil {
			if err := j.writeTo(s); err != nil {
				q.err.Store(&err)
			}
		}
		select {
		case q.free <- j.block[:0]:
		default:
		}
	}
}

func (j *job) writeTo(s *Spool) error {
	if _, err := s.Write(j.block); err != nil {
		return err
	}
	if j.skip > 0 {
		return s.Skip(j.skip)
	}
	return nil
}

// Buffer returns an empty block to fill. It grows by append beyond its capacity.
func (q *Queue) Buffer() []byte {
	select {
	case b := <-q.free:
		return b
	default:
		return nil
	}
}

// Send gives a block away to be written, and skip zeros behind it. The error is that of an
// earlier block.
func (q *Queue) Send(block []byte, skip int64) error {
	if err := q.err.Load(); err != nil {
		return *err
	}
	q.jobs <- job{block, skip}
	return nil
}

// Close waits until all is written. It can be called once; later calls of other methods fail.
func (q *Queue) Close() error {
	close(q.jobs)
	<-q.done
	if err := q.err.Load(); err != nil {
		return *err
	}
	return nil
}

// CopyToSpool writes all that a reader gives into a Spool. Damage is the error of the reader, err that
// of the spool or the context; the data before is kept.
func CopyToSpool(ctx context.Context, s *Spool, r io.Reader) (damage, err error) {
	q := NewQueue(s)
	for damage == nil && err == nil {
		block := q.Buffer()
		if block == nil {
			block = make([]byte, 0, copySize)
		}
		n := 0
		for n < cap(block) && damage == nil {
			var got int
			got, damage = r.Read(block[n:cap(block)])
			n += got
		}
		err = errors.Join(q.Send(block[:n], 0), ctx.Err())
	}
	if failed := q.Close(); failed != nil {
		err = failed
	}
	if damage == io.EOF {
		damage = nil
	}
	return damage, err
}

// copySize is how much CopyToSpool reads before it writes, in bytes.
const copySize = 256 << 10

// Fill writes all that a reader gives to a temporary file, as long as there is room.
func Fill(ctx context.Context, f *os.File, r io.Reader) error {
	s := &Spool{file: f}
	damage, err := CopyToSpool(ctx, s, r)
	return errors.Join(damage, err)
}
