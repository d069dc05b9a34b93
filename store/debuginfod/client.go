package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/ingest/object/elf"
	"symbolize/store/httpretry"
)

// Kind selects one of the files of a build ID.
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
	ErrLater    = errors.New("the server asks to be left alone")
)

const defaultMiss = 10 * time.Minute // how long an empty file in the cache counts

// Client gets files. It may be used by several goroutines, each with other build IDs.
type Client struct {
	opts    Options
	http    *http.Client
	servers []*server
}

// New returns a client that sends requests by transport; nil for the default of net/http.
func New(opts Options, transport http.RoundTripper) *Client {
	c := &Client{opts: opts, http: newHTTP(&opts, transport)}
	for _, url := range opts.Servers {
		c.servers = append(c.servers, &server{url: strings.TrimRight(url, "/")})
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

// get is Get with a function that downloads a file from one server to a path.
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
		err := s.leftOut()
		if err == nil {
			err = download(ctx, s.url, path)
			s.note(err)
		}
		switch {
		case err == nil:
			return path, true, nil
		case ctx.Err() != nil:
			return "", false, ctx.Err()
		}
		if !errors.Is(err, ErrNotFound) {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return "", false, errors.Join(errs...)
	}
	// Noted as elfutils does, so that the servers get no more requests soon.
	return "", false, errors.Join(ErrNotFound, note(path))
}

// note leaves an empty file.
func note(path string) error {
	f, err := files.Create(path, 0o400)
	if err == nil {
		err = f.Commit(path)
	}
	return err
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
	f, err := files.Open(filepath.Join(c.opts.Cache, "cache_miss_s"))
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

// download passes the content at a URL to receive. A download that breaks off in the middle is
// repeated like a request.
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
		return false, httpretry.CauseOf(ctx, err) // the request has been repeated
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return false, ErrNotFound
	case httpretry.After(resp) > httpretry.MaxWait:
		return false, fmt.Errorf("%w for %v: it answers %s", ErrLater, httpretry.After(resp), resp.Status)
	case resp.StatusCode != http.StatusOK:
		return false, fmt.Errorf("the server answers %s", resp.Status)
	}
	if limit, of := c.limit(); sizeOf(resp) > limit {
		return false, fmt.Errorf("%d bytes: %w of %s", sizeOf(resp), ErrTooLarge, of)
	}
	body := io.Reader(resp.Body)
	if c.opts.Progress != nil {
		body = &progressReader{r: body, total: sizeOf(resp), url: url, report: c.opts.Progress}
	}
	again, err = take(body)
	return again, httpretry.CauseOf(ctx, err)
}

// sizeOf returns the size that a server announces, the larger one where it unpacks an archive.
func sizeOf(resp *http.Response) int64 {
	n, err := strconv.ParseInt(resp.Header.Get("X-DEBUGINFOD-SIZE"), 10, 64)
	if err != nil {
		return resp.ContentLength
	}
	return max(n, resp.ContentLength)
}

// save writes a file to the cache if it has the build ID.
func (c *Client) save(path string, id buildid.ID, body io.Reader) (again bool, err error) {
	f, err := files.Create(path, 0o400)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Discard()) }()
	limit, of := c.limit()
	n, err := io.Copy(f, io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return true, fmt.Errorf("after %d bytes: %w", n, err)
	case n > limit:
		return false, fmt.Errorf("more than %d bytes: %w of %s", limit, ErrTooLarge, of)
	}
	if err := checkID(path, f, n, id); err != nil {
		return false, err
	}
	return false, f.Publish(path)
}

// freeBytes is a variable for tests.
var freeBytes = files.FreeBytes

// reserve is the free space that files in the cache leave, bytes.
const reserve = 1 << 30

// limit returns the maximum size of a file and the limiting resource.
func (c *Client) limit() (bytes int64, of string) {
	bytes, of = math.MaxInt64-1, "any file"
	if c.opts.MaxSize > 0 {
		bytes, of = min(bytes, c.opts.MaxSize), fmt.Sprint(c.opts.MaxSize)
	}
	free, err := freeBytes(c.opts.Cache)
	if err != nil {
		return bytes, of
	}
	if free = max(0, free-reserve); free < bytes {
		return free, fmt.Sprintf("%d, which %s has free besides %d", free, c.opts.Cache, reserve)
	}
	return bytes, of
}

// check refuses a file without this build ID.
func check(path string, id buildid.ID) error {
	f, err := files.Open(path)
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
