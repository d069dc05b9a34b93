package httpretry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ErrStalled: fewer than StallBytes arrived in the period of a Watched transport.
var ErrStalled = errors.New("too few bytes arrived")

// StallBytes must arrive or be sent in each period, unless the transfer ends. The number is from
// debuginfod-client-config(7).
const StallBytes = 100 << 10

// Watched is a transport that ends transfers in which too few bytes arrive.
type Watched struct {
	Base   http.RoundTripper
	Period time.Duration // 0 for no limit
	// MaxAnswer returns how many bytes an answer may have; 0 for no limit.
	MaxAnswer func(resp *http.Response) int64
	// TooLarge is wrapped by the error of an answer above the limit.
	TooLarge error
}

// RoundTrip implements http.RoundTripper.
func (w *Watched) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	b := &watchedBody{ctx: ctx, period: w.Period, tooLarge: w.TooLarge, end: func() { cancel(nil) }}
	if w.Period > 0 {
		b.timer = time.AfterFunc(w.Period, func() { cancel(fmt.Errorf("%w in %v", ErrStalled, w.Period)) })
		b.end = func() {
			b.timer.Stop()
			cancel(nil)
		}
	}
	out := req.Clone(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		sent := *b
		sent.ReadCloser, sent.end = req.Body, func() {} // the answer is still to come
		out.Body = &sent
	}
	resp, err := w.Base.RoundTrip(out)
	if err != nil {
		err = CauseOf(ctx, err)
		b.end()
		return nil, err
	}
	if w.MaxAnswer != nil {
		b.limit = w.MaxAnswer(resp)
	}
	b.ReadCloser, resp.Body = resp.Body, b
	return resp, nil
}

// CauseOf returns why a context ended in place of the error that followed from it.
func CauseOf(ctx context.Context, err error) error {
	if err != nil && err != io.EOF && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// watchedBody is the body of a request or an answer.
type watchedBody struct {
	io.ReadCloser
	ctx      context.Context
	end      func()
	timer    *time.Timer // nil without a period
	period   time.Duration
	recent   int   // bytes since the timer was reset
	total    int64 // bytes
	limit    int64 // of total; 0 for none
	tooLarge error
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.total += int64(n)
	if b.recent += n; b.recent >= StallBytes && b.timer != nil {
		b.recent = 0
		b.timer.Reset(b.period)
	}
	if b.limit > 0 && b.total > b.limit {
		return 0, fmt.Errorf("%w: an answer of over %d bytes", b.tooLarge, b.limit)
	}
	return n, CauseOf(b.ctx, err)
}

// Close implements io.Closer.
func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
