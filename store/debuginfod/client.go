package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/sony/gobreaker/v2"

	"symbolize/buildid"
	"symbolize/ingest/newfile"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/regular"
)

// Kind is which of the files of a build ID is asked for.
type Kind string

// The kinds, by their names in URLs and in the cache.
const (
	Executable Kind = "executable" // with code: a program, a library
	Debuginfo  Kind = "debuginfo"  // with .debug_info
)

// Errors to test for. Others are of the network, of a server, or of the cache.
var (
	ErrNotFound = errors.New("no server has it")
	ErrTooLarge = errors.New("larger than the limit")
	ErrWrong    = errors.New("the server sent another file")
)

const (
	failuresOfServer = 5                // one after another, after which it is left out
	defaultMiss      = 10 * time.Minute // how long an empty file in the cache counts
)

// Client gets files. It may be used by several goroutines, each with other build IDs.
type Client struct {
	opts    Options
	http    *http.Client
	servers []*server
}

// server is one server and the outcomes of requests to it.
type server struct {
	url     string
	breaker *gobreaker.CircuitBreaker[struct{}]
}

// New returns a client. The transport is that of requests; nil for that of net/http.
func New(opts Options, transport http.RoundTripper) *Client {
	retry := retryablehttp.NewClient()
	retry.Logger = nil
	retry.RetryMax = opts.Retries
	if opts.Wait > 0 {
		retry.RetryWaitMin = opts.Wait
	}
	retry.RetryWaitMax = 10 * time.Second
	retry.ErrorHandler = retryablehttp.PassthroughErrorHandler
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.RegisterProtocol("file", http.NewFileTransport(http.Dir("/")))
		transport = t
	}
	retry.HTTPClient.Transport = transport
	c := &Client{opts: opts, http: retry.StandardClient()}
	for _, url := range opts.Servers {
		c.servers = append(c.servers, &server{strings.TrimRight(url, "/"),
			gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
				Timeout: time.Hour,
				ReadyToTrip: func(n gobreaker.Counts) bool {
					return n.ConsecutiveFailures >= failuresOfServer
				},
				IsSuccessful: func(err error) bool {
					return err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrTooLarge) ||
						errors.Is(err, context.Canceled)
				},
			})})
	}
	return c
}

// Get returns the path of a file in the cache, which it gets from the first server that has it.
// fetched is false if it was there.
func (c *Client) Get(ctx context.Context, id buildid.ID, kind Kind) (
	path string, fetched bool, err error) {
	return c.get(ctx, id, kind, func(ctx context.Context, server, path string) error {
		return c.download(ctx, fmt.Sprintf("%s/buildid/%s/%s", server, id.Hex(), kind),
			func(body io.Reader) (again bool, err error) { return c.save(path, id, body) })
	})
}

// get is Get with a function that takes a file from one server to a path.
func (c *Client) get(ctx context.Context, id buildid.ID, kind Kind,
	download func(ctx context.Context, server, path string) error) (
	path string, fetched bool, err error) {
	path = buildid.DebuginfodPath(id, c.opts.Cache, string(kind))
	if path == "" {
		return "", false, fmt.Errorf("build ID %s: %w", id, ErrNotFound)
	}
	if there, err := c.cached(path, id); err != nil || there {
		return pathIf(there, path), false, err
	}
	done, err := c.turn(ctx, id)
	if err != nil {
		return "", false, err
	}
	defer done()
	// Another process may have had its turn before.
	if there, err := c.cached(path, id); err != nil || there {
		return pathIf(there, path), false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", false, err
	}
	var errs []error
	for _, s := range c.servers {
		_, err := s.breaker.Execute(func() (struct{}, error) {
			return struct{}{}, download(ctx, s.url, path)
		})
		switch {
		case err == nil:
			return path, true, nil
		case ctx.Err() != nil:
			return "", false, ctx.Err()
		case errors.Is(err, gobreaker.ErrOpenState):
			err = fmt.Errorf("%s: left out after %d failures", s.url, failuresOfServer)
		}
		if !errors.Is(err, ErrNotFound) {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return "", false, errors.Join(errs...)
	}
	// Noted as elfutils does, so that nobody asks again soon.
	return "", false, errors.Join(ErrNotFound, os.WriteFile(path, nil, 0o400))
}

// pathIf returns a path if there is something at it.
func pathIf(there bool, path string) string {
	if there {
		return path
	}
	return ""
}

// cached reports whether the cache has a file. An empty one notes, for a time, that no server had
// it.
func (c *Client) cached(path string, id buildid.ID) (bool, error) {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return false, nil
	}
	if fi.Size() > 0 {
		return check(path, id) == nil, nil // a wrong one is replaced
	}
	if time.Since(fi.ModTime()) < c.miss() {
		return false, fmt.Errorf("%w, as %s notes", ErrNotFound, path)
	}
	return false, os.Remove(path)
}

