package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// ErrStalled: nothing came for Options.Stall.
var ErrStalled = errors.New("nothing came")

// maxWait bounds the pause between two tries.
const maxWait = 10 * time.Second

// transport returns the transport of requests: each try is watched, and requests are repeated.
func (o *Options) transport() http.RoundTripper {
	base := o.base
	if base == nil {
		base = http.DefaultTransport.(*http.Transport).Clone()
	}
	retry := retryablehttp.NewClient()
	retry.Logger = nil
	retry.RetryMax = o.Retries
	retry.RetryWaitMin, retry.RetryWaitMax = o.Wait, maxWait
	retry.ErrorHandler = retryablehttp.PassthroughErrorHandler
	retry.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		if errors.Is(err, ErrStalled) {
			return false, err
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	retry.HTTPClient = &http.Client{Transport: &watched{base, o.Stall},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &retryablehttp.RoundTripper{Client: retry}
}

// watched ends requests in which nothing comes.
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
		out.Body = &watchedBody{req.Body, ctx, func(error) {}, timer, w.stall}
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
	resp.Body = &watchedBody{resp.Body, ctx, end, timer, w.stall}
	return resp, nil
}

// causeOf returns why a context ended instead of the error that this led to.
func causeOf(ctx context.Context, err error) error {
	if err != nil && err != io.EOF && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// watchedBody is the body of a request or an answer.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.timer.Reset(b.stall)
	}
	return n, causeOf(b.ctx, err)
}

// Close implements io.Closer.
func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
