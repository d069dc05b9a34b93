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

// Queue writes to a Spool from its own goroutine, so that the producer does not wait for the file.
// Not safe for concurrent use.
type Queue struct {
	jobs chan job
	free chan []byte
	done chan struct{}
	err  atomic.Pointer[error]
}

// job is a block and the number of zeros after it.
type job struct {
	block []byte
	skip  int64
}

// queued is how many blocks can wait; the goroutines hold as many more.
const queued = 2

// NewQueue returns a Queue for a Spool, which must not be used otherwise until Close.
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

// Send queues a block and skip zeros after it; the caller must not use the block again. It returns
// the error of an earlier block.
func (q *Queue) Send(block []byte, skip int64) error {
	if err := q.err.Load(); err != nil {
		return *err
	}
	q.jobs <- job{block, skip}
	return nil
}

// Close waits until everything is written. No method may be called after it.
func (q *Queue) Close() error {
	close(q.jobs)
	<-q.done
	if err := q.err.Load(); err != nil {
		return *err
	}
	return nil
}

// CopyToSpool copies a reader to a Spool. Damage is an error of the reader, err an error of the
// spool or the context; data read before an error is kept.
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

// copySize is how many bytes CopyToSpool reads before it writes.
const copySize = 256 << 10

// Fill copies a reader to a temporary file while the disk has space.
func Fill(ctx context.Context, f *os.File, r io.Reader) error {
	s := &Spool{file: f}
	damage, err := CopyToSpool(ctx, s, r)
	return errors.Join(damage, err)
}
