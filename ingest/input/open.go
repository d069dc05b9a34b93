package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/filetype"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/pprof"
	"symbolize/ingest/format/stackmap"
	"symbolize/ingest/regular"
	"symbolize/ingest/sideband"
)

// What Open and Replay refuse. ErrNotCapture is wrapped together with what the
// file looks like.
var (
	ErrNotCapture = errors.New("not a capture")
	ErrNoReplay   = errors.New("this kind of capture holds no single samples")
)

// maxPprofFile bounds a pprof file, which is read whole, in bytes.
const maxPprofFile = 1 << 30

// Capture is an opened capture. Its methods may be called one after another from
// any goroutine. What is damaged in it becomes a warning of its Profile.
type Capture struct {
	path  string
	opts  Options
	file  io.Closer
	r     io.ReaderAt
	size  int64
	mtime time.Time // zero if not known
	perf  *perfdata.File
	// bundle is nil but for capture bundles, whose side band perf is.
	bundle *bundle.Bundle
	// stacks is nil but for stack maps, and for bundles that have any, where it is read when
	// it is first wanted; stacksErr is the damage behind what was read.
	stacks     *stackmap.Set
	stacksErr  error
	stacksRead bool                           // of a bundle
	perfErr    error                          // why a bundle has no side band
	files      map[buildid.Key][]recordedFile // see recordedPath
	stackSide  *sideband.State                // after the profile was made

	chunkSize int64 // of Scan; small in tests, else the default
	mu        sync.Mutex
	side      *sideband.State // after the first pass
	profile   *ingest.Profile
	collect   *collector
	number    []ingest.ObjectID // by raw object
	exact     map[ingest.Location]struct{}
}

// Open opens a capture and finds out by its first bytes what it is: perf.data in
// file mode, a capture bundle, or a pprof profile, gzipped or not. The samples are read by Profile
// and Replay; for a pprof file already here. Errors of files that are no capture
// wrap ErrNotCapture.
func Open(ctx context.Context, path string, opts Options) (*Capture, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := regular.Open(path)
	if errors.Is(err, regular.ErrNotRegular) {
		return nil, withHint(noCapture(path, err))
	}
	if err != nil {
		return nil, err
	}
	c := &Capture{path: path, opts: opts, file: f, r: f}
	if err := c.sniff(f); err != nil {
		c.file.Close() // f, and what was opened with it
		return nil, withHint(err)
	}
	return c, nil
}

// noCapture says of what is no regular file why it is no capture.
func noCapture(path string, err error) error {
	if _, err := os.Stat(path + "/data"); err == nil {
		return fmt.Errorf("%s: %w", path, perfdata.ErrDirectory)
	}
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return fmt.Errorf("%s: %w: it is a directory", path, ErrNotCapture)
	}
	return fmt.Errorf("%s: %w: %w, and a capture is read twice", path, ErrNotCapture,
		errors.Unwrap(err))
}

func (c *Capture) sniff(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c.mtime, c.size = info.ModTime(), info.Size()
	kind, err := filetype.Of(c.path, f, c.size)
	if err != nil {
		return err
	}
	bare := c.opts.Stacks.bare()
	switch {
	case kind == filetype.PerfData:
		c.perf, err = perfdata.Open(c.path, f, c.size)
		return err
	case kind == filetype.Bundle:
		return c.openBundle()
	case kind == filetype.Stacks:
		return c.openStacks(stackmap.Sniff(&stackmap.Input{Name: c.path, R: f, Size: c.size}))
	case kind == filetype.Gzip, kind == filetype.Pprof && !bare:
		return c.openPprof()
	case bare:
		return c.openStacks(stackmap.NoForm)
	}
	return fmt.Errorf("%s: %w: %s", c.path, ErrNotCapture, looksLike(kind, c.size))
}

func (c *Capture) openPprof() error {
	if c.size > maxPprofFile {
		return fmt.Errorf("%s: pprof file of %d MiB, over the limit of %d MiB",
			c.path, c.size>>20, maxPprofFile>>20)
	}
	data, err := io.ReadAll(io.NewSectionReader(c.r, 0, c.size))
	if err != nil {
		return err
	}
	c.profile, err = pprof.Read(c.path, data, pprof.ReadOptions{
		Event: c.opts.Event, Comms: c.opts.Comms, PIDs: c.opts.PIDs, Keep: c.opts.Keep,
	})
	return err
}

// looksLike describes the file of an ErrNotCapture.
func looksLike(kind filetype.Type, size int64) string {
	switch {
	case size == 0:
		return "it is empty"
	case kind == filetype.ELF:
		return "it is an ELF file (index reads those)"
	case kind.Packed():
		return "it is compressed; unpack it first"
	}
	return "it begins neither like a perf.data file nor like a pprof profile"
}

// Path returns the path that the capture was opened by.
func (c *Capture) Path() string { return c.path }

// Kind returns "perf.data", "bundle", "pprof", or the form of a stack map, as
// stackmap.Form names it: "bpftool dump".
func (c *Capture) Kind() string {
	if c.bundle != nil {
		return kindBundle
	}
	switch {
	case c.perf != nil:
		return "perf.data"
	case c.stacks != nil:
		return c.stacks.Form.String()
	}
	return "pprof"
}

// PerfData returns the decoded file of a perf.data capture, or the side band of a
// bundle, which stays open until Close; nil for others.
func (c *Capture) PerfData() *perfdata.File { return c.perf }

// Close closes the file. The Profile stays usable.
func (c *Capture) Close() error { return c.file.Close() }

// Profile reads the samples and folds them. It is computed once.
func (c *Capture) Profile(ctx context.Context) (*ingest.Profile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profile != nil {
		return c.profile, nil
	}
	return c.fold(ctx)
}

func (c *Capture) fold(ctx context.Context) (*ingest.Profile, error) {
	c.readStacks()
	switch {
	case c.stacks != nil:
		return c.foldStacks(ctx)
	case c.perf == nil:
		return c.foldNothing(), nil
	}
	sb, err := c.scan(ctx)
	if err != nil {
		return nil, err
	}
	col, err := newCollector(sb, &c.opts)
	if err != nil {
		return nil, err
	}
	workers, err := collect(ctx, col)
	if err != nil {
		return nil, err
	}
	f := folder{assembly: assembly{collector: col, capture: c}, workers: workers}
	c.profile, c.number = f.profile()
	c.exact = f.exact
	if c.bundle != nil {
		c.bundleProfile(c.profile)
	}
	c.collect = col
	return c.profile, nil
}
