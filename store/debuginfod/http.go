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

// server is one server and the outcomes of requests to it.
type server struct {
	url string

	mu       sync.Mutex
	failures int   // one after another
	later    error // its answer that it asks to be left alone
}

// leftOut returns why a server gets no more requests, or nil.
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

// note counts the outcome of a request. Files that are not there or too large are no failures.
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

// newHTTP returns the client of requests, which repeats those that fail.
func newHTTP(opts *Options, transport http.RoundTripper) *http.Client {
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.RegisterProtocol("file", fileTransport{})
		transport = t
	}
	return httpretry.New(httpretry.Options{
		Client:  &http.Client{Transport: transport, CheckRedirect: opts.checkRedirect},
		Retries: opts.Retries, Wait: opts.Wait,
		Final: func(err error) bool { return errors.Is(err, errRedirect) }}).StandardClient()
}

// maxRedirects is that of net/http's client.
const maxRedirects = 10

// errRedirect is wrapped by the errors of redirects that are not followed, nor repeated.
var errRedirect = errors.New("redirect refused")

// checkRedirect lets a server send requests on to other servers, but not to files of this host.
// Headers of Options do not go to another one.
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
