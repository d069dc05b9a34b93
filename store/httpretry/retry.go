// Package httpretry repeats HTTP requests that fail because of the network or the server, with
// growing pauses, and ends requests that stall: for debuginfod servers and buckets.
package httpretry

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// MaxWait bounds the pause between two tries. A request is not repeated if the server requests a
// longer one.
const MaxWait = 10 * time.Second

// Options are for New.
type Options struct {
	Client  *http.Client  // of single requests
	Retries int           // tries of a request after the first
	Wait    time.Duration // the first pause, which doubles each time; 0 for a second
	// Final reports whether an error of Client is not worth a repetition.
	Final func(err error) bool
}

// New returns a client that repeats requests. The last response or error is its result.
func New(opts Options) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient = opts.Client
	c.Logger = nil
	c.RetryMax = opts.Retries
	if opts.Wait > 0 {
		c.RetryWaitMin = opts.Wait
	}
	c.RetryWaitMax = MaxWait
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	c.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		switch {
		case err != nil && opts.Final(err):
			return false, err
		case err == nil && After(resp) > MaxWait:
			return false, nil
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	return c
}

// After returns the pause that a server requests (Retry-After), 0 for none.
func After(resp *http.Response) time.Duration {
	text := resp.Header.Get("Retry-After")
	if resp.StatusCode != http.StatusTooManyRequests &&
		resp.StatusCode != http.StatusServiceUnavailable || text == "" {
		return 0
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	t, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return time.Until(t).Round(time.Second)
}
