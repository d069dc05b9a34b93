package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"symbolize/store"
	"symbolize/store/httpretry"
)

// ErrStalled: too little arrived in Options.Stall.
var ErrStalled = errors.New("nothing came")

// stallBytes must arrive in each Options.Stall, until the response ends.
const stallBytes = 64 << 10

// maxAnswer bounds the responses that the client library reads whole, which are all except the
// content of an object. A page of a listing has at most 1,000 keys of 1,024 bytes.
const maxAnswer = 4 << 20

// transport returns the transport of requests: each try is watched, and requests are repeated.
func (o *Options) transport() http.RoundTripper {
	base := o.base
	if base == nil {
		base = http.DefaultTransport.(*http.Transport).Clone()
	}
	client := &http.Client{Transport: &watched{base, o.Stall},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &retryablehttp.RoundTripper{Client: httpretry.New(httpretry.Options{Client: client,
		Retries: o.Retries, Wait: o.Wait,
		Final: func(err error) bool { return errors.Is(err, ErrStalled) }})}
}

// watched ends requests that receive too little.
type watched struct {
	base  http.RoundTripper
	stall time.Duration
}

// RoundTrip implements http.RoundTripper.
func (w *watched) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(w.stall, func() {
		cancel(fmt.Errorf("%w in %v", ErrStalled, w.stall))
	})
	out := req.Clone(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = &watchedBody{ReadCloser: req.Body, ctx: ctx, cancel: func(error) {}, timer: timer,
			stall: w.stall, left: math.MaxInt64}
	}
	resp, err := w.base.RoundTrip(out)
	if err != nil {
		timer.Stop()
		err = causeOf(ctx, err)
		cancel(nil)
		return nil, err
	}
	end := func(err error) {
		timer.Stop()
		cancel(err)
	}
	body := &watchedBody{ReadCloser: resp.Body, ctx: ctx, cancel: end, timer: timer, stall: w.stall,
		left: math.MaxInt64}
	if req.URL.RawQuery != "" || resp.StatusCode != http.StatusOK {
		body.left = maxAnswer
	}
	resp.Body = body
	return resp, nil
}

// causeOf returns the cause of a cancelled context in place of the error that it led to.
func causeOf(ctx context.Context, err error) error {
	if err != nil && err != io.EOF && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// watchedBody is the body of a request or a response.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
	got    int   // bytes since the timer was reset
	left   int64 // bytes that may still be read
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.got += n; b.got >= stallBytes {
		b.got = 0
		b.timer.Reset(b.stall)
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: an answer of over %d bytes", store.ErrTooLarge, maxAnswer)
	}
	return n, causeOf(b.ctx, err)
}

// Close implements io.Closer.
func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
