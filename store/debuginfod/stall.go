package debuginfod

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// stall ends a download that is too slow.
type stall struct {
	got  atomic.Int64 // bytes of this period
	done chan struct{}
}

// newStall starts to watch: at least stallBytes must arrive in each period. A period of 0 has no
// limit.
func newStall(period time.Duration, end context.CancelCauseFunc) *stall {
	s := &stall{done: make(chan struct{})}
	if period > 0 {
		go s.watch(period, end)
	}
	return s
}

func (s *stall) watch(period time.Duration, end context.CancelCauseFunc) {
	t := time.NewTicker(period)
	defer t.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-t.C:
			if n := s.got.Swap(0); n < stallBytes {
				end(fmt.Errorf("%d bytes arrived in %v", n, period))
				return
			}
		}
	}
}

func (s *stall) stop() { close(s.done) }

// reader counts the bytes that arrive.
func (s *stall) reader(r io.Reader) io.Reader { return &stallReader{r, s} }

type stallReader struct {
	r io.Reader
	s *stall
}

func (r *stallReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.s.got.Add(int64(n))
	return n, err
}

// progressReader reports the bytes that arrive.
type progressReader struct {
	r          io.Reader
	got, total int64
	url        string
	report     func(url string, got, total int64)
}

func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if n > 0 {
		p.got += int64(n)
		p.report(p.url, p.got, p.total)
	}
	return n, err
}