// miss returns how long an empty file counts: the number of seconds in a file of the cache.
func (c *Client) miss() time.Duration {
	f, err := regular.Open(filepath.Join(c.opts.Cache, "cache_miss_s"))
	if err != nil {
		return defaultMiss
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 32))
	n, err2 := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 32)
	if errors.Join(err, err2) != nil {
		return defaultMiss
	}
	return time.Duration(n) * time.Second
}

// download gets what is at a URL and gives it to take. A download that breaks off in the middle is
// repeated like requests.
func (c *Client) download(ctx context.Context, url string,
	take func(body io.Reader) (again bool, err error)) error {
	var err error
	for range c.opts.Retries + 1 {
		var again bool
		if again, err = c.try(ctx, url, take); err == nil || !again || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

// try does a download once. again is set for errors that another try may not have.
func (c *Client) try(ctx context.Context, url string,
	take func(body io.Reader) (again bool, err error)) (again bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.opts.MaxTime > 0 {
		defer time.AfterFunc(c.opts.MaxTime, func() {
			cancel(fmt.Errorf("not complete after %v", c.opts.MaxTime))
		}).Stop()
	}
	watch := newStall(c.opts.Stall, cancel)
	defer watch.stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	for name, values := range c.opts.Header {
		req.Header[name] = values
	}
	if c.opts.MaxSize > 0 {
		req.Header.Set("X-DEBUGINFOD-MAXSIZE", strconv.FormatInt(c.opts.MaxSize, 10))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false, causeOf(ctx, err) // it has been repeated
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return false, ErrNotFound
	case resp.StatusCode != http.StatusOK:
		return false, fmt.Errorf("the server answers %s", resp.Status)
	}
	if n := sizeOf(resp); c.opts.MaxSize > 0 && n > c.opts.MaxSize {
		return false, fmt.Errorf("%d bytes: %w of %d", n, ErrTooLarge, c.opts.MaxSize)
	}
	body := watch.reader(resp.Body)
	if c.opts.Progress != nil {
		body = &progressReader{r: body, total: sizeOf(resp), url: url, report: c.opts.Progress}
	}
	again, err = take(body)
	return again, causeOf(ctx, err)
}

// causeOf returns why a context ended instead of the error that this led to.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// sizeOf returns the size that a server announces, the larger one where it unpacks an archive.
func sizeOf(resp *http.Response) int64 {
	n, err := strconv.ParseInt(resp.Header.Get("X-DEBUGINFOD-SIZE"), 10, 64)
	if err != nil {
		return resp.ContentLength
	}
	return max(n, resp.ContentLength)
}

// save writes a file to the cache, if it is that of the build ID.
func (c *Client) save(path string, id buildid.ID, body io.Reader) (again bool, err error) {
	f, err := newfile.Create(path, 0o400)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Discard()) }()
	limited := body
	if c.opts.MaxSize > 0 {
		limited = io.LimitReader(body, c.opts.MaxSize+1)
	}
	n, err := io.Copy(f, limited)
	switch {
	case err != nil:
		return true, fmt.Errorf("after %d bytes: %w", n, err)
	case c.opts.MaxSize > 0 && n > c.opts.MaxSize:
		return false, fmt.Errorf("more than %d bytes: %w", c.opts.MaxSize, ErrTooLarge)
	}
	if err := checkID(path, f, n, id); err != nil {
		return false, err
	}
	return false, f.Publish(path)
}

// check refuses a file that is not that of a build ID.
func check(path string, id buildid.ID) error {
	f, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return checkID(path, f, fi.Size(), id)
}

func checkID(path string, r io.ReaderAt, size int64, id buildid.ID) error {
	e, err := elf.Open(filepath.Base(path), r, size)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrWrong, err)
	case e.ID.IsZero():
		return fmt.Errorf("%w: it has no build ID", ErrWrong)
	case !e.ID.Matches(id):
		return fmt.Errorf("%w: its build ID is %s", ErrWrong, e.ID)
	}
	return nil
}
