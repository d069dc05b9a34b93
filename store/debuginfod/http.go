package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"

	"symbolize/ingest/files"
	"symbolize/store/httpretry"
)

// failuresOfServer is how many requests fail one after another until a server is left out.
const failuresOfServer = 5

// server is a server with the results of requests to it.
type server struct {
	url string

	mu       sync.Mutex
	failures int   // one after another
	later    error // ErrLater, if the server requested a pause
}

// leftOut returns the reason why a server gets no more requests, or nil.
func (s *server) leftOut() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.later != nil:
		return fmt.Errorf("%s: left out: %w", s.url, s.later)
	case s.failures >= failuresOfServer:
		return fmt.Errorf("%s: left out after %d failures", s.url, failuresOfServer)
	}
	return nil
}

// note counts the result of a request. Missing and too large files are not failures.
func (s *server) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrTooLarge) ||
		errors.Is(err, context.Canceled):
		s.failures = 0
	case errors.Is(err, ErrLater):
		s.later = ErrLater
	default:
		s.failures++
	}
}

// newHTTP returns a client that repeats failed requests.
func newHTTP(opts *Options, transport http.RoundTripper) *http.Client {
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.RegisterProtocol("file", fileTransport{})
		transport = t
	}
	transport = &httpretry.Watched{Base: transport, Period: opts.Stall}
	return httpretry.New(httpretry.Options{
		Client:  &http.Client{Transport: transport, CheckRedirect: opts.checkRedirect},
		Retries: opts.Retries, Wait: opts.Wait,
		Final: func(err error) bool {
			return errors.Is(err, errRedirect) || errors.Is(err, httpretry.ErrStalled)
		}}).StandardClient()
}

// maxRedirects is the limit of net/http's client.
const maxRedirects = 10

// errRedirect is wrapped by errors of refused redirects; such requests are not repeated.
var errRedirect = errors.New("redirect refused")

// checkRedirect allows redirects to other servers, but not to files of this host. Another server
// does not get the headers of Options.
func (o *Options) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("%w: there were %d", errRedirect, maxRedirects)
	}
	if scheme := req.URL.Scheme; scheme != "http" && scheme != "https" {
		return fmt.Errorf("%w: %q is not http or https", errRedirect, req.URL.Redacted())
	}
	if req.URL.Host != via[0].URL.Host {
		for name := range o.Header {
			req.Header.Del(name)
		}
	}
	return nil
}

// fileTransport answers requests for file URLs with regular files of this host: a pipe or device
// would block or never end.
type fileTransport struct{}

// RoundTrip implements http.RoundTripper.
func (fileTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{Proto: "HTTP/1.0", ProtoMajor: 1, Request: req, Header: make(http.Header),
		Body: http.NoBody, StatusCode: http.StatusOK}
	f, err := files.Open(req.URL.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		resp.StatusCode = http.StatusNotFound
	case err != nil:
		return nil, err
	default:
		resp.Body, resp.ContentLength = io.ReadCloser(f), -1
		if fi, err := f.Stat(); err == nil {
			resp.ContentLength = fi.Size()
		}
	}
	resp.Status = fmt.Sprint(resp.StatusCode, " ", http.StatusText(resp.StatusCode))
	return resp, nil
}
